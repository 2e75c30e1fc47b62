// Fills the records of device_properties.hpp. Limits that the emulator enforces come from
// runtime.hpp; the others are those of an sm_80 device, so that programs which scale by them behave
// as usual.
#include "optimized/emulator/runtime/device_properties.hpp"

#include <unistd.h>

#include <cstring>

#include "optimized/emulator/runtime/runtime.hpp"

namespace attest::emulator::runtime {
namespace {

constexpr char kName[] = "attest emulated device (sm_80)";
constexpr std::size_t kConstantBytes = 65536, kTextureAlignment = 512, kTexturePitchAlignment = 32;
constexpr int kL2Bytes = 40 * 1024 * 1024, kMemoryBusBits = 5120;
constexpr int kClockKhz = 1410000, kMemoryClockKhz = 1215000;

std::size_t physical_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void copy_three(int (&target)[3], int x, int y, int z) {
  target[0] = x;
  target[1] = y;
  target[2] = z;
}

}  // namespace

cudaDeviceProp device_properties() {
  cudaDeviceProp result{};
  std::memcpy(result.name, kName, sizeof kName);
  result.totalGlobalMem = physical_bytes();
  result.sharedMemPerBlock = kSharedPerBlock;
  result.regsPerBlock = result.regsPerMultiprocessor = kRegisters;
  result.warpSize = kWarp;
  result.memPitch = kGridXMax;
  result.maxThreadsPerBlock = kThreadsPerBlockMax;
  copy_three(result.maxThreadsDim, kThreadsPerBlockMax, kThreadsPerBlockMax, kBlockZMax);
  copy_three(result.maxGridSize, kGridXMax, kGridYZMax, kGridYZMax);
  result.totalConstMem = kConstantBytes;
  result.major = kArchitecture / 10;
  result.minor = kArchitecture % 10;
  result.textureAlignment = result.surfaceAlignment = kTextureAlignment;
  result.texturePitchAlignment = kTexturePitchAlignment;
  result.multiProcessorCount = kMultiprocessors;
  result.canMapHostMemory = 1;
  result.concurrentKernels = 1;
  result.asyncEngineCount = 3;
  result.unifiedAddressing = 1;
  result.memoryBusWidth = kMemoryBusBits;
  result.l2CacheSize = kL2Bytes;
  result.maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  result.streamPrioritiesSupported = 1;
  result.globalL1CacheSupported = result.localL1CacheSupported = 1;
  result.sharedMemPerMultiprocessor = shared_limits(kArchitecture).per_multiprocessor;
  result.managedMemory = result.concurrentManagedAccess = 1;
  result.computePreemptionSupported = 1;
  result.cooperativeLaunch = 1;
  result.sharedMemPerBlockOptin = shared_limits(kArchitecture).per_block;
  result.maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  result.reservedSharedMemPerBlock = kSharedReserved;
  result.memoryPoolsSupported = 1;
  return result;
}

DevicePropertiesOf12 device_properties_of_12() {
  const cudaDeviceProp now = device_properties();
  DevicePropertiesOf12 result{};
  std::memcpy(result.name, now.name, sizeof result.name);
  result.total_global_memory = now.totalGlobalMem;
  result.shared_per_block = now.sharedMemPerBlock;
  result.registers_per_block = result.registers_per_multiprocessor = now.regsPerBlock;
  result.warp = now.warpSize;
  result.pitch_max = now.memPitch;
  result.threads_per_block_max = now.maxThreadsPerBlock;
  std::memcpy(result.block_max, now.maxThreadsDim, sizeof result.block_max);
  std::memcpy(result.grid_max, now.maxGridSize, sizeof result.grid_max);
  result.clock_rate_khz = kClockKhz;
  result.memory_clock_rate_khz = kMemoryClockKhz;
  result.total_constant_memory = now.totalConstMem;
  result.major = now.major;
  result.minor = now.minor;
  result.texture_alignment = result.surface_alignment = now.textureAlignment;
  result.texture_pitch_alignment = now.texturePitchAlignment;
  result.multiprocessors = now.multiProcessorCount;
  result.device_overlap = result.maps_host_memory = result.concurrent_kernels = 1;
  result.async_engines = now.asyncEngineCount;
  result.unified_addressing = 1;
  result.memory_bus_bits = now.memoryBusWidth;
  result.l2_bytes = now.l2CacheSize;
  result.threads_per_multiprocessor = now.maxThreadsPerMultiProcessor;
  result.stream_priorities = result.global_l1 = result.local_l1 = 1;
  result.shared_per_multiprocessor = now.sharedMemPerMultiprocessor;
  result.managed_memory = result.concurrent_managed = result.compute_preemption = 1;
  result.single_to_double_ratio = 2;
  result.cooperative_launch = 1;
  result.shared_per_block_optin = now.sharedMemPerBlockOptin;
  result.blocks_per_multiprocessor = now.maxBlocksPerMultiProcessor;
  result.reserved_shared_per_block = now.reservedSharedMemPerBlock;
  result.memory_pools = 1;
  return result;
}

}  // namespace attest::emulator::runtime
