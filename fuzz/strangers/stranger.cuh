// What the strangers of this folder share: a table of the C ABI with its boring parts filled in,
// and where a row lies. A real library has its own; nothing of attest but the ABI is used. FAULT 0
// is the correct kernel. 1, 2 and 3 each put one mistake into it, named where it stands.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "optimized/plugin/attest_subject.h"

#ifndef FAULT
#define FAULT 0
#endif

namespace stranger {

/// Element (b, h, row, 0), with strides of 64 bits.
template <class Number>
struct Rows {
  Number* first;
  int64_t batch, head, row;

  __device__ Number* at(int64_t b, int64_t h, int64_t i) const {
    return first + b * batch + h * head + i * row;
  }
};

/// Of an absent tensor `first` is null.
template <class Number>
Rows<Number> rows_of(const DLTensor& tensor) {
  if (tensor.data == nullptr) return {};
  return {static_cast<Number*>(tensor.data), tensor.strides[0], tensor.strides[1],
          tensor.strides[2]};
}

/// What every attention kernel is given.
template <class Number>
struct Attention {
  Rows<const Number> q, k, v;
  Rows<Number> o;
  Rows<float> lse;  // `first` is null when nobody asks for it
  int num_heads_q, group, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  bool causal;
  float softmax_scale;
};

template <class Number>
Attention<Number> attention_of(const AttestAttention& a) {
  const AttestProblem& p = a.problem;
  return {rows_of<const Number>(a.q),
          rows_of<const Number>(a.k),
          rows_of<const Number>(a.v),
          rows_of<Number>(a.o),
          rows_of<float>(a.lse),
          static_cast<int>(p.num_heads_q),
          static_cast<int>(p.num_heads_q / p.num_heads_kv),
          static_cast<int>(p.seqlen_q),
          static_cast<int>(p.seqlen_kv),
          static_cast<int>(p.head_dim),
          static_cast<int>(p.head_dim_v),
          (p.flags & ATTEST_CAUSAL) != 0,
          p.softmax_scale};
}

/// What no kernel here takes; NULL when there is nothing of it.
inline const char* beyond_plain(const AttestProblem& p) {
  if (p.flags & (ATTEST_BIAS | ATTEST_ALIBI | ATTEST_SINKS | ATTEST_MASK)) {
    return "no bias, ALiBi, sinks or mask";
  }
  if (p.softcap != 0) return "no softcap";
  if (p.window_left >= 0 || p.window_right >= 0) return "no windows";
  if (p.empty_row != ATTEST_EMPTY_ZERO) return "rows without keys are zeros";
  if (p.lse_base == ATTEST_LSE_TWO) return "LSE is in nats";
  return nullptr;
}

/// A cache that is nothing but k and v.
inline const char* beyond_dense(const AttestProblem& p) {
  if (p.cache != p.input || p.scales != ATTEST_SCALES_NONE) return "k and v are stored as q is";
  if (p.page_size > 0 || p.ring > 0) return "no pages and no ring";
  return nullptr;
}

inline char message[256] = "";
inline const char* last_error() {
  return message;
}

inline int32_t launched(const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return 0;
  std::snprintf(message, sizeof message, "%s: %s", what, cudaGetErrorString(status));
  return 1;
}

/// f32 arithmetic in any order: exp2f has 2 ulp and logf 1 (CUDA C++ Programming Guide), division
/// is IEEE.
constexpr AttestPrecision f32_precision() {
  AttestPrecision precision = {};
  precision.abi_version = ATTEST_ABI_VERSION;
  precision.struct_bytes = sizeof(AttestPrecision);
  precision.p_format = ATTEST_F32;
  precision.keys_per_rescale = 1;
  precision.exp_error = 5 * 0x1p-24;
  precision.log_error = 1.5 * 0x1p-19;
  return precision;
}

constexpr AttestSubject described(const char* name, uint32_t promises,
                                  const AttestPrecision& precision) {
  AttestSubject subject = {};
  subject.abi_version = ATTEST_ABI_VERSION;
  subject.struct_bytes = sizeof(AttestSubject);
  subject.name = name;
  subject.device_type = kDLCUDA;
  subject.promises = promises;
  subject.precision = precision;
  subject.last_error = last_error;
  return subject;
}

}  // namespace stranger

#define STRANGER_EXPORT(table)                                                           \
  extern "C" __attribute__((visibility("default"))) const AttestSubject* attest_subject( \
      uint32_t version) {                                                                \
    static const AttestSubject subject = table;                                          \
    return version == ATTEST_ABI_VERSION ? &subject : nullptr;                           \
  }
