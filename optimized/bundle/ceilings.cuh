// What this machine can do at most, as measured by the simplest kernels that do nothing else: copy
// memory, multiply on tensor cores by mma.sync, and fused multiply-adds in f32. Shares of these are
// shares of what a kernel of our kind could reach; wgmma, which ours do not use, may exceed them.
#pragma once
#include <cuda_runtime.h>

#include "optimized/bundle/require.cuh"
#include "optimized/kernels/mma.cuh"

namespace attest::bundle {

struct Ceilings {
  double copy_bytes = 0, tensor_flops = 0, f32_flops = 0;  // per second
};

__global__ void copies(const uint4* from, uint4* to, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

constexpr int kChains = 8;  // independent sums of a warp: enough to hide the latency of one

/// 2 * 16 * 8 * 16 operations per chain, round and warp.
__global__ void multiplies_matrices(int rounds, float* out) {
  float sums[kChains][4] = {};
  const uint32_t a[4] = {threadIdx.x, 0, 0, 0};
  for (int i = 0; i < rounds; ++i) {
    for (int chain = 0; chain < kChains; ++chain) {
      kernels::multiply_add<ATTEST_BF16>(sums[chain], a, static_cast<uint32_t>(i), 0);
    }
  }
  float sum = 0;
  for (const auto& each : sums) sum += each[0] + each[1] + each[2] + each[3];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// 2 operations per chain, round and thread.
__global__ void multiplies_and_adds(int rounds, float factor, float* out) {
  float sums[kChains];  // none equal to another, or the compiler would keep one of them
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = float(threadIdx.x + chain);
  for (int i = 0; i < rounds; ++i) {
    for (float& sum : sums) sum = fmaf(sum, factor, factor);
  }
  float all = 0;
  for (const float sum : sums) all += sum;
  out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

/// `small`: for the emulator, where only that it runs matters.
inline Ceilings measured_ceilings(int repetitions, bool small) {
  cudaDeviceProp machine{};
  require(cudaGetDeviceProperties(&machine, 0), "cudaGetDeviceProperties");
  constexpr int kThreads = 256, kBlocksPerSm = 8;  // a full multiprocessor: 2048 threads
  const int blocks = small ? 1 : machine.multiProcessorCount * kBlocksPerSm;
  const int rounds = small ? 2 : 4096;
  // 1 GiB read and 1 GiB written: far more than an L2 cache holds (50 MB on an H100).
  const size_t bytes = small ? size_t{1} << 16 : size_t{1} << 30;
  uint4 *from = nullptr, *to = nullptr;
  require(cudaMalloc(&from, bytes), "cudaMalloc");
  require(cudaMalloc(&to, bytes), "cudaMalloc");
  require(cudaMemset(from, 1, bytes), "cudaMemset");
  Ceilings ceilings;
  ceilings.copy_bytes = 2.0 * double(bytes) / median_seconds(repetitions, [&] {
                          copies<<<blocks, kThreads>>>(from, to, bytes / sizeof(uint4));
                        });
  float* out = reinterpret_cast<float*>(to);
  const double threads = double(blocks) * kThreads;
  ceilings.tensor_flops =
      threads / 32 * rounds * kChains * (2.0 * 16 * 8 * 16) /
      median_seconds(repetitions, [&] { multiplies_matrices<<<blocks, kThreads>>>(rounds, out); });
  ceilings.f32_flops = threads * rounds * kChains * 2.0 / median_seconds(repetitions, [&] {
                         multiplies_and_adds<<<blocks, kThreads>>>(rounds, 0.5F, out);
                       });
  require(cudaDeviceSynchronize(), "the ceilings");
  require(cudaFree(from), "cudaFree");
  require(cudaFree(to), "cudaFree");
  return ceilings;
}

}  // namespace attest::bundle
