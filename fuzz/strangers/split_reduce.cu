// Decode by two kernels per call, as flash-decoding has it: parts of the keys first, then their
// combination. f16, head width 64, a contiguous cache, any number of parts.
#include <cuda_fp16.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kHeadDim = 64, kThreads = kHeadDim;

struct Arguments : stranger::Attention<__half> {
  float* parts;  // (row, split, 64 sums, maximum, sum of weights)
  const int32_t* lengths;
  int num_splits;
};
constexpr int kPart = kHeadDim + 2;

struct Row {
  int64_t b;
  int h, i, length;
};
__device__ Row row_of(const Arguments& x, int64_t row) {
  const int64_t b = row / x.seqlen_q / x.num_heads_q;
  return {b, static_cast<int>(row / x.seqlen_q % x.num_heads_q), static_cast<int>(row % x.seqlen_q),
          x.lengths == nullptr ? x.seqlen_kv : x.lengths[b]};
}

__device__ float exponential(float x) {
  return exp2f(x * 1.4426950408889634F);
}

__global__ void attend_part(Arguments x) {
  __shared__ float products[kThreads];
  const Row row = row_of(x, blockIdx.x);
  const int size = (row.length + x.num_splits - 1) / x.num_splits, c = threadIdx.x;
#if FAULT == 1  // the last part ends where the longest sequence does
  const int begin = blockIdx.y * size,
            end = blockIdx.y + 1 == x.num_splits ? x.seqlen_kv : begin + size;
#else
  const int begin = min(row.length, static_cast<int>(blockIdx.y) * size);
  const int end = min(row.length, begin + size);
#endif
  const float q = __half2float(x.q.at(row.b, row.h, row.i)[c]) * x.softmax_scale;
  float largest = -INFINITY, sum = 0, acc = 0;
  for (int j = begin; j < end; ++j) {
    products[c] = q * __half2float(x.k.at(row.b, row.h / x.group, j)[c]);
    __syncthreads();
    for (int width = kThreads / 2; width > 0; width /= 2) {
      if (c < width) products[c] += products[c + width];
      __syncthreads();
    }
    const float z = products[0];
    __syncthreads();
    const float higher = fmaxf(largest, z);
    const float rescale = exponential(largest - higher), weight = exponential(z - higher);
    sum = sum * rescale + weight;
    acc = acc * rescale + weight * __half2float(x.v.at(row.b, row.h / x.group, j)[c]);
    largest = higher;
  }
  float* part = x.parts + (blockIdx.x * static_cast<int64_t>(x.num_splits) + blockIdx.y) * kPart;
  part[c] = acc;
  if (c == 0) {
    part[kHeadDim] = largest;
    part[kHeadDim + 1] = sum;
  }
}

__global__ void combine(Arguments x) {
  const Row row = row_of(x, blockIdx.x);
  const float* parts = x.parts + blockIdx.x * static_cast<int64_t>(x.num_splits) * kPart;
  float largest = -INFINITY, sum = 0, acc = 0;
#if FAULT == 2  // no more than 8 parts are combined
  const int splits = min(x.num_splits, 8);
#else
  const int splits = x.num_splits;
#endif
  for (int n = 0; n < splits; ++n) largest = fmaxf(largest, parts[n * kPart + kHeadDim]);
  for (int n = 0; n < splits; ++n) {
    const float* part = parts + n * kPart;
    if (part[kHeadDim + 1] == 0) continue;
    const float factor = exponential(part[kHeadDim] - largest);
#if FAULT == 3  // sums of parts are added as they are
    sum += part[kHeadDim + 1];
#else
    sum += part[kHeadDim + 1] * factor;
#endif
    acc += part[threadIdx.x] * factor;
  }
  x.o.at(row.b, row.h, row.i)[threadIdx.x] = __float2half(sum == 0 ? 0.0F : acc / sum);
  if (threadIdx.x == 0 && x.lse.first != nullptr) {
    *x.lse.at(row.b, row.h, row.i) = sum == 0 ? -INFINITY : largest + logf(sum);
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->input != ATTEST_F16 || p->output != ATTEST_F16) return "f16 only";
  if (p->head_dim != kHeadDim || p->head_dim_v != kHeadDim) return "head width 64 only";
  if (p->flags & ATTEST_CAUSAL && p->seqlen_q != 1) return "causal masks of one query only";
  if (p->flags & ATTEST_CAUSAL && p->alignment != ATTEST_BOTTOM_RIGHT) return "bottom right only";
  if (p->flags & ATTEST_SEQLENS_Q) return "queries of one length";
  if (p->seqlen_q > 8) return "8 queries at most";
  if (p->num_splits > 65535) return "more parts than a grid has";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

int64_t rows_of_problem(const AttestProblem& p) {
  return p.batch * p.num_heads_q * p.seqlen_q;
}

int64_t scratch_bytes(uint32_t, const AttestProblem* p) {
  return rows_of_problem(*p) * p->num_splits * kPart * static_cast<int64_t>(sizeof(float));
}

int32_t decode(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  Arguments x{stranger::attention_of<__half>(*a)};
  x.parts = static_cast<float*>(a->scratch);
  x.lengths = static_cast<const int32_t*>(a->seqlens_kv.data);
  x.num_splits = static_cast<int>(p.num_splits);
  const auto rows = static_cast<unsigned>(rows_of_problem(p));
  const auto stream = static_cast<cudaStream_t>(a->stream);
  if (rows == 0) return 0;
  attend_part<<<dim3(rows, x.num_splits), kThreads, 0, stream>>>(x);
  combine<<<rows, kThreads, 0, stream>>>(x);
  return stranger::launched("attend_part");
}

constexpr AttestSubject table() {
  AttestSubject subject = stranger::described("split decode of width 64 in f16, two kernels",
                                              ATTEST_DETERMINISTIC, stranger::f32_precision());
  subject.declines = declines;
  subject.scratch_bytes = scratch_bytes;
  subject.decode = decode;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
