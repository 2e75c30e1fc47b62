// What tiles_test.cpp runs: tiles of which some rows hold nothing, as attention kernels leave their
// tails, on their way through tensor cores. Each kernel is right or wrong by what it stores.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#include "optimized/emulator/engine/checks/inlined_store.cuh"

#define KERNEL extern "C" __global__ void

namespace {

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void load_rows(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));  // LINE loads_queries
}
__device__ void load_columns(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row)));
}
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace

// One tile of attention by one warp: 16 queries, 8 keys, width 16. Rows from `queries` on and keys
// from `keys` on hold nothing in shared memory; those of V are cleared, as they must be. `stored`
// rows are stored, and `counted` keys are not masked.
KERNEL attention_tile(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                      float* o, int queries, int keys, int stored, int counted) {
  __shared__ __align__(16) __nv_bfloat16 sq[16][16], sk[8][16], sv[16][8];
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  for (int i = lane; i < 256; i += 32)
    if (i / 16 < queries) sq[i / 16][i % 16] = __hadd(q[i], __nv_bfloat16(0.f));
  for (int i = lane; i < 128; i += 32)
    if (i / 16 < keys) sk[i / 16][i % 16] = __hadd(k[i], __nv_bfloat16(0.f));
  for (int i = lane; i < 128; i += 32)
    sv[i / 8][i % 8] = i / 8 < keys ? __hadd(v[i], __nv_bfloat16(0.f)) : __nv_bfloat16(0.f);
  __syncwarp();
  uint32_t a[4], b[2];
  load_rows(a, &sq[lane % 16][lane / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(shared_address(&sk[lane % 8][lane / 8 % 2 * 8])));  // LINE loads_keys
  float s[4] = {0, 0, 0, 0};
  multiply(s, a, b);
  float row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {0, 0};
  for (int i = 0; i < 4; ++i) {
    if (2 * t + i % 2 >= counted) s[i] = -INFINITY;
    row_max[i / 2] = fmaxf(row_max[i / 2], s[i]);
  }
  for (int h = 0; h < 2; ++h) {
    for (int d = 1; d < 4; d *= 2)
      row_max[h] = fmaxf(row_max[h], __shfl_xor_sync(0xffffffff, row_max[h], d));
    if (row_max[h] == -INFINITY) row_max[h] = 0;
  }
  for (int i = 0; i < 4; ++i) s[i] = exp2f(s[i] - row_max[i / 2]), row_sum[i / 2] += s[i];
  for (int h = 0; h < 2; ++h)
    for (int d = 1; d < 4; d *= 2) row_sum[h] += __shfl_xor_sync(0xffffffff, row_sum[h], d);
  const __nv_bfloat162 top = __floats2bfloat162_rn(s[0], s[1]),
                       low = __floats2bfloat162_rn(s[2], s[3]);
  const uint32_t p[4] = {reinterpret_cast<const uint32_t&>(top),
                         reinterpret_cast<const uint32_t&>(low), 0, 0};
  load_columns(b, &sv[lane % 16][0]);
  float sum[4] = {0, 0, 0, 0};
  multiply(sum, p, b);
  for (int h = 0; h < 2; ++h) {
    const float all = row_sum[h], scale = all == 0 || all != all ? 1.f : 1.f / all;
    for (int e = 0; e < 2; ++e)
      if (g + 8 * h < stored)
        o[(g + 8 * h) * 8 + 2 * t + e] = sum[2 * h + e] * scale;  // LINE stores_rows
  }
}

// D = A B + C for 16 x 16 matrices of which some rows of A, columns of B and rows of C hold
// nothing. The D that `row`s below and `column`s below leave over is stored.
template <class In, class Out, int kDepth>
__device__ void wmma_tile(const In* in, Out* out, int rows, int columns, int rows_c,
                          int stored_rows, int stored_columns) {
  using namespace nvcuda;
  __shared__ __align__(32) In sa[16 * kDepth], sb[16 * kDepth];
  __shared__ __align__(32) Out sc[256], sd[256];
  const int lane = threadIdx.x;
  for (int i = lane; i < 16 * kDepth; i += 32) {
    if (i / kDepth < rows) sa[i] = In(float(in[i]) + 1.f);
    if (i / kDepth < columns) sb[i] = In(float(in[i]) + 1.f);
  }
  for (int i = lane; i < 256; i += 32)
    if (i / 16 < rows_c) sc[i] = Out(1);
  __syncwarp();
  using Kind = std::conditional_t<kDepth == 8, wmma::precision::tf32, In>;
  wmma::fragment<wmma::matrix_a, 16, 16, kDepth, Kind, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, kDepth, Kind, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, kDepth, Out> c;
  wmma::load_matrix_sync(a, sa, kDepth);
  wmma::load_matrix_sync(b, sb, kDepth);
  wmma::load_matrix_sync(c, sc, 16, wmma::mem_row_major);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(sd, c, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < 256; i += 32)
    if (i / 16 < stored_rows && i % 16 < stored_columns) out[i] = sd[i] * Out(2);
}
KERNEL wmma_f16(const __half* in, float* out, int a, int b, int c, int rows, int columns) {
  wmma_tile<__half, float, 16>(in, out, a, b, c, rows, columns);
}
KERNEL wmma_half_sums(const __half* in, __half* out, int a, int b, int c, int rows, int columns) {
  wmma_tile<__half, __half, 16>(in, out, a, b, c, rows, columns);
}
KERNEL wmma_bf16(const __nv_bfloat16* in, float* out, int a, int b, int c, int rows, int columns) {
  wmma_tile<__nv_bfloat16, float, 16>(in, out, a, b, c, rows, columns);
}
KERNEL wmma_tf32(const float* in, float* out, int a, int b, int c, int rows, int columns) {
  wmma_tile<float, float, 8>(in, out, a, b, c, rows, columns);
}
KERNEL wmma_s8(const signed char* in, int* out, int a, int b, int c, int rows, int columns) {
  wmma_tile<signed char, int, 16>(in, out, a, b, c, rows, columns);
}

// Fragments straight from memory of which some elements hold nothing: m16n8 of each type. `in` has
// 4, 2 and 4 words a lane, `part` words of one lane of each are missing; one element of D is
// stored.
#define MMA(name, text)                                                                         \
  KERNEL name(const uint32_t* in, uint32_t* out, int lane, int word) {                          \
    uint32_t r[10], d[4];                                                                       \
    for (int i = 0; i < 10; ++i) r[i] = in[i * 32 + threadIdx.x] + 1;                           \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"    \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                               \
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), \
                   "r"(r[7]), "r"(r[8]), "r"(r[9]));                                            \
    uint32_t mine = d[0];                                                                       \
    for (int i = 1; i < 4; ++i) mine = word == i ? d[i] : mine;                                 \
    if (threadIdx.x == lane) *out = mine;                                                       \
  }
#define MMA_FLOATS(name, text)                                                               \
  KERNEL name(const uint32_t* in, uint32_t* out, int lane, int word) {                       \
    uint32_t r[10];                                                                          \
    float d[4];                                                                              \
    for (int i = 0; i < 10; ++i) r[i] = in[i * 32 + threadIdx.x] + 1;                        \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                            \
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]),         \
                   "f"(__uint_as_float(r[6])), "f"(__uint_as_float(r[7])),                   \
                   "f"(__uint_as_float(r[8])), "f"(__uint_as_float(r[9])));                  \
    float mine = d[0];                                                                       \
    for (int i = 1; i < 4; ++i) mine = word == i ? d[i] : mine;                              \
    if (threadIdx.x == lane) *out = __float_as_uint(mine);                                   \
  }
MMA_FLOATS(mma_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA_FLOATS(mma_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_FLOATS(mma_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
MMA(mma_s8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")

// One 8 x 8 matrix of 16-bit elements, a word a lane, of which one word holds nothing; moved, and
// the word of one lane is stored.
KERNEL moves_a_matrix(const uint32_t* in, uint32_t* out, int how, int lane) {
  __shared__ __align__(16) uint32_t s[32];
  uint32_t r = in[threadIdx.x] + 1, d = 0;
  const unsigned row = shared_address(&s[threadIdx.x % 8 * 4]);
  if (how >= 3) s[threadIdx.x] = r;
  __syncwarp();
  if (how == 0) asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(r));
  if (how == 1)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(row), "r"(r));
  if (how == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row), "r"(r));
  if (how == 3)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(row));
  if (how == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(row));
  __syncwarp();
  if (how == 1 || how == 2) d = s[threadIdx.x];
  if (threadIdx.x == lane) *out = d + 1;
}

// The four products of Volta's mma: `in` has two words of A a lane, two of B and eight of C.
KERNEL mma_volta(const uint32_t* in, float* out, int lane, int word) {
  uint32_t r[4];
  float d[8];
  for (int i = 0; i < 4; ++i) r[i] = in[i * 32 + threadIdx.x] + 1;
  for (int i = 0; i < 8; ++i) d[i] = __uint_as_float(in[(4 + i) * 32 + threadIdx.x] + 1);
  asm volatile(
      "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  float mine = d[0];
  for (int i = 1; i < 8; ++i) mine = word == i ? d[i] : mine;
  if (threadIdx.x == lane) *out = mine;
}

// An element of a row that holds nothing from `known` on, used in each way there is.
KERNEL uses_an_element(const int* in, int* out, int how, int known) {
  __shared__ __align__(16) int s[32];
  if (threadIdx.x < known) s[threadIdx.x] = in[threadIdx.x] + 1;
  __syncwarp();
  const int v = s[threadIdx.x];                                // LINE reads_an_element
  if (how == 0) out[threadIdx.x] = v * 3;                      // LINE use_0
  if (how == 1 && v > 5) out[threadIdx.x] = 1;                 // LINE use_1
  if (how == 2) out[threadIdx.x] = in[v & 31] + 1;             // LINE use_2
  if (how == 3) atomicAdd(&out[0], v);                         // LINE use_3
  if (how == 4) out[threadIdx.x] = __ballot_sync(~0u, v > 5);  // LINE use_4
  if (how == 5) {
    const int twice = v > 5 ? v * 2 : 7;
    out[threadIdx.x] = (twice & 0) | (threadIdx.x < known ? twice : 3);
  }
  if (how == 6) out[threadIdx.x] = __byte_perm(v, threadIdx.x, 0x7654);
  if (how == 7 && threadIdx.x < known) out[threadIdx.x] = v;
}

// A branch whose ways only compute is but a selection: what it gives is undefined, not yet used.
KERNEL selects_by_branch(const int* in, int* out, int stored) {
  const int v = in[threadIdx.x] + 1;  // LINE reads_for_branch
  int chosen = 0;
  asm volatile(
      "{ .reg .pred p; .reg .b32 t;\n"
      "setp.gt.s32 p, %1, 5;\n"
      "mov.b32 %0, 3;\n"
      "@p bra POSITIVE_%=;\n"
      "add.s32 %0, %1, 1;\n"
      "bra MEET_%=;\n"
      "POSITIVE_%=: mov.b32 %0, 7;\n"
      "MEET_%=: mov.b32 t, 0;\n"
      "add.s32 %0, %0, t; }"
      : "=&r"(chosen)
      : "r"(v));
  if (threadIdx.x < stored) out[threadIdx.x] = chosen;  // LINE stores_by_branch
}

// Copies struct-like rows of which the last words hold nothing.
KERNEL carries_rows(const int4* in, int4* out) {
  out[threadIdx.x] = in[threadIdx.x];  // LINE carries_rows
}

KERNEL stores_by_header(const int* in, int* out) {
  store_elsewhere(out + threadIdx.x, in[threadIdx.x] * 2);  // LINE stores_by_header
}
KERNEL stores_beyond_by_header(const int* in, int* out) {
  store_elsewhere(out + threadIdx.x * 1000, in[threadIdx.x] * 2);  // LINE beyond_by_header
}
