// One planted fault, chosen by the argument; afterwards every call answers with its error until the
// device is reset. Prints the error's name.
#include <cassert>
#include <cstring>

#include "require.cuh"

__global__ void writes(int* values, int index) {
  values[index] = 1;
}
__global__ void asserts(int value) {
  assert(value == 2);
}
__global__ void traps() {
  __trap();
}
// First launched during the fault, which must not spoil it for good.
__global__ void comes_later(int* values) {
  values[0] = 2;
}

int main(int argc, char** argv) {
  int* values = nullptr;
  REQUIRE(argc == 2);
  REQUIRE_OK(cudaMalloc(&values, 64));
  const char* fault = argv[1];
  if (std::strcmp(fault, "beyond") == 0) writes<<<1, 1>>>(values, 16);
  if (std::strcmp(fault, "freed") == 0) {
    REQUIRE_OK(cudaFree(values));
    writes<<<1, 1>>>(values, 0);
  }
  if (std::strcmp(fault, "host") == 0) {
    int here[4] = {};
    writes<<<1, 1>>>(here, 0);
  }
  if (std::strcmp(fault, "assert") == 0) asserts<<<1, 1>>>(1);
  if (std::strcmp(fault, "trap") == 0) traps<<<1, 1>>>();
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(error));
  REQUIRE(error != cudaSuccess);
  int* more = nullptr;
  REQUIRE_ERROR(cudaMalloc(&more, 4), error);
  REQUIRE_ERROR(cudaGetLastError(), error);
  REQUIRE_ERROR(cudaGetLastError(), error);  // sticky: asking does not clear it
  comes_later<<<1, 1>>>(values);
  REQUIRE_ERROR(cudaGetLastError(), error);
  REQUIRE_OK(cudaDeviceReset());
  REQUIRE_OK(cudaMalloc(&more, 4));
  writes<<<1, 1>>>(more, 0);
  comes_later<<<1, 1>>>(more);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(cudaDeviceSynchronize());
}
