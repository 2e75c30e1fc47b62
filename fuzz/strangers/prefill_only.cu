// Inference prefill as many engines have it: f16, head width 128, always causal, rows contiguous as
// (batch, head, token, column), no LSE, nothing beside prefill. A warp per row, keys 32 at a time.
#include <cuda_fp16.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

constexpr int kHeadDim = 128, kWarps = 4, kColumns = kHeadDim / 32;

struct Arguments {
  const __half *q, *k, *v;
  __half* o;
  int num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, rows;
  int64_t kv_rows;  // that exist per head, used or not
  float softmax_scale;
};

__global__ void context_attention(Arguments x) {
  __shared__ float q_rows[kWarps][kHeadDim];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = blockIdx.x * kWarps + warp;
  if (row >= x.rows) return;
  const int i = row % x.seqlen_q, h = row / x.seqlen_q % x.num_heads_q;
  const int64_t b = row / x.seqlen_q / x.num_heads_q;
  const int64_t head = b * x.num_heads_kv + h / (x.num_heads_q / x.num_heads_kv);
#if FAULT == 2  // keys that are there but not yet used are counted as keys
  const int seqlen_kv = static_cast<int>(x.kv_rows);
#else
  const int seqlen_kv = x.seqlen_kv;
#endif
  const int end = max(0, min(seqlen_kv, i + 1 + seqlen_kv - x.seqlen_q));
  for (int c = lane; c < kHeadDim; c += 32) {
    q_rows[warp][c] = __half2float(x.q[static_cast<int64_t>(row) * kHeadDim + c]);
  }
  __syncwarp();
  float row_max = -INFINITY, row_sum = 0, acc[kColumns] = {};
  for (int begin = 0; begin < end; begin += 32) {
    const int j = begin + lane;
    float z = -INFINITY;
    if (j < end) {
      const auto* k = reinterpret_cast<const __half2*>(x.k + (head * x.kv_rows + j) * kHeadDim);
      float sum = 0;
      for (int c = 0; c < kHeadDim / 2; ++c) {
        const float2 pair = __half22float2(k[c]);
        sum = fmaf(q_rows[warp][2 * c], pair.x, sum);
        sum = fmaf(q_rows[warp][2 * c + 1], pair.y, sum);
      }
#if FAULT == 1  // the scale that everybody uses, whatever was asked for
      z = sum * 0.08838834764F;
#else
      z = sum * x.softmax_scale;
#endif
    }
    float largest = fmaxf(row_max, z);
    for (int step = 16; step > 0; step /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    }
    const float weight = exp2f((z - largest) * 1.4426950408889634F);
    const float rescale = exp2f((row_max - largest) * 1.4426950408889634F);
    row_max = largest;
    row_sum = row_sum * rescale + weight;
    for (float& a : acc) a *= rescale;
#if FAULT == 3  // of a block with one key, that key is lost
    const int count = end - begin == 1 ? 0 : min(32, end - begin);
#else
    const int count = min(32, end - begin);
#endif
    for (int n = 0; n < count; ++n) {
      const float p = __shfl_sync(~0u, weight, n);
      const __half* v = x.v + (head * x.kv_rows + begin + n) * kHeadDim;
      for (int c = 0; c < kColumns; ++c) acc[c] = fmaf(p, __half2float(v[c * 32 + lane]), acc[c]);
    }
  }
  for (int step = 16; step > 0; step /= 2) row_sum += __shfl_xor_sync(~0u, row_sum, step);
  for (int c = 0; c < kColumns; ++c) {
    x.o[static_cast<int64_t>(row) * kHeadDim + c * 32 + lane] =
        __float2half(end == 0 ? 0.0F : acc[c] / row_sum);
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS) return "sequences of one length";
  if (p->input != ATTEST_F16 || p->output != ATTEST_F16) return "f16 only";
  if (p->head_dim != kHeadDim || p->head_dim_v != kHeadDim) return "head width 128 only";
  if (!(p->flags & ATTEST_CAUSAL) || p->alignment != ATTEST_BOTTOM_RIGHT) return "causal only";
  if (p->lse_base != ATTEST_LSE_NONE) return "no LSE";
  if (p->layout != ATTEST_LAYOUT_BHTD || p->strided != 0) return "contiguous (b, h, n, d) only";
  return nullptr;
}

int32_t prefill(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  const int rows = static_cast<int>(p.batch * p.num_heads_q * p.seqlen_q);
  if (rows == 0) return 0;
  const Arguments x{static_cast<const __half*>(a->q.data),
                    static_cast<const __half*>(a->k.data),
                    static_cast<const __half*>(a->v.data),
                    static_cast<__half*>(a->o.data),
                    static_cast<int>(p.num_heads_q),
                    static_cast<int>(p.num_heads_kv),
                    static_cast<int>(p.seqlen_q),
                    static_cast<int>(p.seqlen_kv),
                    rows,
                    a->k.shape[2],
                    p.softmax_scale};
  context_attention<<<(rows + kWarps - 1) / kWarps, kWarps * 32, 0,
                      static_cast<cudaStream_t>(a->stream)>>>(x);
  return stranger::launched("context_attention");
}

constexpr AttestSubject table() {
  AttestSubject subject =
      stranger::described("causal prefill of width 128 in f16, no LSE",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, stranger::f32_precision());
  subject.declines = declines;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
