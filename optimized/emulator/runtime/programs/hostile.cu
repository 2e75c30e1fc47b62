// Programs that a testbed must survive, chosen by the argument: kernels and host code at their
// worst. What each leaves behind is judged from outside.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "require.cuh"

__global__ void counted(int* total) {
  atomicAdd(total, 1);
}
__global__ void endless(volatile int* flag) {
  while (*flag == 0) {
  }
}
__device__ __noinline__ int deeper(volatile int* depth) {
  int here[64];
  here[*depth & 63] = *depth;
  *depth = *depth + 1;
  return deeper(depth) + here[*depth & 63];
}
__global__ void recursion(int* depth) {
  *depth = deeper(depth);
}
__global__ void writes_to(int* address) {
  address[threadIdx.x] = 1;
}
__global__ void floods(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %d of a flood that nobody wants to read\n", i);
}

__global__ void nothing() {}

static int* total = nullptr;
static void one_launch() {
  counted<<<1, 32>>>(total);
  REQUIRE_OK(cudaDeviceSynchronize());
}

static void kernels(const char* what) {
  if (std::strcmp(what, "endless") == 0) endless<<<2, 32>>>(total);
  if (std::strcmp(what, "recursion") == 0) recursion<<<1, 1>>>(total);
  if (std::strcmp(what, "null") == 0) writes_to<<<1, 32>>>(nullptr);
  if (std::strcmp(what, "wild") == 0) writes_to<<<1, 32>>>(reinterpret_cast<int*>(0xdead00000000));
  if (std::strcmp(what, "kernel_space") == 0) {
    writes_to<<<1, 32>>>(reinterpret_cast<int*>(0xffffffff80000000));
  }
  if (std::strcmp(what, "stack") == 0) {
    int here[32] = {};
    writes_to<<<1, 32>>>(here);
    REQUIRE(here[0] == 0 && here[31] == 0);
  }
  if (std::strcmp(what, "heap") == 0) {
    std::vector<int> here(1 << 20);
    writes_to<<<1, 32>>>(here.data());
    REQUIRE(here[0] == 0);
  }
  if (std::strcmp(what, "blocks") == 0) nothing<<<2000000000, 32>>>();
  if (std::strcmp(what, "flood") == 0) floods<<<4, 128>>>(1000);
}

static void memory(const char* what) {
  if (std::strcmp(what, "huge") != 0) return;
  void* room = nullptr;
  for (int bits = 40; bits < 64; ++bits) {
    REQUIRE_ERROR(cudaMalloc(&room, std::size_t{1} << bits), cudaErrorMemoryAllocation);
  }
  REQUIRE_ERROR(cudaMalloc(&room, ~std::size_t{0}), cudaErrorMemoryAllocation);
  cudaGetLastError();
  one_launch();
}

static void host_code(const char* what, char** argv) {
  if (std::strcmp(what, "abort") == 0) {
    writes_to<<<1, 1>>>(nullptr);
    std::abort();
  }
  if (std::strcmp(what, "segfault") == 0) {
    one_launch();
    std::raise(SIGSEGV);
  }
  if (std::strcmp(what, "fork") == 0) {
    one_launch();
    const pid_t child = fork();
    one_launch();
    if (child == 0) std::exit(0);
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  }
  if (std::strcmp(what, "exec") == 0) {
    one_launch();
    char again[] = "null";
    char* words[] = {argv[0], again, nullptr};
    execv("/proc/self/exe", words);
  }
  if (std::strcmp(what, "exit_in_callback") == 0) {
    one_launch();
    cudaLaunchHostFunc(
        nullptr, [](void*) { std::exit(3); }, nullptr);
  }
  if (std::strcmp(what, "closes_everything") == 0) {
    one_launch();
    for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
    writes_to<<<1, 1>>>(nullptr);
  }
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  REQUIRE_OK(cudaMalloc(&total, sizeof *total));
  REQUIRE_OK(cudaMemset(total, 0, sizeof *total));
  kernels(argv[1]);
  memory(argv[1]);
  host_code(argv[1], argv);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
