// Allocation, copies, fills, symbols and the errors they give: what the runtime answers without
// running a kernel.
#include <cstdint>
#include <cstring>
#include <vector>

#include "require.cuh"

__device__ int table[4] = {1, 2, 3, 4};
__constant__ float factors[8];
__managed__ int shared_with_host = 7;

static void allocation() {
  void *a = nullptr, *b = nullptr;
  REQUIRE_OK(cudaMalloc(&a, 1000));
  REQUIRE(reinterpret_cast<std::uintptr_t>(a) % 256 == 0);
  REQUIRE_OK(cudaMalloc(&b, 0));
  REQUIRE(b == nullptr);
  REQUIRE_OK(cudaFree(nullptr));
  REQUIRE_ERROR(cudaFree(static_cast<char*>(a) + 8), cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaFreeHost(a), cudaErrorInvalidValue);
  cudaPointerAttributes attributes;
  REQUIRE_OK(cudaPointerGetAttributes(&attributes, static_cast<char*>(a) + 999));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.hostPointer == nullptr);
  REQUIRE_OK(cudaPointerGetAttributes(&attributes, &attributes));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered);
  REQUIRE_OK(cudaFree(a));
  REQUIRE_ERROR(cudaFree(a), cudaErrorInvalidValue);
  std::size_t free_bytes = 0, total = 0, free_after = 0;
  REQUIRE_OK(cudaMemGetInfo(&free_bytes, &total));
  REQUIRE_OK(cudaMallocManaged(&a, 1 << 20));
  REQUIRE_OK(cudaPointerGetAttributes(&attributes, a));
  REQUIRE(attributes.type == cudaMemoryTypeManaged);
  REQUIRE_OK(cudaMemGetInfo(&free_after, &total));
  REQUIRE(free_after < free_bytes && free_bytes <= total);
  REQUIRE_OK(cudaFree(a));
  REQUIRE_OK(cudaHostAlloc(&a, 64, cudaHostAllocMapped));
  REQUIRE_OK(cudaHostGetDevicePointer(&b, a, 0));
  REQUIRE(a == b);
  std::memset(a, 1, 64);
  REQUIRE_ERROR(cudaFree(a), cudaErrorInvalidValue);
  REQUIRE_OK(cudaFreeHost(a));
  REQUIRE_ERROR(cudaMalloc(&a, SIZE_MAX / 2), cudaErrorMemoryAllocation);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  REQUIRE_OK(cudaGetLastError());
}

static void copies() {
  std::vector<int> host(100), back(100, -1);
  for (int i = 0; i < 100; ++i) host[i] = i * i;
  int* device = nullptr;
  REQUIRE_OK(cudaMalloc(&device, 400));
  REQUIRE_OK(cudaMemcpy(device, host.data(), 400, cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaMemcpy(back.data(), device, 400, cudaMemcpyDefault));
  REQUIRE(host == back);
  REQUIRE_ERROR(cudaMemcpy(device, host.data(), 401, cudaMemcpyHostToDevice),
                cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpy(device + 50, host.data(), 204, cudaMemcpyDefault),
                cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpy(host.data(), host.data(), 4, cudaMemcpyHostToDevice),
                cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpy(device, host.data(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpy(nullptr, host.data(), 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpy(device, host.data(), 4, static_cast<cudaMemcpyKind>(9)),
                cudaErrorInvalidMemcpyDirection);
  REQUIRE_OK(cudaMemset(device, 0x11, 8));
  REQUIRE_ERROR(cudaMemset(host.data(), 0, 8), cudaErrorInvalidValue);
  REQUIRE_OK(cudaMemcpyAsync(back.data(), device, 12, cudaMemcpyDeviceToHost));
  REQUIRE(back[0] == 0x11111111 && back[1] == 0x11111111 && back[2] == 4);
  REQUIRE_OK(cudaFree(device));

  char* pitched = nullptr;
  std::size_t pitch = 0;
  REQUIRE_OK(cudaMallocPitch(&pitched, &pitch, 10, 4));
  REQUIRE(pitch >= 10 && pitch % 32 == 0);
  const char* rows = "0123456789abcdefghijABCDEFGHIJ!\"#$%&/()=";
  REQUIRE_OK(cudaMemcpy2D(pitched, pitch, rows, 10, 10, 4, cudaMemcpyHostToDevice));
  char out[41] = {};
  REQUIRE_OK(cudaMemcpy2D(out, 5, pitched + 2, pitch, 5, 4, cudaMemcpyDeviceToHost));
  REQUIRE(std::memcmp(out, "23456cdefgCDEFG#$%&/", 20) == 0);
  REQUIRE_ERROR(cudaMemcpy2D(pitched, 5, rows, 10, 10, 4, cudaMemcpyDefault),
                cudaErrorInvalidPitchValue);
  REQUIRE_OK(cudaMemset2D(pitched, pitch, 'x', 3, 2));
  REQUIRE_OK(cudaMemcpy2D(out, 4, pitched, pitch, 4, 3, cudaMemcpyDeviceToHost));
  REQUIRE(std::memcmp(out, "xxx3xxxdABCD", 12) == 0);
  REQUIRE_OK(cudaFree(pitched));
}

static void symbols() {
  int values[4] = {};
  REQUIRE_OK(cudaMemcpyFromSymbol(values, table, 16));
  REQUIRE(values[0] == 1 && values[3] == 4);
  const int nine = 9;
  REQUIRE_OK(cudaMemcpyToSymbol(table, &nine, 4, 8));
  REQUIRE_OK(cudaMemcpyFromSymbol(values, table, 8, 8));
  REQUIRE(values[0] == 9 && values[1] == 4);
  REQUIRE_ERROR(cudaMemcpyFromSymbol(values, table, 8, 12), cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaMemcpyFromSymbol(values, values, 8), cudaErrorInvalidSymbol);
  std::size_t bytes = 0;
  REQUIRE_OK(cudaGetSymbolSize(&bytes, factors));
  REQUIRE(bytes == 32);
  void* address = nullptr;
  REQUIRE_OK(cudaGetSymbolAddress(&address, factors));
  REQUIRE_OK(cudaMemset(address, 0, bytes));
  REQUIRE(shared_with_host == 7);
  shared_with_host = 8;
  REQUIRE_OK(cudaMemcpyFromSymbol(values, shared_with_host, 4));
  REQUIRE(values[0] == 8);
}

int main() {
  allocation();
  copies();
  symbols();
  cudaGetLastError();  // the refusals above were wanted
  std::puts("memory: all as it should be");
}
