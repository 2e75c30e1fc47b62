// What a program may ask about the device, and what it is told of things that are not emulated.
#include <cstring>

#include "require.cuh"

int main() {
  int count = 0, device = -1, value = 0, version = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  REQUIRE(count == 1);
  REQUIRE_OK(cudaGetDevice(&device));
  REQUIRE(device == 0);
  REQUIRE_OK(cudaSetDevice(0));
  REQUIRE_ERROR(cudaSetDevice(1), cudaErrorInvalidDevice);
  REQUIRE_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
  REQUIRE_OK(cudaGetLastError());

  cudaDeviceProp properties;
  REQUIRE_OK(cudaGetDeviceProperties(&properties, 0));
  REQUIRE(std::strcmp(properties.name, "attest emulated device (sm_80)") == 0);
  REQUIRE(properties.major == 8 && properties.minor == 0 && properties.warpSize == 32);
  REQUIRE(properties.sharedMemPerBlock == 48 * 1024);
  REQUIRE(properties.sharedMemPerBlockOptin == 163 * 1024);
  REQUIRE_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  REQUIRE(value == properties.multiProcessorCount);
  REQUIRE_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  REQUIRE(value == 163 * 1024);
  REQUIRE_OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  REQUIRE(value == 8);
  REQUIRE_ERROR(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0),
                cudaErrorInvalidValue);
  REQUIRE_OK(cudaRuntimeGetVersion(&version));
  REQUIRE(version / 1000 == CUDART_VERSION / 1000);
  REQUIRE_OK(cudaDriverGetVersion(&version));
  REQUIRE(version / 1000 == CUDART_VERSION / 1000);

  std::size_t limit = 0;
  REQUIRE_OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  REQUIRE_OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  REQUIRE(limit == 4096);
  REQUIRE(std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
  REQUIRE(std::strcmp(cudaGetErrorString(cudaErrorIllegalAddress), "illegal address") == 0);
  REQUIRE(std::strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);

  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
  REQUIRE(format.x == 32 && format.y == 32 && format.z == 0);
  cudaArray_t array = nullptr;
  REQUIRE_ERROR(cudaMallocArray(&array, &format, 4, 4), cudaErrorNotSupported);
  void* function = &array;
  cudaDriverEntryPointQueryResult found;
  REQUIRE_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &found));
  REQUIRE(function == nullptr && found == cudaDriverEntryPointSymbolNotFound);
  std::puts("questions: all as it should be");
}
