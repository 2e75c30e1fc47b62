// A CUDA plugin that goes wrong in one way per call, as the Problem's scale says. Otherwise o and
// lse are zeros.
#include <pthread.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/test_plugins/behaviours.h"

namespace {

__global__ void write_zeros(float* o, std::int64_t elements, float* lse, std::int64_t rows) {
  for (std::int64_t n = threadIdx.x; n < elements; n += blockDim.x) o[n] = 0;
  for (std::int64_t n = threadIdx.x; n < rows; n += blockDim.x) lse[n] = 0;
}

// One thread of the second warp does it, so that the finding has to say which.
__global__ void touch(const float* from, float* to) {
  if (threadIdx.x == 37) *to = *from;
}

__global__ void spin(volatile float* o) {
  while (o[0] == 0) {
  }
}

__global__ void count_up(volatile float* o) {
  while (true) o[0] = o[0] + 1;
}

template <int kNumber>
__global__ void write_second(float* o) {
  *o = 0 * kNumber;
}

__global__ void reach_unsupported(float* o) {
  asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(o));
}

std::int64_t elements_of(const DLTensor& tensor) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < tensor.ndim; ++axis) elements *= tensor.shape[axis];
  return elements;
}

float* data_of(const DLTensor& tensor) {
  return static_cast<float*>(tensor.data);
}

// Dense tensors: the tests use layout bhtd.
std::int32_t prefill(const AttestAttention* a) {
  auto* stream = static_cast<cudaStream_t>(a->stream);
  const auto behaviour = static_cast<Behaviour>(static_cast<int>(a->problem.softmax_scale));
  float* q = data_of(a->q);
  float* k_end = data_of(a->k) + elements_of(a->k);
  float* v_end = data_of(a->v) + elements_of(a->v);
  float* o = data_of(a->o);
  if (behaviour == RETURNS_ERROR) return 7;
  write_zeros<<<1, 64, 0, stream>>>(o, elements_of(a->o), data_of(a->lse), elements_of(a->lse));
  if (behaviour == READS_BEHIND_K) touch<<<1, 64, 0, stream>>>(k_end, o);
  if (behaviour == WRITES_BEHIND_V) touch<<<1, 64, 0, stream>>>(q, v_end);
  if (behaviour == WRITES_BEFORE_Q) touch<<<1, 64, 0, stream>>>(q, q - 1);
  if (behaviour == CHANGES_Q) touch<<<1, 64, 0, stream>>>(q, q + 1);
  if (behaviour == WRITES_NULL) touch<<<1, 64, 0, stream>>>(q, nullptr);
  if (behaviour == REACHES_UNSUPPORTED) reach_unsupported<<<1, 64, 0, stream>>>(o);
  if (behaviour == FAULTS_THEN_SECOND) touch<<<1, 64, 0, stream>>>(q, nullptr);
  if (behaviour == FAULTS_THEN_SECOND || behaviour == LAUNCHES_SECOND) {
    write_second<2><<<1, 1, 0, stream>>>(o);
    return static_cast<std::int32_t>(cudaGetLastError());
  }
  if (behaviour == SPINS) count_up<<<1, 1, 0, stream>>>(o);
  if (behaviour == ABORTS) {
    // What abort() of the emulator's own would look like, in the middle of a kernel.
    std::thread([emulator = pthread_self()] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      pthread_kill(emulator, SIGABRT);
    }).detach();
    count_up<<<1, 1, 0, stream>>>(o);
  }
  if (behaviour == COPIES_FROM_NOWHERE)
    cudaMemcpy(o, reinterpret_cast<void*>(64), 4, cudaMemcpyDefault);
  if (behaviour == HANGS) spin<<<1, 64, 0, stream>>>(o);
  // More threads than a block can have: an error that only the runtime's state remembers.
  if (behaviour == DIVIDES_BY_ZERO) touch<<<1, 4096, 0, stream>>>(q, o);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const AttestSubject* attest_subject(
    std::uint32_t) {
  static const AttestSubject subject = [] {
    AttestSubject table{};
    table.abi_version = ATTEST_ABI_VERSION;
    table.struct_bytes = sizeof(table);
    table.name = "strays";
    table.device_type = kDLCUDA;
    table.precision.abi_version = ATTEST_ABI_VERSION;
    table.precision.struct_bytes = sizeof(table.precision);
    table.precision.keys_per_rescale = 1;
    table.prefill = prefill;
    return table;
  }();
  return &subject;
}
