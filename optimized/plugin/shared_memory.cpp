// Growth rounds up to a power of two. Neither side ever shrinks the memory, so a mapping of the
// other side stays valid until it follows.
#include "optimized/plugin/shared_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "reference/text.hpp"

namespace attest {
namespace {

constexpr std::size_t kLeastBytes = 64 * 1024;  // holds the headers and a small case

[[noreturn]] void refuse(const char* what) {
  throw Error(std::string("shared memory for the worker process: ") + what + ": " +
              std::strerror(errno) + "; free some memory or take smaller cases");
}

}  // namespace

SharedMemory SharedMemory::create(const char* name, std::size_t bytes) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0) refuse("memfd_create");
  SharedMemory memory(descriptor, Access::read_write);
  memory.grow(bytes);
  return memory;
}

SharedMemory SharedMemory::open(int descriptor, std::size_t bytes, Access access) {
  SharedMemory memory(descriptor, access);
  memory.map(bytes);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      access_(other.access_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
  if (descriptor_ >= 0) close(descriptor_);
}

void SharedMemory::map(std::size_t bytes) {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
  const int protection = access_ == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* mapping = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor_, 0);
  if (mapping == MAP_FAILED) refuse("mmap");
  data_ = static_cast<std::byte*>(mapping);
  size_ = bytes;
}

void SharedMemory::grow(std::size_t bytes) {
  if (bytes <= size_) return;
  const std::size_t rounded = std::bit_ceil(std::max(bytes, kLeastBytes));
  if (ftruncate(descriptor_, static_cast<off_t>(rounded)) != 0) refuse("ftruncate");
  map(rounded);
}

void SharedMemory::follow(std::size_t bytes) {
  if (bytes != size_) map(bytes);
}

}  // namespace attest
