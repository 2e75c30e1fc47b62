// Flash attention with tensor cores, as the engine's test and benchmark of matrix instructions:
// ldmatrix, mma.m16n8k16 of bf16 with f32 accumulators, softmax kept running in base 2.
//
// One block of 128 threads takes 64 queries of one head, a warp 16 of them; keys and values come in
// tiles of 64 through shared memory; mma_flash_async has the next tile under way meanwhile
// (cp.async). Depth is 64.
// Precision: Q, K, V bf16; scores, row maxima, row sums, output f32; P is rounded to bf16 for P V,
// and the row sums add the unrounded P. Launch: grid (queries / 64, heads), block 128, no dynamic
// shared memory. Needs sm_80. Preconditions: lengths are multiples of 64; pointers are aligned to
// 16 bytes.
#include <cuda_bf16.h>

#include <cstdint>

namespace {

constexpr int kDepth = 64, kRows = 64, kKeys = 64;
constexpr int kPitch = kDepth + 8;  // elements: rows of eight matrices fall into different banks

struct Shared {
  __nv_bfloat16 rows[kKeys * kPitch];
};

__device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ void load_transposed(std::uint32_t (&r)[4], std::uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

__device__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// 64 rows of 64 elements into shared memory, 16 bytes at a time.
__device__ void fill(Shared& to, const __nv_bfloat16* from) {
  for (int i = threadIdx.x; i < kKeys * kDepth / 8; i += 128) {
    const int row = i / (kDepth / 8), part = i % (kDepth / 8);
    *reinterpret_cast<uint4*>(to.rows + row * kPitch + part * 8) =
        *reinterpret_cast<const uint4*>(from + row * kDepth + part * 8);
  }
}

/// The same by and by, until wait_for_tiles().
__device__ void begin_to_fill(Shared& to, const __nv_bfloat16* from) {
  for (int i = threadIdx.x; i < kKeys * kDepth / 8; i += 128) {
    const int row = i / (kDepth / 8), part = i % (kDepth / 8);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     shared_address(to.rows + row * kPitch + part * 8)),
                 "l"(__cvta_generic_to_global(from + row * kDepth + part * 8))
                 : "memory");
  }
}
__device__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// All tiles are there but the last one, when another was begun.
__device__ void wait_for_tiles(bool another) {
  if (another)
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  else
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

template <bool kAsync>
__device__ void flash(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                      float* o, int queries, int keys, float bits_per_unit) {
  constexpr int kStages = kAsync ? 2 : 1;
  __shared__ alignas(16) Shared stages[kStages][2];  // keys, values
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t head = blockIdx.y;
  q += (head * queries + blockIdx.x * kRows) * kDepth;
  o += (head * queries + blockIdx.x * kRows) * kDepth;
  k += head * keys * kDepth, v += head * keys * kDepth;

  // Matrices of ldmatrix: lanes 8 i ... 8 i + 7 give the rows of matrix i.
  const int matrix = lane / 8, matrix_row = lane % 8;
  std::uint32_t query[kDepth / 16][4];  // (16, 64)
  Shared& first_tile = stages[kStages - 1][0];
  fill(first_tile, q);
  __syncthreads();
  for (int c = 0; c < kDepth / 16; ++c) {
    const int row = warp * 16 + matrix % 2 * 8 + matrix_row, column = c * 16 + matrix / 2 * 8;
    load_matrices(query[c], shared_address(first_tile.rows + row * kPitch + column));
  }
  __syncthreads();

  float out[kDepth / 8][4] = {};  // (16, 64)
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  const auto begin_tile = [&](int first) {
    Shared(&to)[2] = stages[first / kKeys % kStages];
    begin_to_fill(to[0], k + first * kDepth);
    begin_to_fill(to[1], v + first * kDepth);
    commit();
  };
  if (kAsync) begin_tile(0);
  for (int first = 0; first < keys; first += kKeys) {
    Shared &keys_shared = stages[first / kKeys % kStages][0],
           &values_shared = stages[first / kKeys % kStages][1];
    if (kAsync) {
      const bool another = first + kKeys < keys;
      if (another) begin_tile(first + kKeys);
      wait_for_tiles(another);
    } else {
      fill(keys_shared, k + first * kDepth);
      fill(values_shared, v + first * kDepth);
    }
    __syncthreads();

    float score[kKeys / 8][4] = {};  // (16, 64)
#pragma unroll
    for (int n = 0; n < kKeys / 8; n += 2) {
#pragma unroll
      for (int c = 0; c < kDepth / 16; ++c) {
        std::uint32_t key[4];  // (16 keys, 16)
        const int row = n * 8 + matrix / 2 * 8 + matrix_row, column = c * 16 + matrix % 2 * 8;
        load_matrices(key, shared_address(keys_shared.rows + row * kPitch + column));
        multiply(score[n], query[c], key[0], key[1]);
        multiply(score[n + 1], query[c], key[2], key[3]);
      }
    }

    float fresh[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) fresh[i / 2] = fmaxf(fresh[i / 2], score[n][i]);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      fresh[r] = fmaxf(fresh[r], __shfl_xor_sync(0xffffffffu, fresh[r], 1));
      fresh[r] = fmaxf(fresh[r], __shfl_xor_sync(0xffffffffu, fresh[r], 2));
      const float rescale = exp2f((largest[r] - fresh[r]) * bits_per_unit);
      largest[r] = fresh[r];
      total[r] *= rescale;
#pragma unroll
      for (int n = 0; n < kDepth / 8; ++n) out[n][2 * r] *= rescale, out[n][2 * r + 1] *= rescale;
    }

    // Accumulators of Q K^T lie as the operand A of P V wants them.
    const float shift[2] = {largest[0] * bits_per_unit, largest[1] * bits_per_unit};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[n][i] = exp2f(fmaf(score[n][i], bits_per_unit, -shift[i / 2]));
        total[i / 2] += score[n][i];
      }
    }
#pragma unroll
    for (int c = 0; c < kKeys / 16; ++c) {
      const std::uint32_t p[4] = {pack(score[2 * c][0], score[2 * c][1]),
                                  pack(score[2 * c][2], score[2 * c][3]),
                                  pack(score[2 * c + 1][0], score[2 * c + 1][1]),
                                  pack(score[2 * c + 1][2], score[2 * c + 1][3])};  // (16, 16 keys)
#pragma unroll
      for (int n = 0; n < kDepth / 8; n += 2) {
        std::uint32_t value[4];  // (16 keys, 16)
        const int row = c * 16 + matrix % 2 * 8 + matrix_row, column = n * 8 + matrix / 2 * 8;
        load_transposed(value, shared_address(values_shared.rows + row * kPitch + column));
        multiply(out[n], p, value[0], value[1]);
        multiply(out[n + 1], p, value[2], value[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
    const int row = warp * 16 + lane / 4 + 8 * r;
#pragma unroll
    for (int n = 0; n < kDepth / 8; ++n) {
      *reinterpret_cast<float2*>(o + row * kDepth + n * 8 + lane % 4 * 2) =
          make_float2(out[n][2 * r] / total[r], out[n][2 * r + 1] / total[r]);
    }
  }
}

}  // namespace

/// `bits_per_unit` is the scale times log2(e).
extern "C" __global__ void __launch_bounds__(128)
    mma_flash(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, float* o,
              int queries, int keys, float bits_per_unit) {
  flash<false>(q, k, v, o, queries, keys, bits_per_unit);
}
extern "C" __global__ void __launch_bounds__(128)
    mma_flash_async(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                    float* o, int queries, int keys, float bits_per_unit) {
  flash<true>(q, k, v, o, queries, keys, bits_per_unit);
}

/// The time of one mma: a warp of little else, 8 sums side by side.
extern "C" __global__ void mma_only(const std::uint32_t* in, float* o, int rounds) {
  std::uint32_t a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = in[i * 32 + threadIdx.x];
  for (int i = 0; i < 2; ++i) b[i] = in[(4 + i) * 32 + threadIdx.x];
  float d[8][4] = {};
  for (int n = 0; n < rounds; ++n) {
#pragma unroll
    for (int i = 0; i < 8; ++i) multiply(d[i], a, b[0], b[1]);
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 4; ++j) o[(i * 4 + j) * 32 + threadIdx.x] = d[i][j];
  }
}
