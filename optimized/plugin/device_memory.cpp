// Blocks are reused between calls: mapping, and cudaMalloc on a GPU, cost more than a small case.
#include "optimized/plugin/device_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "optimized/plugin/crash_handler.hpp"

namespace attest {
namespace {

constexpr std::size_t kFenceBytes = 64 * 1024;               // inaccessible, on both sides
constexpr std::size_t kSpareBytesMax = 64 * 1024 * 1024;     // kept for reuse
constexpr std::size_t kCudaAlignment = 256;                  // what cudaMalloc promises
constexpr std::size_t kEmulatedGuardBytes = kCudaAlignment;  // the checker sees the access itself
constexpr std::size_t kCudaGuardBytes = 4096;
constexpr std::size_t kLargeBytes = 1024 * 1024;  // above it sizes are rounded less

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Few sizes, so that most blocks are found among the spare ones.
std::size_t size_class(std::size_t bytes) {
  return bytes <= kLargeBytes ? std::bit_ceil(bytes) : round_up(bytes, kLargeBytes);
}

constexpr std::size_t kFarGuardBytes = 256;  // on both sides of a piece

/// Of a mapping of (pieces - 1) * pitch + piece bytes.
Block far_block(std::byte* mapping, std::size_t bytes, std::size_t pieces, std::size_t pitch) {
  return {.data = mapping + kFarGuardBytes,
          .front = kFarGuardBytes,
          .bytes = bytes,
          .back = round_up(bytes, kFarAlignment) - bytes + kFarGuardBytes,
          .pieces = pieces,
          .pitch = pitch};
}

std::size_t far_bytes(std::size_t bytes, std::size_t pieces, std::size_t pitch) {
  const Block block = far_block(nullptr, bytes, pieces, pitch);
  return (pieces - 1) * pitch + block.piece();
}

void put(const Block& block, const std::byte* image) {
  for (std::size_t n = 0; n < block.pieces; ++n) {
    std::memcpy(block.data + n * block.pitch - block.front, image + n * block.piece(),
                block.piece());
  }
}

void get(const Block& block, std::byte* image) {
  for (std::size_t n = 0; n < block.pieces; ++n) {
    std::memcpy(image + n * block.piece(), block.data + n * block.pitch - block.front,
                block.piece());
  }
}

[[noreturn]] void no_room(const char* where, std::size_t bytes, TensorName name) {
  throw OutOfMemory(std::string(where) + " has no room for the " + std::to_string(bytes) +
                    " bytes of " + std::string(name_of(name)));
}

}  // namespace

HostMemory::HostMemory() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {}

HostMemory::~HostMemory() {
  release_all();
  for (auto& [bytes, regions] : spare_) {
    for (const Region& region : regions) {
      munmap(region.begin - kFenceBytes, bytes + 2 * kFenceBytes);
    }
  }
}

Block HostMemory::acquire(std::size_t bytes, std::size_t alignment, TensorName name) {
  const std::size_t usable = round_up(std::max<std::size_t>(bytes, 1), page_);
  Region region{nullptr, usable};
  if (auto& kept = spare_[usable]; !kept.empty()) {
    region = kept.back();
    kept.pop_back();
    spare_bytes_ -= usable;
  } else {
    void* mapping = mmap(nullptr, usable + 2 * kFenceBytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) no_room("host memory", bytes, name);
    region.begin = static_cast<std::byte*>(mapping) + kFenceBytes;
    if (mprotect(region.begin, usable, PROT_READ | PROT_WRITE) != 0) {
      munmap(mapping, usable + 2 * kFenceBytes);
      no_room("host memory", bytes, name);
    }
  }
  in_use_.push_back(region);
  Block block;
  block.bytes = bytes;
  block.back = round_up(bytes, alignment) - bytes;
  block.front = usable - bytes - block.back;
  block.data = region.begin + block.front;
  add_fenced_range({.mapping_begin = region.begin,
                    .mapping_end = region.begin + usable,
                    .begin = block.data,
                    .end = block.data + bytes,
                    .tensor = name},
                   kFenceBytes);
  return block;
}

Block HostMemory::acquire_far(std::size_t bytes, std::size_t pieces, std::size_t pitch,
                              TensorName name) {
  FarMapping& mapping = far_.emplace_back(far_bytes(bytes, pieces, pitch));
  if (mapping.data() == nullptr) no_room("host memory", (pieces - 1) * pitch + bytes, name);
  return far_block(mapping.data(), bytes, pieces, pitch);
}

void HostMemory::upload(const Block& block, const std::byte* image) {
  put(block, image);
}

void HostMemory::download(const Block& block, std::byte* image) {
  get(block, image);
}

void HostMemory::release_all() {
  clear_fenced_ranges();
  for (const Region& region : in_use_) {
    if (spare_bytes_ + region.bytes <= kSpareBytesMax) {
      spare_[region.bytes].push_back(region);
      spare_bytes_ += region.bytes;
    } else {
      munmap(region.begin - kFenceBytes, region.bytes + 2 * kFenceBytes);
    }
  }
  in_use_.clear();
  far_.clear();
}

CudaMemory::~CudaMemory() {
  release_all();
  for (auto& [bytes, bases] : spare_) {
    for (void* base : bases) runtime_.free(base);
  }
}

Block CudaMemory::acquire(std::size_t bytes, std::size_t, TensorName name) {
  Block block;
  block.front = runtime_.emulated() ? kEmulatedGuardBytes : kCudaGuardBytes;
  block.bytes = bytes;
  block.back = round_up(bytes, kCudaAlignment) - bytes + block.front;
  Allocation allocation{nullptr, size_class(block.total())};
  if (auto& kept = spare_[allocation.bytes]; !kept.empty()) {
    allocation.base = kept.back();
    kept.pop_back();
    spare_bytes_ -= allocation.bytes;
  } else if (runtime_.malloc(&allocation.base, allocation.bytes) != 0 ||
             allocation.base == nullptr) {
    runtime_.take_error();
    no_room("the device", bytes, name);
  }
  in_use_.push_back(allocation);
  block.data = static_cast<std::byte*>(allocation.base) + block.front;
  return block;
}

Block CudaMemory::acquire_far(std::size_t bytes, std::size_t pieces, std::size_t pitch,
                              TensorName name) {
  if (!runtime_.emulated()) no_room("the device", (pieces - 1) * pitch + bytes, name);
  FarMapping& mapping = far_.emplace_back(far_bytes(bytes, pieces, pitch));
  if (mapping.data() == nullptr) no_room("host memory", (pieces - 1) * pitch + bytes, name);
  const Block block = far_block(mapping.data(), bytes, pieces, pitch);
  runtime_.register_host(block.data, block.span());
  return block;
}

void CudaMemory::upload(const Block& block, const std::byte* image) {
  if (block.pieces > 1) return put(block, image);
  runtime_.copy(block.data - block.front, image, block.total(), CudaRuntime::Direction::to_device);
}

void CudaMemory::download(const Block& block, std::byte* image) {
  if (block.pieces > 1) return get(block, image);
  runtime_.copy(image, block.data - block.front, block.total(), CudaRuntime::Direction::to_host);
}

void CudaMemory::seal(const Block& block, bool filled) {
  if (!runtime_.emulated() || block.pieces > 1) return;
  runtime_.restrict_access(block.data, block.bytes);
  if (!filled) runtime_.mark_unwritten(block.data, block.bytes);
}

void CudaMemory::release_all() {
  for (const Allocation& allocation : in_use_) {
    if (spare_bytes_ + allocation.bytes > kSpareBytesMax) {
      runtime_.free(allocation.base);
      continue;
    }
    // Whoever kept a pointer to it may not use it in the next call.
    if (runtime_.emulated()) runtime_.restrict_access(allocation.base, 0);
    spare_[allocation.bytes].push_back(allocation.base);
    spare_bytes_ += allocation.bytes;
  }
  in_use_.clear();
  for (const FarMapping& mapping : far_) {
    if (mapping.data() != nullptr) runtime_.unregister_host(mapping.data() + kFarGuardBytes);
  }
  far_.clear();
}

}  // namespace attest
