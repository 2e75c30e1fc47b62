// The two products of attention by one warp with tensor cores: 16 rows of Q and P against keys and
// values in swizzled tiles of 16-bit numbers. Knows nothing of what happens to S between them.
#pragma once
#include "optimized/kernels/swizzle.cuh"

namespace attest::kernels {

/// S = Q K^T.   q (16 of kTileRows, head_dim), k (kKeys of kTileKeys, head_dim), s (16, kKeys)
/// q, k: where this lane's row of the first ldmatrix lies, in the first panel.
template <uint32_t kFormat, int kTileRows, int kTileKeys, int kKeys>
__device__ inline void multiply_q_k(uint32_t q, uint32_t k, int head_dim,
                                    float (&s)[kKeys / 8][4]) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
    s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0F;
  }
#pragma unroll 1
  for (int column = 0; column < head_dim; column += kPanelColumns) {
#pragma unroll
    for (int step = 0; step < kPanelColumns / kStepColumns; ++step) {
      if (column + step * kStepColumns >= head_dim) {
        break;
      }
      uint32_t rows[4];
      load_matrices(rows, stepped(q, step));
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t keys[4];  // 16 keys, 16 columns
        load_matrices(keys, stepped(k, step) + n * 8 * kPanelRowBytes);
        multiply_add<kFormat>(s[n], rows, keys[0], keys[1]);
        multiply_add<kFormat>(s[n + 1], rows, keys[2], keys[3]);
      }
    }
    q += panel_bytes(kTileRows);
    k += panel_bytes(kTileKeys);
  }
}

/// Largest, or sum, over the four lanes that share a row.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, 2));
}
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(0xFFFFFFFFU, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFFU, x, 2);
}

/// O = O * rescale + P V, P rounded to kFormat.
/// p (16, kKeys), v (kKeys of kTileKeys, head_dim_v), o (16, kWidth)
/// v: where this lane's row of the first ldmatrix lies, in the first panel.
template <uint32_t kFormat, int kTileKeys, int kKeys, int kWidth>
__device__ inline void add_p_v(const float (&p)[kKeys / 8][4], uint32_t v, int head_dim_v,
                               const float (&rescale)[2], float (&o)[kWidth / 8][4]) {
  uint32_t weights[kKeys / kStepColumns][4];
#pragma unroll
  for (int c = 0; c < kKeys / kStepColumns; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&half)[4] = p[2 * c + i / 2];
      weights[c][i] = pack<kFormat>(half[i % 2 * 2], half[i % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int n = 0; n < kWidth / 8; n += 2) {
    if (n * 8 >= head_dim_v) {
      break;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      o[n][i] *= rescale[i / 2];
      o[n + 1][i] *= rescale[i / 2];
    }
    const int panel = n * 8 / kPanelColumns;
    const int step = n * 8 % kPanelColumns / kStepColumns;
#pragma unroll
    for (int c = 0; c < kKeys / kStepColumns; ++c) {
      uint32_t values[4];  // 16 keys, 16 columns
      load_matrices_transposed(values, stepped(v, step) + panel * panel_bytes(kTileKeys) +
                                           c * kStepColumns * kPanelRowBytes);
      multiply_add<kFormat>(o[n], weights[c], values[0], values[1]);
      multiply_add<kFormat>(o[n + 1], weights[c], values[2], values[3]);
    }
  }
}

}  // namespace attest::kernels
