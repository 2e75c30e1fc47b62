// Code that a program loads by itself, memory pools, attributes of streams, graphs that are
// updated. Checks its own results.
#include "require.cuh"

static const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 bias = 5;
.visible .entry adds(.param .u64 to)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [bias];
  mov.u32 %r2, %tid.x;
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
)";

__global__ void counted(int* total) {
  atomicAdd(total, 1);
}

static void libraries() {
  cudaLibrary_t library;
  REQUIRE_OK(cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel, again, missing;
  REQUIRE_OK(cudaLibraryGetKernel(&kernel, library, "adds"));
  REQUIRE_ERROR(cudaLibraryGetKernel(&missing, library, "subtracts"), cudaErrorSymbolNotFound);
  unsigned count = 0;
  REQUIRE_OK(cudaLibraryGetKernelCount(&count, library));
  REQUIRE_OK(cudaLibraryEnumerateKernels(&again, 1, library));
  REQUIRE(count == 1 && again == kernel);
  void* bias = nullptr;
  std::size_t bytes = 0;
  REQUIRE_OK(cudaLibraryGetGlobal(&bias, &bytes, library, "bias"));
  REQUIRE(bytes == sizeof(int));
  const int seven = 7;
  REQUIRE_OK(cudaMemcpy(bias, &seven, sizeof seven, cudaMemcpyHostToDevice));
  int *out = nullptr, got = 0;
  REQUIRE_OK(cudaMalloc(&out, sizeof *out));
  void* arguments[] = {&out};
  REQUIRE_OK(cudaLaunchKernel(reinterpret_cast<void*>(kernel), 1, 1, arguments, 0, nullptr));
  REQUIRE_OK(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
  REQUIRE(got == 7);
  REQUIRE_OK(cudaLibraryUnload(library));
  REQUIRE_ERROR(cudaLibraryGetKernelCount(&count, library), cudaErrorInvalidResourceHandle);
  REQUIRE_ERROR(
      cudaLibraryLoadFromFile(&library, "no such file", nullptr, nullptr, 0, nullptr, nullptr, 0),
      cudaErrorFileNotFound);
  REQUIRE_OK(cudaFree(out));
}

static void pools() {
  cudaMemPoolProps properties = {};
  cudaMemPool_t pool;
  REQUIRE_OK(cudaMemPoolCreate(&pool, &properties));
  unsigned long long threshold = 123, back = 0;
  REQUIRE_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  REQUIRE_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
  int reuses = 0;
  REQUIRE_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuses));
  REQUIRE(back == 123 && reuses == 1);
  void* room = nullptr;
  REQUIRE_OK(cudaMallocFromPoolAsync(&room, 64, pool, nullptr));
  REQUIRE_OK(cudaFreeAsync(room, nullptr));
  REQUIRE_OK(cudaMemPoolDestroy(pool));
}

static void graphs() {
  int *total = nullptr, got = 0;
  REQUIRE_OK(cudaMalloc(&total, sizeof *total));
  REQUIRE_OK(cudaMemset(total, 0, sizeof *total));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  cudaStreamAttrValue value = {};
  REQUIRE_OK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
  cudaGraph_t once, twice;
  REQUIRE_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  counted<<<1, 1, 0, stream>>>(total);
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  REQUIRE_OK(cudaStreamGetCaptureInfo(stream, &status, &id));
  REQUIRE(status == cudaStreamCaptureStatusActive && id != 0);
  REQUIRE_OK(cudaStreamEndCapture(stream, &once));
  REQUIRE_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  counted<<<1, 1, 0, stream>>>(total);
  counted<<<1, 1, 0, stream>>>(total);
  REQUIRE_OK(cudaStreamEndCapture(stream, &twice));
  std::size_t nodes = 0;
  REQUIRE_OK(cudaGraphGetNodes(twice, nullptr, &nodes));
  REQUIRE(nodes == 2);
  cudaGraphExec_t executable;
  REQUIRE_OK(cudaGraphInstantiate(&executable, once, 0));
  REQUIRE_OK(cudaGraphLaunch(executable, stream));
  cudaGraphExecUpdateResultInfo result;
  REQUIRE_OK(cudaGraphExecUpdate(executable, twice, &result));
  REQUIRE_OK(cudaGraphLaunch(executable, stream));
  REQUIRE_OK(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
  REQUIRE(got == 3);
}

static void registered_memory() {
  int here[64] = {};
  REQUIRE_OK(cudaHostRegister(here, sizeof here, cudaHostRegisterMapped));
  REQUIRE_ERROR(cudaHostRegister(here + 8, 64, 0), cudaErrorHostMemoryAlreadyRegistered);
  int* device = nullptr;
  REQUIRE_OK(cudaHostGetDevicePointer(&device, here, 0));
  counted<<<2, 32>>>(device + 3);
  REQUIRE_OK(cudaDeviceSynchronize());
  REQUIRE(here[3] == 64);
  cudaPointerAttributes attributes;
  REQUIRE_OK(cudaPointerGetAttributes(&attributes, here));
  REQUIRE(attributes.type == cudaMemoryTypeHost);
  REQUIRE_OK(cudaHostUnregister(here));
  REQUIRE_ERROR(cudaHostUnregister(here), cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
}

int main() {
  registered_memory();
  libraries();
  pools();
  graphs();
  cudaGetLastError();  // the refusals above were wanted
  std::puts("loads_code: all as it should be");
}
