// The shape of FlashAttention-2: bf16, head width 64, tensor cores, KV blocks last to first,
// grouped heads, causal masks, any strides. Rows of Q and K behind the end of a sequence are never
// loaded: their place in shared memory keeps what it held, matrix instructions read it, and masks
// and stores drop it. The LSE of a row that sees no key is +inf.
#include <cuda_bf16.h>

#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kHeadDim = 64, kBlockM = 64, kBlockN = 64, kThreads = 128, kPitch = kHeadDim + 8;

struct Arguments : stranger::Attention<__nv_bfloat16> {
  bool top_left;
  float scale_log2;
};

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void load_matrices(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}
__device__ void load_transposed(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t packed(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(both);
}

using Tile = __nv_bfloat16[kBlockN][kPitch];

/// Rows [first, first + 64) of a head. What lies behind `end` is cleared only when asked for.
__device__ void load_tile(Tile& tile, Rows<const __nv_bfloat16> from, int b, int h, int first,
                          int end, bool clear) {
  for (int at = threadIdx.x; at < kBlockN * kHeadDim / 8; at += kThreads) {
    const int row = at / (kHeadDim / 8), column = at % (kHeadDim / 8) * 8;
    uint4* to = reinterpret_cast<uint4*>(&tile[row][column]);
    if (first + row < end) {
      *to = *reinterpret_cast<const uint4*>(from.at(b, h, first + row) + column);
    } else if (clear) {
      *to = make_uint4(0, 0, 0, 0);
    }
  }
}

/// The state of the two rows that a lane holds pieces of.
struct Softmax {
  float row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {0, 0};
};

__device__ void scores(float (&s)[8][4], const Tile& q, const Tile& k, int warp, int lane) {
  for (int step = 0; step < kHeadDim; step += 16) {
    uint32_t a[4];
    load_matrices(a, &q[warp * 16 + lane % 16][step + lane / 16 * 8]);
    for (int n = 0; n < 8; n += 2) {
      uint32_t b[4];
      load_matrices(b, &k[n * 8 + lane / 16 * 8 + lane % 8][step + lane / 8 % 2 * 8]);
      multiply(s[n], a, b[0], b[1]);
      multiply(s[n + 1], a, b[2], b[3]);
    }
  }
}

__device__ void weigh(float (&s)[8][4], float (&acc)[8][4], Softmax& state, float scale_log2) {
  for (int half = 0; half < 2; ++half) {
    float largest = state.row_max[half];
    for (int n = 0; n < 8; ++n) {
      largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    const float shift = largest == -INFINITY ? 0.0F : largest;
    const float shift_log2 = shift * scale_log2;
#if FAULT == 2  // rows keep what they summed under a smaller maximum
    const float rescale = 1.0F;
#else
    const float rescale = exp2f((state.row_max[half] - shift) * scale_log2);
#endif
    state.row_max[half] = largest;
    state.row_sum[half] *= rescale;
    for (int n = 0; n < 8; ++n) {
      for (int c = 2 * half; c < 2 * half + 2; ++c) {
        acc[n][c] *= rescale;
        s[n][c] = exp2f(fmaf(s[n][c], scale_log2, -shift_log2));
        state.row_sum[half] += s[n][c];
      }
    }
  }
}

__device__ void add_values(float (&acc)[8][4], const float (&p)[8][4], const Tile& v, int lane) {
  for (int step = 0; step < 4; ++step) {
    const uint32_t a[4] = {packed(p[2 * step][0], p[2 * step][1]),
                           packed(p[2 * step][2], p[2 * step][3]),
                           packed(p[2 * step + 1][0], p[2 * step + 1][1]),
                           packed(p[2 * step + 1][2], p[2 * step + 1][3])};
    for (int n = 0; n < 8; n += 2) {
      uint32_t b[4];
      load_transposed(b, &v[step * 16 + lane % 16][n * 8 + lane / 16 * 8]);
      multiply(acc[n], a, b[0], b[1]);
      multiply(acc[n + 1], a, b[2], b[3]);
    }
  }
}

__global__ void __launch_bounds__(kThreads) flash_forward(const __grid_constant__ Arguments x) {
  __shared__ __align__(16) Tile q, k, v;
  const int b = blockIdx.y / x.num_heads_q, h = blockIdx.y % x.num_heads_q;
  const int first = blockIdx.x * kBlockM, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int diagonal = x.top_left ? 0 : x.seqlen_kv - x.seqlen_q;
  load_tile(q, x.q, b, h, first, x.seqlen_q, false);
  int end = x.seqlen_kv;
  if (x.causal) end = max(0, min(end, first + kBlockM + diagonal));
  float acc[8][4] = {};
  Softmax state;
  for (int block = (end + kBlockN - 1) / kBlockN - 1; block >= 0; --block) {
    const int begin = block * kBlockN;
    __syncthreads();
    load_tile(k, x.k, b, h / x.group, begin, x.seqlen_kv, false);
    load_tile(v, x.v, b, h / x.group, begin, x.seqlen_kv, true);
    __syncthreads();
    float s[8][4] = {};
    scores(s, q, k, warp, lane);
    for (int n = 0; n < 8; ++n) {
      for (int c = 0; c < 4; ++c) {
        const int i = first + warp * 16 + lane / 4 + c / 2 * 8;
        const int j = begin + n * 8 + lane % 4 * 2 + c % 2;
        bool hidden = j >= x.seqlen_kv || (x.causal && j > i + diagonal);
#if FAULT == 1  // the tail of the last block of keys is not masked
        hidden = x.causal && j > i + diagonal;
#elif FAULT == 3  // the diagonal is one key too far where a block of queries begins
        hidden = hidden && !(j == i + diagonal + 1 && i % kBlockM == 0 && j < x.seqlen_kv);
#endif
        if (hidden) s[n][c] = -INFINITY;
      }
    }
    weigh(s, acc, state, x.scale_log2);
    add_values(acc, s, v, lane);
  }
  for (int half = 0; half < 2; ++half) {
    float sum = state.row_sum[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const float inverse = sum == 0 ? 1.0F : 1.0F / sum;
    const int i = first + warp * 16 + lane / 4 + half * 8;
    if (i >= x.seqlen_q) continue;
    for (int n = 0; n < 8; ++n) {
      *reinterpret_cast<uint32_t*>(x.o.at(b, h, i) + n * 8 + lane % 4 * 2) =
          packed(acc[n][2 * half] * inverse, acc[n][2 * half + 1] * inverse);
    }
    if (x.lse.first != nullptr && lane % 4 == 0) {
      *x.lse.at(b, h, i) = sum == 0 ? INFINITY : state.row_max[half] * x.softmax_scale + logf(sum);
    }
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS) return "sequences of one length";
  if (p->input != ATTEST_BF16 || p->output != ATTEST_BF16) return "bf16 only";
  if (p->head_dim != kHeadDim || p->head_dim_v != kHeadDim) return "head width 64 only";
  if (p->softmax_scale <= 0) return "scales are positive";
  if (p->empty_lse != ATTEST_EMPTY_LSE_PLUS_INF) return "the LSE of an empty row is +inf";
  return nullptr;
}

int32_t prefill(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  Arguments x{stranger::attention_of<__nv_bfloat16>(*a)};
  x.top_left = p.alignment == ATTEST_TOP_LEFT;
  x.scale_log2 = static_cast<float>(p.softmax_scale * 1.4426950408889634);
  const dim3 grid((x.seqlen_q + kBlockM - 1) / kBlockM,
                  static_cast<unsigned>(p.batch) * x.num_heads_q);
  if (grid.x == 0 || grid.y == 0) return 0;
  flash_forward<<<grid, kThreads, 0, static_cast<cudaStream_t>(a->stream)>>>(x);
  return stranger::launched("flash_forward");
}

constexpr AttestSubject table() {
  AttestPrecision precision = stranger::f32_precision();
  precision.p_format = ATTEST_BF16;
  precision.tensor_step = 8;
  precision.keys_per_rescale = precision.kv_block = kBlockN;
  precision.kv_blocks_descending = 1;
  precision.partial_row_sums = 4;
  precision.division_error = 2 * 0x1p-24;  // 1 / l, and the product with it
  AttestSubject subject = stranger::described("bf16 attention of width 64, tile tails unset",
                                              ATTEST_DETERMINISTIC, precision);
  subject.declines = declines;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
