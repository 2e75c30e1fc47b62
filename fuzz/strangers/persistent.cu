// A persistent grid: as many blocks as a GPU holds take tiles of four queries from a counter until
// none is left. f32 in and out, widths that are multiples of 4 up to 128, sequences of own lengths.
#include "fuzz/strangers/stranger.cuh"

namespace {

using stranger::Rows;
constexpr int kWarps = 4, kMostColumns = 128, kBlocks = 8;

struct Arguments : stranger::Attention<float> {
  unsigned* next;
  const int32_t *seqlens_q, *seqlens_kv;
  int tiles;
};

__device__ void attend_row(const Arguments& x, int64_t b, int h, int i) {
  const int lane = threadIdx.x % 32;
  const int queries = x.seqlens_q == nullptr ? x.seqlen_q : x.seqlens_q[b];
  const int keys = x.seqlens_kv == nullptr ? x.seqlen_kv : x.seqlens_kv[b];
  if (i >= queries) return;
#if FAULT == 2  // the diagonal is that of the longest sequence
  const int diagonal = x.seqlen_kv - x.seqlen_q;
#else
  const int diagonal = keys - queries;
#endif
  const int end = x.causal ? max(0, min(keys, i + 1 + diagonal)) : keys;
  const float* q = x.q.at(b, h, i);
  float row_max = -INFINITY, row_sum = 0, acc[kMostColumns / 32] = {};
  for (int begin = 0; begin < end; begin += 32) {
    const int j = begin + lane;
    float z = -INFINITY;
    if (j < end) {
      const float* k = x.k.at(b, h / x.group, j);
      z = 0;
      for (int c = 0; c < x.head_dim; c += 4) {
        const float4 left = *reinterpret_cast<const float4*>(q + c);
        const float4 right = *reinterpret_cast<const float4*>(k + c);
        z += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
      }
      z *= x.softmax_scale;
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
    for (int n = 0; n < min(32, end - begin); ++n) {
      const float p = __shfl_sync(~0u, weight, n);
      const float* v = x.v.at(b, h / x.group, begin + n);
      for (int c = lane; c < x.head_dim_v; c += 32) acc[c / 32] += p * v[c];
    }
  }
  for (int step = 16; step > 0; step /= 2) row_sum += __shfl_xor_sync(~0u, row_sum, step);
  for (int c = lane; c < x.head_dim_v; c += 32) {
    x.o.at(b, h, i)[c] = end == 0 ? 0.0F : acc[c / 32] / row_sum;
  }
  if (lane == 0 && x.lse.first != nullptr) {
    *x.lse.at(b, h, i) = end == 0 ? -INFINITY : row_max + logf(row_sum);
  }
}

__global__ void take_tiles(Arguments x) {
  __shared__ unsigned tile;
  const int tiles_per_head = (x.seqlen_q + kWarps - 1) / kWarps;
  for (;;) {
#if FAULT != 3  // 3: the next number is fetched while others may still read the last
    __syncthreads();
#endif
    if (threadIdx.x == 0) tile = atomicAdd(x.next, 1u);
    __syncthreads();
#if FAULT == 1  // of many tiles the last is never taken
    if (tile + (x.tiles > kBlocks) >= static_cast<unsigned>(x.tiles)) return;
#else
    if (tile >= static_cast<unsigned>(x.tiles)) return;
#endif
    const int i =
        static_cast<int>(tile) % tiles_per_head * kWarps + static_cast<int>(threadIdx.x) / 32;
    const int head = static_cast<int>(tile) / tiles_per_head;
    const int b = head / x.num_heads_q, h = head % x.num_heads_q;
    if (i < x.seqlen_q) attend_row(x, b, h, i);
  }
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->input != ATTEST_F32 || p->output != ATTEST_F32) return "f32 only";
  if (p->head_dim > kMostColumns || p->head_dim_v > kMostColumns || p->head_dim % 4 ||
      p->head_dim_v % 4) {
    return "widths that are multiples of 4, to 128";
  }
  if (p->flags & ATTEST_CAUSAL && p->alignment != ATTEST_BOTTOM_RIGHT) return "bottom right only";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

int64_t scratch_bytes(uint32_t, const AttestProblem*) {
  return sizeof(unsigned);
}

int32_t prefill(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  Arguments x{stranger::attention_of<float>(*a)};
  x.next = static_cast<unsigned*>(a->scratch);
  x.seqlens_q = static_cast<const int32_t*>(a->seqlens_q.data);
  x.seqlens_kv = static_cast<const int32_t*>(a->seqlens_kv.data);
  x.tiles = static_cast<int>(p.batch * p.num_heads_q * ((p.seqlen_q + kWarps - 1) / kWarps));
  if (x.tiles == 0) return 0;
  const auto stream = static_cast<cudaStream_t>(a->stream);
  cudaMemsetAsync(x.next, 0, sizeof(unsigned), stream);
  take_tiles<<<kBlocks, kWarps * 32, 0, stream>>>(x);
  return stranger::launched("take_tiles");
}

constexpr AttestSubject table() {
  AttestSubject subject =
      stranger::described("f32 attention by a persistent grid",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, stranger::f32_precision());
  subject.declines = declines;
  subject.scratch_bytes = scratch_bytes;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())
