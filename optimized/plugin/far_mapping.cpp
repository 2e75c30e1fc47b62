#include "optimized/plugin/far_mapping.hpp"

#include <sys/mman.h>

#include <utility>

namespace attest {

// Shared, because the limit of a worker's memory (RLIMIT_DATA) counts all private memory that may
// be written, touched or not.
FarMapping::FarMapping(std::size_t bytes) : bytes_(bytes) {
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping != MAP_FAILED) data_ = static_cast<std::byte*>(mapping);
}

FarMapping::~FarMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

FarMapping::FarMapping(FarMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

bool has_far_memory() {
  constexpr std::size_t kOfACall = std::size_t{1} << 39;  // some 16 tensors of 2^35 bytes
  static const bool has = FarMapping(kOfACall).data() != nullptr;
  return has;
}

}  // namespace attest
