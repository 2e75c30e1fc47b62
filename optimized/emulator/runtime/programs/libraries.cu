// The libraries that come with the toolkit, as an engineer uses them: CUB's block and device
// primitives, Thrust, barriers and atomics of libcu++. Checks its own results.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>

#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <numeric>
#include <vector>

#include "require.cuh"

constexpr int kThreads = 128;

__global__ void block_sums(const int* in, int* sums) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(in[blockIdx.x * kThreads + threadIdx.x]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

#pragma nv_diag_suppress static_var_with_dynamic_init  // as libcu++ documents: init() does it
__global__ void staged(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int values[kThreads];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = in[threadIdx.x] + round;
    barrier.arrive_and_wait();
    out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
    barrier.arrive_and_wait();
  }
}

__global__ void hands_over(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 42;
    ready.store(1, cuda::std::memory_order_release);
  } else {
    while (ready.load(cuda::std::memory_order_acquire) == 0) {
    }
    *out = *data;
  }
}

struct IsOdd {
  __device__ bool operator()(int value) const { return value % 2 != 0; }
};

/// The last tile is not full: what it holds of items that are not there is computed and dropped.
static void selects() {
  constexpr int kMany = 20000;
  std::vector<int> host(kMany);
  std::iota(host.begin(), host.end(), 1);
  thrust::device_vector<int> in = host, chosen(kMany), count(1);
  std::size_t bytes = 0;
  REQUIRE_OK(cub::DeviceSelect::If(nullptr, bytes, in.data().get(), chosen.data().get(),
                                   count.data().get(), kMany, IsOdd{}));
  void* scratch = nullptr;
  REQUIRE_OK(cudaMalloc(&scratch, bytes));
  REQUIRE_OK(cub::DeviceSelect::If(scratch, bytes, in.data().get(), chosen.data().get(),
                                   count.data().get(), kMany, IsOdd{}));
  REQUIRE(int(count[0]) == kMany / 2 && int(chosen[kMany / 2 - 1]) == kMany - 1);
  REQUIRE_OK(cudaFree(scratch));
}

int main() {
  constexpr int kCount = 4 * kThreads;
  std::vector<int> host(kCount);
  std::iota(host.begin(), host.end(), 1);
  thrust::device_vector<int> in = host, sums(4), scanned(kCount), out(kThreads), total(1);
  block_sums<<<4, kThreads>>>(in.data().get(), sums.data().get());
  REQUIRE(int(sums[0]) == kThreads * (kThreads + 1) / 2);

  std::size_t reduce_bytes = 0, scan_bytes = 0;
  REQUIRE_OK(
      cub::DeviceReduce::Sum(nullptr, reduce_bytes, in.data().get(), total.data().get(), kCount));
  REQUIRE_OK(cub::DeviceScan::InclusiveSum(nullptr, scan_bytes, in.data().get(),
                                           scanned.data().get(), kCount));
  void* scratch = nullptr;
  REQUIRE_OK(cudaMalloc(&scratch, std::max(reduce_bytes, scan_bytes)));
  REQUIRE_OK(
      cub::DeviceReduce::Sum(scratch, reduce_bytes, in.data().get(), total.data().get(), kCount));
  REQUIRE_OK(cub::DeviceScan::InclusiveSum(scratch, scan_bytes, in.data().get(),
                                           scanned.data().get(), kCount));
  REQUIRE(int(total[0]) == kCount * (kCount + 1) / 2);
  REQUIRE(int(scanned[kCount - 1]) == kCount * (kCount + 1) / 2 && int(scanned[2]) == 6);
  REQUIRE(thrust::reduce(in.begin(), in.end()) == kCount * (kCount + 1) / 2);

  staged<<<1, kThreads>>>(in.data().get(), out.data().get());
  REQUIRE(int(out[0]) == kThreads + 2);
  thrust::device_vector<int> data(1), flag(1), seen(1);
  hands_over<<<2, 32>>>(data.data().get(), flag.data().get(), seen.data().get());
  REQUIRE(int(seen[0]) == 42);
  REQUIRE_OK(cudaFree(scratch));
  selects();
  std::puts("libraries: all as it should be");
}
