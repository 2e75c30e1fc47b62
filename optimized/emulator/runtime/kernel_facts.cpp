// What a program may ask about its kernels, and set: attributes, occupancy, names. Register counts
// are estimates, since nothing here allocates hardware registers.
#include <algorithm>

#include "optimized/emulator/runtime/runtime.hpp"

namespace attest::emulator::runtime {

SharedLimits shared_limits(std::uint32_t architecture) {
  // CUDA C++ Programming Guide, "Technical specifications per compute capability". A kibibyte of a
  // multiprocessor's is the system's from sm_80 on.
  struct Row {
    std::uint32_t from, kibibytes, reserved;
  };
  constexpr Row kRows[] = {{120, 100, 1}, {90, 228, 1}, {89, 100, 1}, {87, 164, 1},
                           {86, 100, 1},  {80, 164, 1}, {75, 64, 0},  {0, 96, 0}};
  const Row& row =
      *std::ranges::find_if(kRows, [&](const Row& r) { return architecture >= r.from; });
  return {row.kibibytes * 1024, (row.kibibytes - row.reserved) * 1024};
}

SharedLimits shared_limits(const Kernel& kernel) {
  const SharedLimits device = shared_limits(kArchitecture);
  if (!kernel.facts || kernel.facts->architecture <= kArchitecture) return device;
  const SharedLimits own = shared_limits(kernel.facts->architecture);
  return own.per_block > device.per_block ? own : device;
}

int blocks_per_multiprocessor(const Kernel& kernel, std::uint32_t threads, std::size_t dynamic) {
  constexpr std::uint32_t kRegistersPerThreadMax = 255;
  if (threads == 0 || threads > kernel.facts->max_threads_per_block) return 0;
  const std::size_t shared = kernel.facts->static_shared_bytes + dynamic + kSharedReserved;
  const std::uint32_t rounded = (threads + kWarp - 1) / kWarp * kWarp;
  const std::uint32_t registers = std::clamp(
      kernel.facts->registers_estimate, 1U, std::min(kRegistersPerThreadMax, kRegisters / rounded));
  const std::size_t blocks =
      std::min<std::size_t>({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / rounded,
                             kRegisters / (std::size_t{registers} * rounded),
                             shared_limits(kernel).per_multiprocessor / shared});
  return static_cast<int>(blocks);
}

namespace {

/// Calls `body` with a kernel whose facts are known.
template <typename Body>
cudaError_t with_kernel(const void* function, Body body, const char* name = __builtin_FUNCTION()) {
  return call(
      [&](Runtime& runtime) -> cudaError_t {
        Kernel* kernel = runtime.find_kernel(function);
        if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
        const cudaError_t error = runtime.prepare(*kernel);
        return error != cudaSuccess ? error : body(*kernel);
      },
      AfterFault::refuses, name);
}

}  // namespace
}  // namespace attest::emulator::runtime

namespace rt = attest::emulator::runtime;
using rt::Kernel;
using rt::with_kernel;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return with_kernel(function, [&](Kernel& kernel) {
    constexpr int kRegistersPerThreadMax = 255;
    *attributes = {};
    attributes->sharedSizeBytes = kernel.facts->static_shared_bytes;
    attributes->constSizeBytes = kernel.facts->constant_bytes;
    attributes->localSizeBytes = kernel.facts->local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(kernel.facts->max_threads_per_block);
    attributes->numRegs =
        std::min(static_cast<int>(kernel.facts->registers_estimate), kRegistersPerThreadMax);
    attributes->ptxVersion = static_cast<int>(kernel.facts->architecture);
    attributes->binaryVersion = rt::kArchitecture;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel.dynamic_shared_max);
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return with_kernel(function, [&](Kernel& kernel) {
    if (attribute >= cudaFuncAttributeMax) return cudaErrorInvalidValue;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      const std::int64_t total = std::int64_t{value} + kernel.facts->static_shared_bytes;
      if (value < 0 || total > rt::shared_limits(kernel).per_block) return cudaErrorInvalidValue;
      kernel.dynamic_shared_max = static_cast<std::uint32_t>(value);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return with_kernel(function, [](Kernel&) { return cudaSuccess; });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return with_kernel(function, [](Kernel&) { return cudaSuccess; });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return with_kernel(function, [&](Kernel& kernel) {
    *name = kernel.name.c_str();
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int block_threads,
                                                                   std::size_t dynamic_bytes,
                                                                   unsigned /*flags*/) {
  return with_kernel(function, [&](Kernel& kernel) {
    if (blocks == nullptr || block_threads <= 0) return cudaErrorInvalidValue;
    const bool too_much = dynamic_bytes > kernel.dynamic_shared_max;
    *blocks = too_much ? 0
                       : rt::blocks_per_multiprocessor(
                             kernel, static_cast<std::uint32_t>(block_threads), dynamic_bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_threads,
                                                          std::size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_threads,
                                                                dynamic_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function,
                                                      int blocks, int block_threads) {
  return with_kernel(function, [&](Kernel& kernel) {
    if (blocks <= 0 || block_threads <= 0) return cudaErrorInvalidValue;
    const std::size_t share =
        rt::shared_limits(kernel).per_multiprocessor / static_cast<unsigned>(blocks);
    const std::size_t used = kernel.facts->static_shared_bytes + rt::kSharedReserved;
    *bytes = std::min<std::size_t>(share > used ? share - used : 0, kernel.dynamic_shared_max);
    return cudaSuccess;
  });
}

}  // extern "C"
