// The device, its attributes, limits and versions, as a program may ask for them.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "optimized/emulator/runtime/device_properties.hpp"
#include "optimized/emulator/runtime/runtime.hpp"
#include "optimized/emulator/runtime/version.hpp"

namespace rt = attest::emulator::runtime;
using rt::AfterFault;
using rt::answer;
using rt::call;
using rt::Runtime;

namespace {

std::optional<int> limit_attribute(cudaDeviceAttr attribute, const cudaDeviceProp& device) {
  switch (static_cast<int>(attribute)) {
    case cudaDevAttrMaxThreadsPerBlock:
      return device.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX:
      return device.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY:
      return device.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ:
      return device.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX:
      return device.maxGridSize[0];
    case cudaDevAttrMaxGridDimY:
      return device.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ:
      return device.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(device.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(device.sharedMemPerBlockOptin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(device.sharedMemPerMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(device.reservedSharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(device.totalConstMem);
    case cudaDevAttrWarpSize:
      return device.warpSize;
    case cudaDevAttrMaxPitch:
      return static_cast<int>(device.memPitch);
    case cudaDevAttrMaxRegistersPerBlock:
      return device.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return device.regsPerMultiprocessor;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return device.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return device.maxBlocksPerMultiProcessor;
    default:
      return std::nullopt;
  }
}

int other_attribute(cudaDeviceAttr attribute, const cudaDeviceProp& device) {
  switch (static_cast<int>(attribute)) {
    case cudaDevAttrMultiProcessorCount:
      return device.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
      return device.major;
    case cudaDevAttrComputeCapabilityMinor:
      return device.minor;
    case cudaDevAttrClockRate:
      return rt::device_properties_of_12().clock_rate_khz;
    case cudaDevAttrMemoryClockRate:
      return rt::device_properties_of_12().memory_clock_rate_khz;
    case cudaDevAttrTextureAlignment:
      return static_cast<int>(device.textureAlignment);
    case cudaDevAttrTexturePitchAlignment:
      return static_cast<int>(device.texturePitchAlignment);
    case cudaDevAttrSurfaceAlignment:
      return static_cast<int>(device.surfaceAlignment);
    case cudaDevAttrGlobalMemoryBusWidth:
      return device.memoryBusWidth;
    case cudaDevAttrL2CacheSize:
      return device.l2CacheSize;
    case cudaDevAttrAsyncEngineCount:
      return device.asyncEngineCount;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return rt::device_properties_of_12().single_to_double_ratio;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    default:
      return 0;
  }
}

cudaError_t only_device_zero(int device) {
  return call([&](Runtime&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Runtime&) { return answer(count, 1); });
}
cudaError_t cudaGetDevice(int* device) {
  return call([&](Runtime&) { return answer(device, 0); });
}
cudaError_t cudaSetDevice(int device) {
  return only_device_zero(device);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return only_device_zero(device);
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return cudaGetDevice(device);
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call([&](Runtime&) { return answer(flags, cudaDeviceScheduleAuto); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Runtime&) {
    if (device != 0) return cudaErrorInvalidDevice;
    return answer(properties, rt::device_properties());
  });
}
/// What CUDA 12's headers make of cudaGetDeviceProperties.
cudaError_t cudaGetDeviceProperties_v2(rt::DevicePropertiesOf12* properties, int device) {
  return call([&](Runtime&) {
    if (device != 0) return cudaErrorInvalidDevice;
    return answer(properties, rt::device_properties_of_12());
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&](Runtime&) {
    if (device != 0) return cudaErrorInvalidDevice;
    if (attribute <= 0 || attribute >= cudaDevAttrMax) return cudaErrorInvalidValue;
    const cudaDeviceProp properties = rt::device_properties();
    const auto limit = limit_attribute(attribute, properties);
    return answer(value, limit ? *limit : other_attribute(attribute, properties));
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaDeviceReset() {
  return call(
      [](Runtime& runtime) {
        runtime.reset();
        return cudaSuccess;
      },
      AfterFault::answers);
}

// Limits are remembered, so that a program reads what it has set; the emulator has its own.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  return call([&](Runtime& runtime) {
    if (limit < cudaLimitStackSize || limit > cudaLimitPersistingL2CacheSize) {
      return cudaErrorUnsupportedLimit;
    }
    runtime.limits[limit] = value;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  return call([&](Runtime& runtime) {
    if (limit < cudaLimitStackSize || limit > cudaLimitPersistingL2CacheSize) {
      return cudaErrorUnsupportedLimit;
    }
    constexpr std::size_t kStackBytes = 1024, kOtherBytes = 8 * 1024 * 1024;
    const auto found = runtime.limits.find(limit);
    if (found != runtime.limits.end()) return answer(value, found->second);
    return answer(value, limit == cudaLimitStackSize ? kStackBytes : kOtherBytes);
  });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call([&](Runtime&) { return answer(config, cudaFuncCachePreferNone); });
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Runtime&) {
    constexpr int kGreatest = -5;  // as on sm_80
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kGreatest;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call(
      [&](Runtime&) { return device == 0 && peer == 0 ? answer(can, 0) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return call([&](Runtime&) {
    constexpr std::string_view kDomain = "0000:", kBus = "00:00.0";
    if (id == nullptr) return cudaErrorInvalidValue;
    std::string_view name = id;
    if (name.starts_with(kDomain)) name.remove_prefix(kDomain.size());
    return name == kBus ? answer(device, 0) : cudaErrorInvalidDevice;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return call([](Runtime&) { return cudaErrorInvalidDevice; });  // there is no peer
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call([&](Runtime&) { return answer(config, cudaSharedMemBankSizeFourByte); });
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return call([&](Runtime&) {
    constexpr char kBusId[] = "0000:00:00.0";
    if (device != 0) return cudaErrorInvalidDevice;
    if (id == nullptr || length < static_cast<int>(sizeof kBusId)) return cudaErrorInvalidValue;
    std::memcpy(id, kBusId, sizeof kBusId);
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call([&](Runtime&) { return answer(version, rt::kMajorVersion * 1000); },
              AfterFault::answers);
}
cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

// There is no driver behind this runtime, so none of its functions is found. Programs that ask
// whether one exists go on without it.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return call([&](Runtime&) {
    if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
    rt::complain(std::string("the driver's function ") + symbol + " is not emulated");
    *function = nullptr;
    if (status == nullptr) return cudaErrorSymbolNotFound;
    *status = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}

cudaError_t cudaProfilerStart() {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaProfilerStop() {
  return call([](Runtime&) { return cudaSuccess; });
}

}  // extern "C"
