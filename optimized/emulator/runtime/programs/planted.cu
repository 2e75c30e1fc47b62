// One planted bug of each kind that a checker finds, and its correct twin: the argument names the
// bug, or is `correct` for all the twins, which check their own results. The line that a checker
// should name carries the bug's name in a comment (PLANTED).
#include <cooperative_groups.h>

#include <cstring>
#include <vector>

#include "require.cuh"

namespace cg = cooperative_groups;

constexpr int kThreads = 64;

__global__ void beyond(int* out, int count, bool wrong) {
  const int i = threadIdx.x;
  if (i < count + wrong) out[i] = i;  // PLANTED beyond
}

__global__ void freed(int* values) {
  values[threadIdx.x] = 1;  // PLANTED freed
}

__global__ void misaligned(const char* bytes, int* out, bool wrong) {
  const char* at = bytes + 4 * threadIdx.x + (wrong && threadIdx.x == 5 ? 2 : 0);
  out[threadIdx.x] = *reinterpret_cast<const int*>(at);  // PLANTED misaligned
}

__global__ void unset_shared(int* out, bool wrong) {
  __shared__ int staged[kThreads];
  const int i = threadIdx.x;
  if (!wrong || i != 50) staged[i] = i;
  __syncthreads();
  out[i] = staged[kThreads - 1 - i] + 1;  // PLANTED unset_shared
}

__global__ void unset_global(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;  // PLANTED unset_global
}

__global__ void no_syncthreads(int* out, bool wrong) {
  __shared__ int staged[kThreads];
  const int i = threadIdx.x;
  staged[i] = -1;
  __syncthreads();
  staged[i] = i;  // PLANTED no_syncthreads
  if (!wrong) __syncthreads();
  out[i] = staged[(i + 32) % kThreads];  // PLANTED no_syncthreads
}

__global__ void no_syncwarp(int* out, bool wrong) {
  __shared__ int staged[32];
  const int i = threadIdx.x;
  staged[i] = -1;
  __syncwarp();
  staged[i] = i;  // PLANTED no_syncwarp
  if (!wrong) __syncwarp();
  out[i] = staged[i ^ 1];  // PLANTED no_syncwarp
}

__global__ void no_wait_group(const int4* in, int* out, bool wrong) {
  __shared__ int4 staged[32];
  const int i = threadIdx.x;
  staged[i] = make_int4(0, 0, 0, 0);
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(&staged[i]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n"
               :
               : "r"(to), "l"(in + i)  // PLANTED no_wait_group
               : "memory");
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  if (!wrong) asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  out[i] = staged[i].x;  // PLANTED no_wait_group
}

__global__ void divergent_barrier(int* out, bool wrong) {
  const int i = threadIdx.x;
  if (wrong && i % 32 < 8) {
    out[i] = 1;
    __syncthreads();  // PLANTED divergent_barrier
  } else {
    out[i] = 2;
    __syncthreads();  // PLANTED divergent_barrier
  }
}

__global__ void no_grid_sync(int* values, int* out, bool wrong) {
  const int block = blockIdx.x, blocks = gridDim.x;
  if (threadIdx.x == 0) values[block] = block;  // PLANTED no_grid_sync
  if (!wrong) cg::this_grid().sync();
  if (threadIdx.x == 0) out[block] = values[(block + 1) % blocks];  // PLANTED no_grid_sync
}

__global__ void lane_missing(int* out, bool wrong) {
  const unsigned mask = wrong ? 0x7fffffffu : 0xffffffffu;
  int got = 0;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, %2;\n"
               : "=r"(got)
               : "r"(threadIdx.x), "r"(mask));  // PLANTED lane_missing
  out[threadIdx.x] = got;
}

// Lanes that have nothing to add leave early; what shfl takes from them is undefined.
__global__ void lanes_gone(int* sum, int count, bool wrong) {
  const int i = threadIdx.x;
  if (i >= count) return;
  int v = i;
  for (int d = 16; d > 0; d /= 2) {
    const int other = __shfl_down_sync(0xffffffffu, v, d);  // PLANTED lanes_gone
    if (wrong || i + d < count) v += other;
  }
  if (i == 0) *sum = v;
}

// The last block to arrive sums what all blocks wrote.
__global__ void no_threadfence(int* values, unsigned* arrived, int* sum, bool wrong) {
  if (threadIdx.x != 0) return;
  values[blockIdx.x] = blockIdx.x + 1;  // PLANTED no_threadfence
  if (!wrong) __threadfence();
  if (atomicAdd(arrived, 1u) != gridDim.x - 1) return;
  if (!wrong) __threadfence();
  int total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += values[i];  // PLANTED no_threadfence
  *sum = total;
}

__global__ void deadlock(int* out, bool wrong) {
  if (!wrong || threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // PLANTED deadlock
  }
  out[threadIdx.x] = 1;
}

// A thread per element, of which a block cannot have as many as are wanted.
__global__ void too_wide(int* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void forgets_last(int* out, bool wrong) {
  if (!wrong || threadIdx.x + 1 < blockDim.x) out[threadIdx.x] = 1;
}

struct Padded {
  float value;
  double weight;
};
__global__ void padded(Padded* out) {
  out[threadIdx.x].value = 1;
  out[threadIdx.x].weight = 2;
}

template <typename T>
static T* filled(int count, int first) {
  std::vector<int> host(count * sizeof(T) / sizeof(int));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = first + static_cast<int>(i);
  T* device = nullptr;
  REQUIRE_OK(cudaMalloc(&device, count * sizeof(T)));
  REQUIRE_OK(cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}
static int* room(int count) {
  int* device = nullptr;
  REQUIRE_OK(cudaMalloc(&device, count * sizeof(int)));
  return device;
}
/// One int of the device's memory; when something is planted nobody cares which.
static int read(const int* device, int index) {
  int value = 0;
  cudaMemcpy(&value, device + index, sizeof value, cudaMemcpyDeviceToHost);
  return value;
}

static bool asked(const char* which, const char* name) {
  return std::strcmp(which, name) == 0 || std::strcmp(which, "correct") == 0;
}

static void memory_bugs(const char* which, bool wrong) {
  if (asked(which, "beyond")) {
    int* out = room(40);
    beyond<<<1, kThreads>>>(out, 40, wrong);
    REQUIRE(wrong || read(out, 39) == 39);
  }
  if (asked(which, "freed")) {
    int* values = room(kThreads);
    if (wrong) REQUIRE_OK(cudaFree(values));
    freed<<<1, kThreads>>>(values);
    REQUIRE(wrong || read(values, 5) == 1);
  }
  if (asked(which, "misaligned")) {
    int* out = room(kThreads);
    misaligned<<<1, kThreads>>>(filled<char>(4 * kThreads + 4, 7), out, wrong);
    REQUIRE(wrong || read(out, 9) == 16);
  }
  if (asked(which, "unset_shared")) {
    int* out = room(kThreads);
    unset_shared<<<1, kThreads>>>(out, wrong);
    REQUIRE(wrong || read(out, 0) == kThreads);
  }
  if (asked(which, "unset_global")) {
    int* out = room(kThreads);
    unset_global<<<1, kThreads>>>(wrong ? room(kThreads) : filled<int>(kThreads, 3), out);
    REQUIRE(wrong || read(out, 1) == 5);
  }
}

static void order_bugs(const char* which, bool wrong) {
  if (asked(which, "no_syncthreads")) {
    int* out = room(kThreads);
    no_syncthreads<<<1, kThreads>>>(out, wrong);
    REQUIRE(wrong || read(out, 0) == 32);
  }
  if (asked(which, "no_syncwarp")) {
    int* out = room(32);
    no_syncwarp<<<1, 32>>>(out, wrong);
    REQUIRE(wrong || read(out, 0) == 1);
  }
  if (asked(which, "no_wait_group")) {
    int* out = room(32);
    no_wait_group<<<1, 32>>>(filled<int4>(32, 0), out, wrong);
    REQUIRE(wrong || read(out, 3) == 12);
  }
  if (asked(which, "no_grid_sync")) {
    int *values = filled<int>(4, 90), *out = room(4);
    void* arguments[] = {&values, &out, &wrong};
    cudaLaunchCooperativeKernel(no_grid_sync, 4, 32, arguments, 0, nullptr);
    REQUIRE(wrong || read(out, 3) == 0);
  }
  if (asked(which, "no_threadfence")) {
    int *values = room(6), *sum = room(1);
    unsigned* arrived = nullptr;
    REQUIRE_OK(cudaMalloc(&arrived, sizeof *arrived));
    REQUIRE_OK(cudaMemset(arrived, 0, sizeof *arrived));
    no_threadfence<<<6, 32>>>(values, arrived, sum, wrong);
    REQUIRE(wrong || read(sum, 0) == 21);
  }
}

static void barrier_bugs(const char* which, bool wrong) {
  if (asked(which, "divergent_barrier")) {
    int* out = room(kThreads);
    divergent_barrier<<<1, kThreads>>>(out, wrong);
    REQUIRE(wrong || read(out, 3) == 2);
  }
  if (asked(which, "lane_missing")) {
    int* out = room(32);
    lane_missing<<<1, 32>>>(out, wrong);
    REQUIRE(wrong || read(out, 3) == 2);
  }
  if (asked(which, "lanes_gone")) {
    int* sum = room(1);
    lanes_gone<<<1, 32>>>(sum, 20, wrong);
    REQUIRE(wrong || read(sum, 0) == 190);
  }
  if (asked(which, "deadlock")) {
    int* out = room(kThreads);
    deadlock<<<1, kThreads>>>(out, wrong);
    REQUIRE(wrong || read(out, 33) == 1);
  }
}

/// Mistakes of host code, which names no line.
static void host_bugs(const char* which, bool wrong) {
  constexpr int kWide = 2048;
  if (asked(which, "too_wide")) {
    int* out = room(kWide);
    too_wide<<<1, kWide>>>(out);
    if (!wrong && cudaGetLastError() != cudaSuccess) too_wide<<<2, kWide / 2>>>(out);
    REQUIRE(wrong || read(out, kWide - 1) == 1);
  }
  if (asked(which, "copies_too_much")) {
    int host[kThreads] = {}, *device = filled<int>(kThreads / 2, 1);
    cudaMemcpy(host, device, sizeof host / (wrong ? 1 : 2), cudaMemcpyDeviceToHost);
    REQUIRE(wrong || host[1] == 2);
  }
  if (asked(which, "forgets_last")) {
    int host[kThreads], *out = room(kThreads);
    forgets_last<<<1, kThreads>>>(out, wrong);
    REQUIRE_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    REQUIRE(wrong || host[kThreads - 1] == 1);
    Padded pairs[kThreads], *device = nullptr;  // whose padding nobody writes
    REQUIRE_OK(cudaMalloc(&device, sizeof pairs));
    padded<<<1, kThreads>>>(device);
    REQUIRE_OK(cudaMemcpy(pairs, device, sizeof pairs, cudaMemcpyDeviceToHost));
    REQUIRE_OK(cudaMemcpy(pairs, device, sizeof pairs[0], cudaMemcpyDeviceToHost));
    REQUIRE(pairs[5].weight == 2);
  }
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  const bool wrong = std::strcmp(argv[1], "correct") != 0;
  memory_bugs(argv[1], wrong);
  order_bugs(argv[1], wrong);
  barrier_bugs(argv[1], wrong);
  host_bugs(argv[1], wrong);
  const cudaError_t error = cudaDeviceSynchronize();
  REQUIRE(wrong || error == cudaSuccess);
  std::printf("%s: %s\n", argv[1], cudaGetErrorName(error));
}
