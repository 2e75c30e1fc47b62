// Decode over pages as in vLLM's first kernel: bf16, head width 128, pages of 16 tokens, one query
// per sequence, lengths of their own, all scores of a row in dynamic shared memory, no LSE.
#include <cuda_bf16.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kHeadDim = 128, kPage = 16, kWarps = 4, kThreads = kWarps * 32;

struct Arguments : stranger::Attention<__nv_bfloat16> {
  const int32_t *pages, *lengths;
  int64_t table_pitch;
};

__device__ float of_block(float x, float* parts, bool largest) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, x, step);
    x = largest ? fmaxf(x, other) : x + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = parts[0];
#if FAULT == 2  // the last warp's part is forgotten
  for (int warp = 1; warp < kWarps - !largest; ++warp) {
#else
  for (int warp = 1; warp < kWarps; ++warp) {
#endif
    x = largest ? fmaxf(x, parts[warp]) : x + parts[warp];
  }
  return x;
}

__global__ void paged_attention(Arguments x) {
  extern __shared__ float scores[];
  __shared__ float parts[kWarps];
  const int h = blockIdx.x, b = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int kv_head = h / x.group;
#if FAULT == 1  // every sequence is taken to be as long as the longest
  const int length = x.seqlen_kv;
#else
  const int length = x.lengths == nullptr ? x.seqlen_kv : x.lengths[b];
#endif
  const int32_t* pages = x.pages + b * x.table_pitch;
  const __nv_bfloat16* q = x.q.at(b, h, 0);
  float q_part[kHeadDim / 32];
  for (int c = 0; c < kHeadDim / 32; ++c) q_part[c] = __bfloat162float(q[c * 32 + lane]);
  float largest = -INFINITY;
  for (int j = warp; j < length; j += kWarps) {
    const __nv_bfloat16* k = x.k.at(pages[j / kPage], kv_head, j % kPage);
    float z = 0;
    for (int c = 0; c < kHeadDim / 32; ++c) z += q_part[c] * __bfloat162float(k[c * 32 + lane]);
    for (int step = 16; step > 0; step /= 2) z += __shfl_xor_sync(~0u, z, step);
    z *= x.softmax_scale;
    if (lane == 0) scores[j] = z;
    largest = fmaxf(largest, z);
  }
  largest = of_block(largest, parts, true);
  float sum = 0;
  for (int j = threadIdx.x; j < length; j += kThreads) {
    const float weight = exp2f((scores[j] - largest) * 1.4426950408889634F);
    scores[j] = weight;
    sum += weight;
  }
  sum = of_block(sum, parts, false);
  __syncthreads();
  float acc = 0;
  for (int j = 0; j < length; ++j) {
#if FAULT == 3  // the page of V is looked up once per two pages
    const int page = pages[j / kPage & ~1];
#else
    const int page = pages[j / kPage];
#endif
    acc += scores[j] * __bfloat162float(x.v.at(page, kv_head, j % kPage)[threadIdx.x]);
  }
  x.o.at(b, h, 0)[threadIdx.x] = __float2bfloat16(length == 0 ? 0.0F : acc / sum);
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (p->input != ATTEST_BF16 || p->output != ATTEST_BF16 || p->cache != ATTEST_BF16) {
    return "bf16 only";
  }
  if (p->flags & ATTEST_CAUSAL && p->alignment != ATTEST_BOTTOM_RIGHT) return "bottom right only";
  if (p->scales != ATTEST_SCALES_NONE) return "no scales";
  if (p->head_dim != kHeadDim || p->head_dim_v != kHeadDim) return "head width 128 only";
  if (p->page_size != kPage) return "pages of 16 tokens only";
  if (p->seqlen_q != 1 || p->flags & ATTEST_SEQLENS_Q) return "one query per sequence";
  if (p->seqlen_kv > 8192) return "8192 keys at most";
  if (p->lse_base != ATTEST_LSE_NONE) return "no LSE";
  return nullptr;
}

int32_t decode(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  Arguments x{stranger::attention_of<__nv_bfloat16>(*a)};
  x.pages = static_cast<const int32_t*>(a->block_table.data);
  x.lengths = static_cast<const int32_t*>(a->seqlens_kv.data);
  x.table_pitch = a->block_table.strides[0];
  const dim3 grid(static_cast<unsigned>(p.num_heads_q), static_cast<unsigned>(p.batch));
  paged_attention<<<grid, kThreads, static_cast<size_t>(p.seqlen_kv) * sizeof(float),
                    static_cast<cudaStream_t>(a->stream)>>>(x);
  return stranger::launched("paged_attention");
}

constexpr AttestSubject table() {
  AttestSubject subject =
      stranger::described("paged decode of width 128 in bf16, no LSE",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, stranger::f32_precision());
  subject.declines = declines;
  subject.decode = decode;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
