// Allocation. All memory a kernel may touch comes from the Device, pinned host memory and managed
// memory included, so that its checks cover them; one address space serves host and device.
#include <limits>

#include "optimized/emulator/runtime/device_properties.hpp"
#include "optimized/emulator/runtime/runtime.hpp"

namespace rt = attest::emulator::runtime;
using attest::emulator::Device;
using rt::Block;
using rt::call;
using rt::MemoryKind;
using rt::Runtime;

namespace {

constexpr std::size_t kPitchAlignment = 512;

cudaError_t allocate(Runtime& runtime, void** address, std::size_t bytes, Block block) {
  if (address == nullptr) return cudaErrorInvalidValue;
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  *address = runtime.allocate(bytes, block);
  if (*address == nullptr) return cudaErrorMemoryAllocation;
  // The host writes to memory of these kinds without telling anybody.
  if (block.kind != MemoryKind::device) Device::instance().mark_written(*address, bytes);
  return cudaSuccess;
}

bool is_pinned(MemoryKind kind) {
  return kind == MemoryKind::host || kind == MemoryKind::registered;
}

cudaError_t release(Runtime& runtime, void* address, bool host) {
  if (address == nullptr) return cudaSuccess;
  const auto found = runtime.blocks.find(address);
  if (found == runtime.blocks.end()) return cudaErrorInvalidValue;
  const MemoryKind kind = found->second.kind;
  if (kind == MemoryKind::registered) return cudaErrorInvalidValue;  // the host's own
  if ((kind == MemoryKind::host) != host) return cudaErrorInvalidValue;
  runtime.blocks.erase(found);
  return Device::instance().release(address) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t allocate_pitched(Runtime& runtime, cudaPitchedPtr* result, std::size_t width,
                             std::size_t height, std::size_t depth) {
  if (width > std::numeric_limits<std::size_t>::max() - kPitchAlignment) {
    return cudaErrorInvalidValue;
  }
  const std::size_t pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(pitch, height, &bytes) ||
      __builtin_mul_overflow(bytes, depth, &bytes)) {
    return cudaErrorMemoryAllocation;
  }
  *result = {nullptr, pitch, width, height};
  return allocate(runtime, &result->ptr, bytes, {});
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return call([&](Runtime& runtime) { return allocate(runtime, address, bytes, {}); });
}

cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    if (!rt::is_stream(stream)) return cudaErrorInvalidResourceHandle;
    return allocate(runtime, address, bytes, {});
  });
}

cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(address, bytes, stream);
}

cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned flags) {
  if (bytes == 0) return call([](Runtime&) { return cudaErrorInvalidValue; });
  return call([&](Runtime& runtime) {
    return allocate(runtime, address, bytes, {MemoryKind::managed, flags});
  });
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return call([&](Runtime& runtime) {
    return allocate(runtime, address, bytes, {MemoryKind::host, flags});
  });
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaMallocPitch(void** address, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  return call([&](Runtime& runtime) {
    if (address == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
    cudaPitchedPtr pitched{};
    const cudaError_t error = allocate_pitched(runtime, &pitched, width, height, 1);
    *address = pitched.ptr;
    *pitch = pitched.pitch;
    return error;
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  return call([&](Runtime& runtime) {
    if (result == nullptr) return cudaErrorInvalidValue;
    return allocate_pitched(runtime, result, extent.width, extent.height, extent.depth);
  });
}

cudaError_t cudaFree(void* address) {
  return call([&](Runtime& runtime) { return release(runtime, address, false); });
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    if (!rt::is_stream(stream)) return cudaErrorInvalidResourceHandle;
    return rt::enqueue(stream, [&runtime, address] { return release(runtime, address, false); });
  });
}

cudaError_t cudaFreeHost(void* address) {
  return call([&](Runtime& runtime) { return release(runtime, address, true); });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return call([&](Runtime& runtime) {
    if (address == nullptr || bytes == 0) return cudaErrorInvalidValue;
    if (!Device::instance().adopt(address, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    runtime.blocks[address] = {MemoryKind::registered, flags};
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return call([&](Runtime& runtime) {
    const auto found = runtime.blocks.find(address);
    if (found == runtime.blocks.end() || found->second.kind != MemoryKind::registered) {
      return cudaErrorHostMemoryNotRegistered;
    }
    runtime.blocks.erase(found);
    return Device::instance().release(address) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned /*flags*/) {
  return call([&](Runtime&) {
    if (Device::instance().find_allocation(host).base == nullptr) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return call([&](Runtime& runtime) {
    const auto found = runtime.blocks.find(host);
    if (found == runtime.blocks.end() || !is_pinned(found->second.kind)) {
      return cudaErrorInvalidValue;
    }
    *flags = found->second.flags | cudaHostAllocMapped;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&](Runtime&) {
    const std::size_t used = Device::instance().bytes_in_use();
    *total = rt::device_properties().totalGlobalMem;
    *free = *total > used ? *total - used : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&](Runtime& runtime) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    *attributes = {};
    auto* address = const_cast<void*>(pointer);
    const Device::Allocation allocation = Device::instance().find_allocation(pointer);
    if (allocation.base == nullptr) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = address;
      return cudaSuccess;
    }
    const auto found = runtime.blocks.find(allocation.base);
    const MemoryKind kind = found == runtime.blocks.end() ? MemoryKind::device : found->second.kind;
    attributes->type = kind == MemoryKind::device ? cudaMemoryTypeDevice
                       : is_pinned(kind)          ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeManaged;
    attributes->devicePointer = address;
    attributes->hostPointer = kind == MemoryKind::device ? nullptr : address;
    return cudaSuccess;
  });
}

// Memory has no place to move to or from, so hints about places have no effect. Their parameters
// differ between CUDA 12 and 13, which is harmless as none is read.
cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned,
                                 cudaStream_t) {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return call([](Runtime&) { return cudaSuccess; });
}

// Pools keep nothing: they differ by their handles and by what was set of them.
struct Pool {
  std::map<cudaMemPoolAttr, std::uint64_t> attributes;
};
static std::map<cudaMemPool_t, Pool>& pools() {
  static auto& all = *new std::map<cudaMemPool_t, Pool>;
  return all;
}
/// Reuse policies are ints, and on unless they were set; amounts of memory are 64 bits wide.
static bool is_policy(cudaMemPoolAttr attribute) {
  return attribute <= cudaMemPoolReuseAllowInternalDependencies;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call([&](Runtime&) {
    if (pool == nullptr || properties == nullptr) return cudaErrorInvalidValue;
    static std::uintptr_t next = 1;  // no address: nobody may look behind a handle
    *pool = reinterpret_cast<cudaMemPool_t>(next++);
    pools()[*pool];
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call(
      [&](Runtime&) { return pools().erase(pool) == 1 ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    const auto& known = pools()[pool].attributes;
    const auto found = known.find(attribute);
    const std::uint64_t number = found != known.end()   ? found->second
                                 : is_policy(attribute) ? 1
                                                        : 0;
    if (is_policy(attribute)) return rt::answer(static_cast<int*>(value), number);
    return rt::answer(static_cast<std::uint64_t*>(value), number);
  });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t, cudaMemLocation*) {
  return call([&](Runtime&) { return rt::answer(flags, cudaMemAccessFlagsProtReadWrite); });
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t) {
  return call([&](Runtime&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call([&](Runtime& runtime) {
    if (device != 0) return cudaErrorInvalidDevice;
    return rt::answer(pool, reinterpret_cast<cudaMemPool_t>(&runtime));
  });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    pools()[pool].attributes[attribute] =
        is_policy(attribute) ? static_cast<std::uint64_t>(*static_cast<int*>(value))
                             : *static_cast<std::uint64_t*>(value);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  return call([](Runtime&) { return cudaSuccess; });
}

}  // extern "C"
