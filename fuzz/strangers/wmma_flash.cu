// The shape of small teaching kernels: wmma fragments through shared memory, f16, head width 32 or
// 64, scores and sums in shared memory as f32, one warp per 16 queries.
#include <cuda_fp16.h>
#include <mma.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

using namespace nvcuda;
using stranger::Rows;
constexpr int kTile = 16, kMost = 64;

using Arguments = stranger::Attention<__half>;

__device__ void load_rows(__half* to, Rows<const __half> from, int64_t b, int h, int first, int end,
                          int columns) {
  for (int at = threadIdx.x; at < kTile * columns; at += 32) {
    const int row = at / columns, c = at % columns;
    to[row * kMost + c] = first + row < end ? from.at(b, h, first + row)[c] : __float2half(0.0F);
  }
}

__global__ void attend(Arguments x) {
  __shared__ __half q[kTile * kMost], k[kTile * kMost], v[kTile * kMost], p[kTile * kTile];
  __shared__ float s[kTile * kTile], acc[kTile * kMost], row_max[kTile], row_sum[kTile],
      rescale[kTile];
  const int h = blockIdx.y % x.num_heads_q, first = blockIdx.x * kTile, lane = threadIdx.x;
  const int64_t b = blockIdx.y / x.num_heads_q;
  const int diagonal = x.seqlen_kv - x.seqlen_q;
  load_rows(q, x.q, b, h, first, x.seqlen_q, x.head_dim);
  for (int at = lane; at < kTile * kMost; at += 32) acc[at] = 0;
  if (lane < kTile) {
    row_max[lane] = -INFINITY;
    row_sum[lane] = 0;
  }
  for (int begin = 0; begin < x.seqlen_kv; begin += kTile) {
    __syncwarp();
    load_rows(k, x.k, b, h / x.group, begin, x.seqlen_kv, x.head_dim);
#if FAULT == 1  // V is taken from the head of the query
    load_rows(v, x.v, b, h % max(1, x.num_heads_q / x.group), begin, x.seqlen_kv, x.head_dim);
#else
    load_rows(v, x.v, b, h / x.group, begin, x.seqlen_kv, x.head_dim);
#endif
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0F);
    for (int c = 0; c < x.head_dim; c += kTile) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
      wmma::load_matrix_sync(left, q + c, kMost);
      wmma::load_matrix_sync(right, k + c, kMost);
      wmma::mma_sync(sums, left, right, sums);
    }
    wmma::store_matrix_sync(s, sums, kTile, wmma::mem_row_major);
    __syncwarp();
    if (lane < kTile) {
      const int i = first + lane;
      float largest = row_max[lane];
      for (int n = 0; n < kTile; ++n) {
        const int j = begin + n;
        const bool hidden = j >= x.seqlen_kv || (x.causal && j > i + diagonal);
        s[lane * kTile + n] = hidden ? -INFINITY : s[lane * kTile + n] * x.softmax_scale;
        largest = fmaxf(largest, s[lane * kTile + n]);
      }
      const float shift = largest == -INFINITY ? 0.0F : largest;
      rescale[lane] = exp2f((row_max[lane] - shift) * 1.4426950408889634F);
      float sum = row_sum[lane] * rescale[lane];
      for (int n = 0; n < kTile; ++n) {
        const float weight = exp2f((s[lane * kTile + n] - shift) * 1.4426950408889634F);
        sum += weight;
        p[lane * kTile + n] = __float2half(weight);
      }
      row_max[lane] = largest;
      row_sum[lane] = sum;
    }
#if FAULT != 2  // 2: sums keep the scale of a smaller maximum
    __syncwarp();
    for (int at = lane; at < kTile * x.head_dim; at += 32) {
      acc[at / x.head_dim * kMost + at % x.head_dim] *= rescale[at / x.head_dim];
    }
    __syncwarp();
#endif
    for (int c = 0; c < x.head_dim; c += kTile) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> out;
      wmma::load_matrix_sync(left, p, kTile);
      wmma::load_matrix_sync(right, v + c, kMost);
      wmma::load_matrix_sync(out, acc + c, kMost, wmma::mem_row_major);
      wmma::mma_sync(out, left, right, out);
      wmma::store_matrix_sync(acc + c, out, kMost, wmma::mem_row_major);
    }
  }
  __syncwarp();
  for (int at = lane; at < kTile * x.head_dim; at += 32) {
    const int row = at / x.head_dim, c = at % x.head_dim;
    if (first + row >= x.seqlen_q) continue;
    const float sum = row_sum[row];
    x.o.at(b, h, first + row)[c] = __float2half(sum == 0 ? 0.0F : acc[row * kMost + c] / sum);
  }
  if (lane < kTile && first + lane < x.seqlen_q && x.lse.first != nullptr) {
#if FAULT == 3  // LSE in bits
    const float lse = row_max[lane] * 1.4426950408889634F + log2f(row_sum[lane]);
#else
    const float lse = row_max[lane] + logf(row_sum[lane]);
#endif
    *x.lse.at(b, h, first + lane) = row_sum[lane] == 0 ? -INFINITY : lse;
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS) return "sequences of one length";
  if (p->input != ATTEST_F16 || p->output != ATTEST_F16) return "f16 only";
  if (p->head_dim != p->head_dim_v || (p->head_dim != 32 && p->head_dim != 64))
    return "head width 32 or 64";
  if (p->flags & ATTEST_CAUSAL && p->alignment != ATTEST_BOTTOM_RIGHT) return "bottom right only";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

int32_t prefill(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  Arguments x{stranger::attention_of<__half>(*a)};
  const dim3 grid((x.seqlen_q + kTile - 1) / kTile, static_cast<unsigned>(p.batch * p.num_heads_q));
  if (grid.x == 0 || grid.y == 0) return 0;
  attend<<<grid, 32, 0, static_cast<cudaStream_t>(a->stream)>>>(x);
  return stranger::launched("attend");
}

constexpr AttestSubject table() {
  AttestPrecision precision = stranger::f32_precision();
  precision.p_format = ATTEST_F16;
  precision.tensor_step = 8;
  precision.keys_per_rescale = precision.kv_block = kTile;
  AttestSubject subject =
      stranger::described("wmma attention of widths 32 and 64 in f16",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, precision);
  subject.declines = declines;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
