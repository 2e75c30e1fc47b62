// Processes that end before their time, chosen by the argument: by signals, by aborting, by leaving
// their kernels to a process that nobody waits for; and one that makes the emulator itself die.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "require.cuh"

__global__ void counted(int* total) {
  atomicAdd(total, 1);
}
__global__ void fills(int* values) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
__global__ void beyond(int* values) {
  values[threadIdx.x + 1] = 1;
}

// The emulator starts a thread in the middle of a launch. That this goes wrong stands for any fault
// of its own.
static bool threads_are_deadly = false;
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  if (threads_are_deadly) *reinterpret_cast<volatile int*>(64) = 1;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, start,
                                                                      argument);
}

static int* values = nullptr;
static void one_launch() {
  counted<<<1, 32>>>(values);
  REQUIRE_OK(cudaDeviceSynchronize());
}

static void leaves_a_daemon() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  usleep(300'000);
  beyond<<<1, 256>>>(values);
  cudaDeviceSynchronize();
  std::exit(0);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
  REQUIRE_OK(cudaMalloc(&values, 1024));
  REQUIRE_OK(cudaMemset(values, 0, 1024));
  if (is("daemon")) leaves_a_daemon();
  one_launch();
  if (is("segfault")) *reinterpret_cast<volatile int*>(64) = 1;
  if (is("sent")) kill(getpid(), SIGBUS);
  if (is("abort")) std::abort();
  if (is("killed")) kill(getpid(), SIGKILL);
  if (is("_exit")) _exit(0);
  if (is("copies_from_nowhere"))
    cudaMemcpy(values, reinterpret_cast<void*>(64), 4, cudaMemcpyDefault);
  if (is("child")) {
    const pid_t child = fork();
    if (child == 0) {
      one_launch();
      std::abort();
    }
    waitpid(child, nullptr, 0);
  }
  if (is("handler")) {
    signal(SIGSEGV, [](int) { _exit(7); });
    *reinterpret_cast<volatile int*>(64) = 1;
  }
  if (is("emulator")) {
    threads_are_deadly = true;
    fills<<<8, 32>>>(values);
  }
}
