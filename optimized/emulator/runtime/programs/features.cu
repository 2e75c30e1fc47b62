// What a program of an attention engineer's uses of CUDA, in one: symbols, templates, streams,
// events, asynchronous allocation, large shared memory, extended and cooperative launches,
// occupancy, printf, assert. Checks its own results.
#include <cooperative_groups.h>
#include <cuda_fp16.h>

#include <cassert>
#include <cmath>
#include <vector>

#include "require.cuh"

namespace cg = cooperative_groups;

__device__ int device_counter = 5;
__device__ float device_table[4];
__constant__ float constant_scale[2] = {2.0f, 0.5f};

__global__ void counts(int* seen) {
  const int before = atomicAdd(&device_counter, 1);
  if (before >= 0) atomicAdd(seen, 1);
}

template <typename T, int kWidth>
__global__ void scaled(const T* in, T* out, int rows) {
  const int row = blockIdx.x;
  for (int column = threadIdx.x; column < kWidth && row < rows; column += blockDim.x) {
    out[row * kWidth + column] = T(float(in[row * kWidth + column]) * constant_scale[0]);
  }
}

/// Softmax of one row per block, by shuffles and dynamic shared memory.
__global__ void softmax(const float* in, float* out, int width) {
  extern __shared__ float row[];
  __shared__ float parts[32];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  float most = -INFINITY;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    row[i] = in[blockIdx.x * width + i];
    most = fmaxf(most, row[i]);
  }
  for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, warp.shfl_xor(most, offset));
  if (warp.thread_rank() == 0) parts[warp.meta_group_rank()] = most;
  block.sync();
  for (unsigned i = 0; i < warp.meta_group_size(); ++i) most = fmaxf(most, parts[i]);
  block.sync();
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += row[i] = expf(row[i] - most);
  for (int offset = 16; offset > 0; offset /= 2) sum += warp.shfl_xor(sum, offset);
  if (warp.thread_rank() == 0) parts[warp.meta_group_rank()] = sum;
  block.sync();
  float total = 0;
  for (unsigned i = 0; i < warp.meta_group_size(); ++i) total += parts[i];
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[blockIdx.x * width + i] = row[i] / total;
  }
}

/// Each round every block passes its value to the next one.
__global__ void passes_on(int* values, int rounds) {
  const auto grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    const int mine = values[blockIdx.x];
    grid.sync();
    if (threadIdx.x == 0) values[(blockIdx.x + 1) % gridDim.x] = mine;
    grid.sync();
  }
}

__global__ void says(int number) {
  assert(number > 0);
  if (threadIdx.x == 1) printf("thread %u says %d, %.2f and %s\n", threadIdx.x, number, 0.25, "so");
}

static void symbols() {
  int* seen = nullptr;
  REQUIRE_OK(cudaMalloc(&seen, sizeof(int)));
  REQUIRE_OK(cudaMemset(seen, 0, sizeof(int)));
  counts<<<3, 50>>>(seen);
  int counter = 0;
  REQUIRE_OK(cudaMemcpyFromSymbol(&counter, device_counter, sizeof counter));
  REQUIRE(counter == 155);
  const float table[4] = {1, 2, 3, 4};
  REQUIRE_OK(cudaMemcpyToSymbol(device_table, table, sizeof table));
  float second = 0;
  REQUIRE_OK(cudaMemcpyFromSymbol(&second, device_table, sizeof second, sizeof(float)));
  REQUIRE(second == 2);
  void* address = nullptr;
  std::size_t bytes = 0;
  REQUIRE_OK(cudaGetSymbolAddress(&address, device_table));
  REQUIRE_OK(cudaGetSymbolSize(&bytes, device_table));
  REQUIRE(address != nullptr && bytes == sizeof table);
  REQUIRE_OK(cudaFree(seen));
}

template <typename T>
static void templates() {
  constexpr int kRows = 3, kWidth = 70;
  const float scale[1] = {4.0f};
  REQUIRE_OK(cudaMemcpyToSymbol(constant_scale, scale, sizeof scale));
  std::vector<T> host(kRows * kWidth);
  for (int i = 0; i < kRows * kWidth; ++i) host[i] = T(float(i % 17));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  T *in = nullptr, *out = nullptr;
  const std::size_t bytes = host.size() * sizeof(T);
  REQUIRE_OK(cudaMallocAsync(&in, bytes, stream));
  REQUIRE_OK(cudaMallocAsync(&out, bytes, stream));
  REQUIRE_OK(cudaMemcpyAsync(in, host.data(), bytes, cudaMemcpyHostToDevice, stream));
  cudaEvent_t begin, end;
  REQUIRE_OK(cudaEventCreate(&begin));
  REQUIRE_OK(cudaEventCreate(&end));
  REQUIRE_OK(cudaEventRecord(begin, stream));
  scaled<T, kWidth><<<kRows, 32, 0, stream>>>(in, out, kRows);
  REQUIRE_OK(cudaEventRecord(end, stream));
  REQUIRE_OK(cudaEventSynchronize(end));
  float milliseconds = -1;
  REQUIRE_OK(cudaEventElapsedTime(&milliseconds, begin, end));
  REQUIRE(milliseconds >= 0);
  std::vector<T> back(host.size());
  REQUIRE_OK(cudaMemcpyAsync(back.data(), out, bytes, cudaMemcpyDeviceToHost, stream));
  REQUIRE_OK(cudaStreamSynchronize(stream));
  for (std::size_t i = 0; i < host.size(); ++i) REQUIRE(float(back[i]) == 4 * float(host[i]));
  REQUIRE_OK(cudaFreeAsync(in, stream));
  REQUIRE_OK(cudaFreeAsync(out, stream));
  REQUIRE_OK(cudaStreamDestroy(stream));
}

static void large_shared_memory() {
  constexpr int kWidth = 20000, kRows = 2;  // 80 kB a row
  std::vector<float> host(kRows * kWidth);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i % 7);
  float *in = nullptr, *out = nullptr;
  REQUIRE_OK(cudaMalloc(&in, host.size() * sizeof(float)));
  REQUIRE_OK(cudaMalloc(&out, host.size() * sizeof(float)));
  REQUIRE_OK(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kWidth * sizeof(float)));
  // As much as the architecture has that the kernel was built for, and no more.
  cudaFuncAttributes built;
  REQUIRE_OK(cudaFuncGetAttributes(&built, softmax));
  const int most = (built.ptxVersion >= 90 ? 227 : 163) * 1024 - int(built.sharedSizeBytes);
  const auto asked = cudaFuncAttributeMaxDynamicSharedMemorySize;
  REQUIRE_OK(cudaFuncSetAttribute(softmax, asked, most));
  REQUIRE_ERROR(cudaFuncSetAttribute(softmax, asked, most + 1), cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  int blocks = 0;
  REQUIRE_OK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, softmax, 256, kWidth * sizeof(float)));
  REQUIRE(blocks >= 1);
  cudaLaunchConfig_t config = {};
  config.gridDim = kRows;
  config.blockDim = 256;
  config.dynamicSmemBytes = kWidth * sizeof(float);
  const float* source = in;
  int width = kWidth;
  void* arguments[] = {&source, &out, &width};
  REQUIRE_OK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(softmax), arguments));
  REQUIRE_OK(cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += host[i];
  REQUIRE(std::fabs(sum - 1) < kWidth * 0x1p-23);  // each weight is off by a few 2^-24
  REQUIRE(host[6] > host[5] && host[5] > host[4]);
  REQUIRE_OK(cudaFree(in));
  REQUIRE_OK(cudaFree(out));
}

static void cooperative_launch() {
  int device_supports = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&device_supports, cudaDevAttrCooperativeLaunch, 0));
  REQUIRE(device_supports == 1);
  constexpr int kBlocks = 5;
  int host[kBlocks] = {10, 20, 30, 40, 50}, rounds = 3;
  int* values = nullptr;
  REQUIRE_OK(cudaMalloc(&values, sizeof host));
  REQUIRE_OK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  void* arguments[] = {&values, &rounds};
  REQUIRE_OK(cudaLaunchCooperativeKernel(passes_on, kBlocks, 64, arguments, 0, nullptr));
  REQUIRE_OK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(host[0] == 30 && host[3] == 10);
  REQUIRE_OK(cudaFree(values));
}

int main() {
  symbols();
  templates<float>();
  templates<__half>();
  large_shared_memory();
  cooperative_launch();
  int grid = 0, block = 0;
  REQUIRE_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, counts));
  REQUIRE(grid > 0 && block > 0);
  says<<<1, 2>>>(7);
  REQUIRE_OK(cudaDeviceSynchronize());
  std::puts("features: all as it should be");
}
