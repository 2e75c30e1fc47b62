// Launches in every way, templates, streams, events, graphs, shared memory beyond 48 KB, occupancy;
// and launches that a device refuses.
#include <vector>

#include "require.cuh"

struct Affine {
  int scale, shift;
  double unused;
};

template <typename T>
__global__ void apply(T* values, Affine by, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * T(by.scale) + T(by.shift);
}
__global__ void __launch_bounds__(64) bounded(int* out) {
  out[threadIdx.x] = blockDim.x;
}
__global__ void reversed(int* values) {
  extern __shared__ int staged[];
  staged[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}
__global__ void counted(int* total) {
  atomicAdd(total, 1);
}
__global__ void ranked(int* values, int* sum) {
  values[blockIdx.x] = blockIdx.x + 1;
  if (threadIdx.x == 0) atomicAdd(sum, values[blockIdx.x]);
}

template <typename T>
static std::vector<T> read(const T* device, int count) {
  std::vector<T> host(count);
  REQUIRE_OK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}
template <typename T>
static T* upload(const std::vector<T>& host) {
  T* device = nullptr;
  REQUIRE_OK(cudaMalloc(&device, host.size() * sizeof(T)));
  REQUIRE_OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <typename T>
static void templates() {
  T* values = upload(std::vector<T>(1000, T(3)));
  apply<T><<<4, 256>>>(values, Affine{2, 5, 0}, 999);
  REQUIRE_OK(cudaDeviceSynchronize());
  const std::vector<T> out = read(values, 1000);
  REQUIRE(out[0] == T(11) && out[998] == T(11) && out[999] == T(3));
  REQUIRE_OK(cudaFree(values));
}

static void refused() {
  int* out = upload(std::vector<int>(64, 0));
  bounded<<<1, 64>>>(out);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE(read(out, 64)[63] == 64);
  bounded<<<1, 65>>>(out);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  REQUIRE_OK(cudaGetLastError());
  const dim3 wrong[][2] = {{dim3(0), dim3(1)},          {dim3(1), dim3(0)},
                           {dim3(1), dim3(1025)},       {dim3(1), dim3(1, 1, 65)},
                           {dim3(1, 65536), dim3(1)},   {dim3(1, 1, 65536), dim3(1)},
                           {dim3(0x80000000u), dim3(1)}};
  for (const auto& pair : wrong) {
    counted<<<pair[0], pair[1]>>>(out);
    REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidConfiguration);
  }
  counted<<<1, 1, 0, reinterpret_cast<cudaStream_t>(out)>>>(out);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  REQUIRE_ERROR(cudaLaunchKernel(reinterpret_cast<void*>(&refused), 1, 1, nullptr, 0, nullptr),
                cudaErrorInvalidDeviceFunction);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  REQUIRE_OK(cudaFree(out));
}

static void dynamic_shared() {
  std::vector<int> host(512);
  for (int i = 0; i < 512; ++i) host[i] = i;
  int* values = upload(host);
  reversed<<<1, 512, 2048>>>(values);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE(read(values, 512)[0] == 511);
  reversed<<<1, 512, 49153>>>(values);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  REQUIRE_ERROR(
      cudaFuncSetAttribute(reversed, cudaFuncAttributeMaxDynamicSharedMemorySize, 163 * 1024 + 1),
      cudaErrorInvalidValue);
  REQUIRE_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  REQUIRE_OK(
      cudaFuncSetAttribute(reversed, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  reversed<<<1, 512, 100 * 1024>>>(values);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE(read(values, 512)[0] == 0);
  cudaFuncAttributes attributes;
  REQUIRE_OK(cudaFuncGetAttributes(&attributes, reversed));
  REQUIRE(attributes.maxDynamicSharedSizeBytes == 100 * 1024 && attributes.numRegs > 0);
  REQUIRE_OK(cudaFuncGetAttributes(&attributes, bounded));
  REQUIRE(attributes.maxThreadsPerBlock == 64);
  int blocks = 0;
  REQUIRE_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reversed, 512, 80 * 1024));
  REQUIRE(blocks == 2);
  int grid = 0, block = 0;
  REQUIRE_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, counted));
  REQUIRE(grid > 0 && block > 0 && block <= 1024);
  REQUIRE_OK(cudaFree(values));
}

static void streams_and_graphs() {
  int* total = upload(std::vector<int>(1, 0));
  cudaStream_t stream, other;
  cudaEvent_t begin, end;
  cudaGetLastError();
  REQUIRE_OK(cudaStreamCreate(&stream));
  REQUIRE_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  REQUIRE_OK(cudaEventCreate(&begin));
  REQUIRE_OK(cudaEventCreate(&end));
  float milliseconds = -1;
  REQUIRE_ERROR(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
  REQUIRE_OK(cudaEventRecord(begin, stream));
  counted<<<2, 32, 0, stream>>>(total);
  REQUIRE_OK(cudaEventRecord(end, stream));
  REQUIRE_OK(cudaStreamWaitEvent(other, end, 0));
  REQUIRE_OK(cudaEventSynchronize(end));
  REQUIRE_OK(cudaEventElapsedTime(&milliseconds, begin, end));
  REQUIRE(milliseconds >= 0);
  REQUIRE(read(total, 1)[0] == 64);

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  REQUIRE_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  counted<<<1, 8, 0, stream>>>(total);
  REQUIRE_OK(cudaEventRecord(begin, stream));
  REQUIRE_OK(cudaStreamWaitEvent(other, begin, 0));
  counted<<<1, 1, 0, other>>>(total);
  REQUIRE_OK(cudaStreamEndCapture(stream, &graph));
  REQUIRE(read(total, 1)[0] == 64);  // captured, not run
  REQUIRE_OK(cudaGraphInstantiate(&executable, graph, 0));
  REQUIRE_OK(cudaGraphLaunch(executable, stream));
  REQUIRE_OK(cudaGraphLaunch(executable, stream));
  REQUIRE(read(total, 1)[0] == 64 + 2 * 9);
  counted<<<1, 1, 0, other>>>(total);
  REQUIRE(read(total, 1)[0] == 64 + 2 * 9 + 1);
  REQUIRE_OK(cudaGraphExecDestroy(executable));
  REQUIRE_OK(cudaGraphDestroy(graph));

  int* later = nullptr;
  REQUIRE_OK(cudaMallocAsync(&later, 4, stream));
  REQUIRE_OK(cudaMemsetAsync(later, 0, 4, stream));
  REQUIRE_OK(cudaFreeAsync(later, stream));
  REQUIRE_OK(cudaEventDestroy(begin));
  REQUIRE_OK(cudaStreamDestroy(stream));
  REQUIRE_ERROR(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  REQUIRE_OK(cudaFree(total));
}

static void other_launches() {
  int *values = upload(std::vector<int>(20, 0)), *sum = upload(std::vector<int>(1, 0));
  void* arguments[] = {&values, &sum};
  REQUIRE_OK(cudaLaunchCooperativeKernel(ranked, 20, 32, arguments, 0, nullptr));
  REQUIRE(read(sum, 1)[0] == 210);
  REQUIRE_ERROR(cudaLaunchCooperativeKernel(ranked, 1000000, 1024, arguments, 0, nullptr),
                cudaErrorCooperativeLaunchTooLarge);
  cudaLaunchConfig_t config = {};
  config.gridDim = 3;
  config.blockDim = 32;
  REQUIRE_OK(cudaMemset(sum, 0, 4));
  REQUIRE_OK(cudaLaunchKernelEx(&config, counted, sum));
  REQUIRE(read(sum, 1)[0] == 96);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {3, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  REQUIRE_ERROR(cudaLaunchKernelEx(&config, counted, sum), cudaErrorNotSupported);
  REQUIRE_OK(cudaFree(values));
  REQUIRE_OK(cudaFree(sum));
}

int main() {
  templates<int>();
  templates<float>();
  templates<double>();
  refused();
  dynamic_shared();
  streams_and_graphs();
  other_launches();
  cudaGetLastError();  // the refusals above were wanted
  std::puts("launches: all as it should be");
}
