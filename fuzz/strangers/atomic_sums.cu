// Parts of the keys in blocks of their own that meet in atomics: three kernels and a clearing of
// scratch per call. f32, widths to 128, prefill and decode alike. The order of the additions is
// the hardware's, so nothing is promised of the bits.
#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kMostColumns = 128, kPart = 64;

struct Arguments : stranger::Attention<float> {
  int* row_max;    // (rows): bits that rise with the number
  float* row_sum;  // (rows)
  float* acc;      // (rows, head_dim_v)
  const int32_t* lengths;
};

__device__ int rising(float x) {
  const int bits = __float_as_int(x);
  return bits >= 0 ? bits : bits ^ 0x7FFFFFFF;
}
__device__ float number(int bits) {
  return __int_as_float(bits >= 0 ? bits : bits ^ 0x7FFFFFFF);
}

struct Place {
  int64_t b;
  int h, i, end, j;
};
__device__ Place place_of(const Arguments& x) {
  Place p;
  p.i = blockIdx.x % x.seqlen_q;
  p.h = blockIdx.x / x.seqlen_q % x.num_heads_q;
  p.b = blockIdx.x / x.seqlen_q / x.num_heads_q;
  const int length = x.lengths == nullptr ? x.seqlen_kv : x.lengths[p.b];
  p.end = x.causal ? min(length, p.i + 1 + length - x.seqlen_q) : length;
  p.j = blockIdx.y * kPart + threadIdx.x;
  return p;
}

__device__ float score(const Arguments& x, const Place& p) {
  const float* q = x.q.at(p.b, p.h, p.i);
  const float* k = x.k.at(p.b, p.h / x.group, p.j);
  float sum = 0;
  for (int c = 0; c < x.head_dim; ++c) sum += q[c] * k[c];
  return sum * x.softmax_scale;
}

__global__ void find_maxima(Arguments x) {
  const Place p = place_of(x);
  float largest = p.j < p.end ? score(x, p) : -INFINITY;
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
  }
  __shared__ float other;
  if (threadIdx.x == 32) other = largest;
  __syncthreads();
  largest = fmaxf(largest, other);
  if (threadIdx.x == 0 && largest > -INFINITY) {
    atomicMax(&x.row_max[blockIdx.x], rising(largest));
  }
}

__global__ void add_parts(Arguments x) {
  __shared__ float weights[kPart];
  const Place p = place_of(x);
  float weight = 0;
  if (p.j < p.end) {
    weight = exp2f((score(x, p) - number(x.row_max[blockIdx.x])) * 1.4426950408889634F);
  }
  weights[threadIdx.x] = weight;
  __syncthreads();
  if (threadIdx.x == 0) {
#if FAULT == 1  // the first key of a part is counted twice
    float total = blockIdx.y > 0 ? weights[0] : 0;
#else
    float total = 0;
#endif
    for (const float one : weights) total += one;
    atomicAdd(&x.row_sum[blockIdx.x], total);
  }
  for (int c = threadIdx.x; c < x.head_dim_v; c += kPart) {
    float sum = 0;
    for (int n = 0; n < kPart && static_cast<int>(blockIdx.y) * kPart + n < p.end; ++n) {
      sum += weights[n] * x.v.at(p.b, p.h / x.group, blockIdx.y * kPart + n)[c];
    }
    float* to = &x.acc[blockIdx.x * static_cast<int64_t>(x.head_dim_v) + c];
#if FAULT == 2  // parts overwrite what others add meanwhile
    *to += sum;
#else
    atomicAdd(to, sum);
#endif
  }
}

__global__ void divide(Arguments x) {
  const Place p = place_of(x);
  const float sum = x.row_sum[blockIdx.x];
  for (int c = threadIdx.x; c < x.head_dim_v; c += kPart) {
    x.o.at(p.b, p.h, p.i)[c] =
        p.end <= 0 ? 0.0F : x.acc[blockIdx.x * static_cast<int64_t>(x.head_dim_v) + c] / sum;
  }
  if (threadIdx.x == 0 && x.lse.first != nullptr) {
    *x.lse.at(p.b, p.h, p.i) = p.end <= 0 ? -INFINITY : number(x.row_max[blockIdx.x]) + logf(sum);
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS_Q) return "queries of one length";
  if (p->input != ATTEST_F32 || p->output != ATTEST_F32) return "f32 only";
  if (p->head_dim > kMostColumns || p->head_dim_v > kMostColumns) return "widths to 128";
  if (p->flags & ATTEST_CAUSAL && p->alignment != ATTEST_BOTTOM_RIGHT) return "bottom right only";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

int64_t rows_of_problem(const AttestProblem& p) {
  return p.batch * p.num_heads_q * p.seqlen_q;
}

int64_t scratch_bytes(uint32_t, const AttestProblem* p) {
  return rows_of_problem(*p) * (2 + p->head_dim_v) * 4;
}

int32_t attention(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  const int64_t rows = rows_of_problem(p);
  if (rows == 0) return 0;
  Arguments x{stranger::attention_of<float>(*a)};
  x.row_max = static_cast<int*>(a->scratch);
  x.row_sum = reinterpret_cast<float*>(x.row_max + rows);
  x.acc = x.row_sum + rows;
  x.lengths = static_cast<const int32_t*>(a->seqlens_kv.data);
  const auto stream = static_cast<cudaStream_t>(a->stream);
  // 0x80 in every byte lies below all that rising() gives, NaN apart.
  cudaMemsetAsync(x.row_max, 0x80, rows * 4, stream);
#if FAULT == 3  // sums begin with what scratch held
  cudaMemsetAsync(x.row_sum, 0, rows * 4, stream);
#else
  cudaMemsetAsync(x.row_sum, 0, rows * (1 + p.head_dim_v) * 4, stream);
#endif
  const dim3 grid(static_cast<unsigned>(rows), (x.seqlen_kv + kPart - 1) / kPart);
  if (grid.y > 0) {
    find_maxima<<<grid, kPart, 0, stream>>>(x);
    add_parts<<<grid, kPart, 0, stream>>>(x);
  }
  divide<<<grid.x, kPart, 0, stream>>>(x);
  return stranger::launched("add_parts");
}

constexpr AttestSubject table() {
  AttestSubject subject =
      stranger::described("attention by atomics in f32", 0, stranger::f32_precision());
  subject.declines = declines;
  subject.scratch_bytes = scratch_bytes;
  subject.prefill = attention;
  subject.decode = attention;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
