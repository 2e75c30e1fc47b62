// A kernel that wants its operands packed: q, k and v are copied into contiguous f32 scratch, a
// plain kernel computes there, and a third one unpacks. Any strides, f32 and f16, any width to 64.
#include <cuda_fp16.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kThreads = 128;

template <class Number>
__global__ void pack(Rows<const Number> from, float* to, int heads, int rows, int columns,
                     int64_t count) {
  const int64_t at = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (at >= count) return;
  const int64_t row = at / columns;
  to[at] = static_cast<float>(
      from.at(row / (heads * rows), row / rows % heads, row % rows)[at % columns]);
}

template <class Number>
__global__ void unpack(const float* from, Rows<Number> to, int heads, int rows, int columns,
                       int64_t count) {
  const int64_t at = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
#if FAULT == 2  // the last thread of a launch that is not full
  if (at >= count - (count % kThreads == 1)) return;
#else
  if (at >= count) return;
#endif
  const int64_t row = at / columns;
  to.at(row / (heads * rows), row / rows % heads, row % rows)[at % columns] =
      static_cast<Number>(from[at]);
}

struct Extents {
  int num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  bool causal, top_left;
  float scale;
};

__device__ float of_block(float x, bool largest) {
  __shared__ float parts[kThreads];
  __syncthreads();
  parts[threadIdx.x] = x;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) {
      const float other = parts[threadIdx.x + width];
      parts[threadIdx.x] = largest ? fmaxf(parts[threadIdx.x], other) : parts[threadIdx.x] + other;
    }
    __syncthreads();
  }
  return parts[0];
}

/// A block per row. Scores of 128 keys at a time; the whole row's maximum is found first.
__global__ void attend(const float* q, const float* k, const float* v, float* o, Rows<float> lse,
                       Extents e) {
  __shared__ float weights[kThreads];
  const int64_t row = blockIdx.x;
  const int i = row % e.seqlen_q, h = row / e.seqlen_q % e.num_heads_q;
  const int64_t b = row / e.seqlen_q / e.num_heads_q;
#if FAULT == 1  // neighbours share a KV head only where heads are not grouped
  const int kv_head = h % e.num_heads_kv;
#else
  const int kv_head = h / (e.num_heads_q / e.num_heads_kv);
#endif
  const int64_t first = (b * e.num_heads_kv + kv_head) * e.seqlen_kv;
  int end = e.seqlen_kv;
  if (e.causal) end = min(end, i + 1 + (e.top_left ? 0 : e.seqlen_kv - e.seqlen_q));
  end = max(end, 0);
  const auto score = [&](int j) {
    float sum = 0;
    for (int c = 0; c < e.head_dim; ++c)
      sum += q[row * e.head_dim + c] * k[(first + j) * e.head_dim + c];
    return sum * e.scale;
  };
  float largest = -INFINITY;
  for (int j = threadIdx.x; j < end; j += kThreads) largest = fmaxf(largest, score(j));
  largest = of_block(largest, true);
  float sum = 0, acc[2] = {0, 0};
  for (int begin = 0; begin < end; begin += kThreads) {
    const int j = begin + static_cast<int>(threadIdx.x);
    const float weight = j < end ? exp2f((score(j) - largest) * 1.4426950408889634F) : 0.0F;
    __syncthreads();
    weights[threadIdx.x] = weight;
    __syncthreads();
    sum += weight;
    for (int part = 0; part < 2; ++part) {
      const int c = part * kThreads + static_cast<int>(threadIdx.x);
      if (c >= e.head_dim_v) continue;
      for (int n = 0; n < min(kThreads, end - begin); ++n) {
        acc[part] += weights[n] * v[(first + begin + n) * e.head_dim_v + c];
      }
    }
  }
  sum = of_block(sum, false);
  for (int part = 0; part < 2; ++part) {
    const int c = part * kThreads + static_cast<int>(threadIdx.x);
    if (c < e.head_dim_v) o[row * e.head_dim_v + c] = end == 0 ? 0.0F : acc[part] / sum;
  }
  if (threadIdx.x == 0 && lse.first != nullptr) {
#if FAULT == 3  // LSE without its maximum
    *lse.at(b, h, i) = end == 0 ? -INFINITY : logf(sum);
#else
    *lse.at(b, h, i) = end == 0 ? -INFINITY : largest + logf(sum);
#endif
  }
}

int64_t count_of(const DLTensor& x) {
  return x.shape[0] * x.shape[1] * x.shape[2] * x.shape[3];
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

int64_t scratch_bytes(uint32_t, const AttestProblem* p) {
  const int64_t q = p->batch * p->num_heads_q * p->seqlen_q,
                k = p->batch * p->num_heads_kv * p->seqlen_kv;
  return 4 * (q * (p->head_dim + p->head_dim_v) + k * (p->head_dim + p->head_dim_v));
}

template <class Number>
int32_t run(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  const auto stream = static_cast<cudaStream_t>(a->stream);
  float* at = static_cast<float*>(a->scratch);
  float* packed[3];
  const DLTensor* inputs[3] = {&a->q, &a->k, &a->v};
  for (int n = 0; n < 3; ++n) {
    const DLTensor& x = *inputs[n];
    const int64_t rows = n == 0 ? p.seqlen_q : p.seqlen_kv;
    const int64_t count = x.shape[0] * x.shape[1] * rows * x.shape[3];
    packed[n] = at;
    at += count;
    if (count == 0) continue;
    pack<Number><<<blocks_for(count), kThreads, 0, stream>>>(
        stranger::rows_of<const Number>(x), packed[n], static_cast<int>(x.shape[1]),
        static_cast<int>(rows), static_cast<int>(x.shape[3]), count);
  }
  if (const int64_t rows = p.batch * p.num_heads_q * p.seqlen_q; rows > 0) {
    const Extents e{static_cast<int>(p.num_heads_q),
                    static_cast<int>(p.num_heads_kv),
                    static_cast<int>(p.seqlen_q),
                    static_cast<int>(p.seqlen_kv),
                    static_cast<int>(p.head_dim),
                    static_cast<int>(p.head_dim_v),
                    (p.flags & ATTEST_CAUSAL) != 0,
                    p.alignment == ATTEST_TOP_LEFT,
                    p.softmax_scale};
    attend<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
        packed[0], packed[1], packed[2], at, stranger::rows_of<float>(a->lse), e);
    const int64_t count = count_of(a->o);
    unpack<Number><<<blocks_for(count), kThreads, 0, stream>>>(
        at, stranger::rows_of<Number>(a->o), static_cast<int>(p.num_heads_q),
        static_cast<int>(p.seqlen_q), static_cast<int>(p.head_dim_v), count);
  }
  return stranger::launched("attend");
}

int32_t prefill(const AttestAttention* a) {
  return a->problem.input == ATTEST_F16 ? run<__half>(a) : run<float>(a);
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS) return "sequences of one length";
  if (p->input != p->output || (p->input != ATTEST_F32 && p->input != ATTEST_F16)) {
    return "f32 or f16, in and out";
  }
  if (p->head_dim > 64 || p->head_dim_v > 64) return "widths to 64";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

constexpr AttestSubject table() {
  AttestSubject subject =
      stranger::described("attention of packed copies, f32 and f16",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, stranger::f32_precision());
  subject.declines = declines;
  subject.scratch_bytes = scratch_bytes;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
