// mma_prefill: attention of a tile of queries over all keys with tensor cores, for f16 and bf16.
//
// Algorithm: FlashAttention-2. A block of four warps owns 64 query rows, a warp 16 of them; tiles
// of 64 keys (32 if a row is wider than 128) pass by in rising order. While one tile is worked on,
// the next is on its way into the other of two stages of shared memory. S = Q K^T stays in
// registers; the weights, rounded to the input format, are at once the operand of P V.
// anatomy.md shows it in a picture. Precision path: q.k is summed in f32 by tensor cores, 16
// columns at a time in rising order; logits as logits.cuh says; weights f32; the row sum adds them
// as they are, per lane, over four lanes at the end; P V takes them rounded to the input format
// and sums in f32 by tensor cores, 16 keys at a time in rising order, rescaled once per tile when
// the maximum grows; IEEE division; one rounding to the output format.
// Launch: 128 threads; grid.x = batch * num_heads_q * tiles of rows; dynamic shared memory for Q
// and two stages of K and V: at most 99 KiB, what every GPU from 8.0 on can give.
// Preconditions: inputs f16 or bf16; head_dim and head_dim_v multiples of 8 in [8, 256]; rows of q,
// k and v aligned to 16 bytes, rows of o to four elements; lengths within queries and keys. Never
// read: rows of k and v behind a key length or outside what the tile may see; rows of q behind a
// query length. Never written: rows of o and lse behind a query length.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"
#include "optimized/kernels/mma_products.cuh"
#include "optimized/kernels/online_softmax.cuh"

namespace attest::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 64;      // of a block
constexpr int kWarpRows = 16;  // of a warp: one mma
constexpr int kNarrow = 128;   // widest row of q, k and v with tiles of 64 keys

/// What a lane holds of its warp's 16 rows: two of them, `group` and `group + 8`, of each eight
/// columns two: `pair` and `pair + 1`. Element i of a fragment lies in half i / 2.
struct Lane {
  int group, pair;
};
__device__ Lane this_lane() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {lane / 4, lane % 4 * 2};
}

/// The queries of a warp and what they see. Both ends of a row's keys never decrease from row to
/// row, so the first and the last row tell what all of them see, and what any of them does.
struct WarpRows {
  int first;  // the others follow
  KeyRange of_first, of_last;

  __device__ bool see_all_of(int j0, int keys) const {
    return j0 >= of_last.begin && j0 + keys <= of_first.end;
  }
  __device__ bool see_none_of(int j0, int keys) const {
    return j0 >= of_last.end || j0 + keys <= of_first.begin;
  }
};

/// Keys outside a row's range are hidden.
template <int kKeys>
__device__ void hide_keys(const KeyRange (&range)[2], int first_key, float (&s)[kKeys / 8][4]) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[n][i] = contains(range[i / 2], first_key + n * 8 + i % 2) ? s[n][i] : -INFINITY;
    }
  }
}

/// From q.k to logits, where more is done to them than scaling. Seldom needed and long, so there
/// is one copy of it: registers cannot be numbered at run time, so S moves past it instead, eight
/// keys at a time, once round.
template <int kKeys>
__device__ void shape_logits(const AttentionArguments& a, const LogitRow (&row)[2],
                             const KeyRange (&range)[2], int first_key, float (&s)[kKeys / 8][4]) {
#pragma unroll 1
  for (int j = first_key; j < first_key + kKeys; j += 8) {
    float z[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = j + i % 2;
      z[i] = contains(range[i / 2], key) ? logit(a, row[i / 2], s[0][i], key) : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int n = 0; n + 1 < kKeys / 8; ++n) {
        s[n][i] = s[n + 1][i];
      }
      s[kKeys / 8 - 1][i] = z[i];
    }
  }
}

/// What is carried from tile to tile, and by how much the last one made it shrink.
struct Softmax {
  float m[2], l[2], rescale[2];
};

/// From logits to weights; m, l and rescale of both rows.
template <int kKeys>
__device__ void weigh(float bits_per_unit, float (&s)[kKeys / 8][4], Softmax& softmax) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = softmax.m[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    }
    largest = largest_of_row(largest);
    softmax.rescale[half] = weight(softmax.m[half], largest, bits_per_unit);
    softmax.m[half] = largest;
    float l = softmax.l[half] * softmax.rescale[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s[n][i] = weight(s[n][i], largest, bits_per_unit);
        l += s[n][i];
      }
    }
    softmax.l[half] = l;
  }
}

/// Two neighbouring elements of O.
__device__ void store_two(const AttentionArguments& a, const RowEnd& end, int64_t at, float x,
                          float y) {
  x = output_of(end, x);
  y = output_of(end, y);
  if (a.o.format == ATTEST_F32) {
    *reinterpret_cast<float2*>(static_cast<float*>(a.o.data) + at) = make_float2(x, y);
  } else {
    *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(a.o.data) + at) =
        a.o.format == ATTEST_F16 ? pack<ATTEST_F16>(x, y) : pack<ATTEST_BF16>(x, y);
  }
}

template <uint32_t kFormat, int kKeys, int kWidth>
__global__ void __launch_bounds__(kThreads)
    mma_prefill(const __grid_constant__ AttentionArguments a, unsigned row_tiles) {
  // Under causality the last rows see most keys: their blocks come first.
  const int b = static_cast<int>(blockIdx.x / row_tiles / a.num_heads_q);
  const int h = static_cast<int>(blockIdx.x / row_tiles % a.num_heads_q);
  const int first_row = static_cast<int>(row_tiles - 1 - blockIdx.x % row_tiles) * kRows;
  const int kv_head = h / (a.num_heads_q / a.num_heads_kv);
  const int queries = query_count(a, b);
  const int keys = key_count(a, b);
  if (first_row >= queries) {
    return;
  }
  const int64_t diagonal = diagonal_of(a, queries, keys);

  // What the tile as a whole may see: from the first key of its first row to the last of its last.
  const int last_row = min(first_row + kRows, queries) - 1;
  const int begin = keys_seen_by(a, first_row + diagonal, keys).begin;
  const int end = keys_seen_by(a, last_row + diagonal, keys).end;
  const auto source = [b](const View& view, int head, int columns, int begin, int end) {
    return RowSource{static_cast<const char*>(view.data) + view.offset(b, head, 0) * 2,
                     view.row * 2, columns, begin, end};
  };
  const RowSource k_source = source(a.k, kv_head, a.head_dim, begin, end);
  const RowSource v_source = source(a.v, kv_head, a.head_dim_v, begin, end);

  extern __shared__ __align__(kPanelRowBytes) unsigned char shared[];
  const auto q_tile = static_cast<uint32_t>(__cvta_generic_to_shared(shared));  // (kRows, head_dim)
  const uint32_t k_tile = q_tile + tile_bytes(kRows, a.head_dim);               // (kKeys, head_dim)
  const uint32_t v_tile = k_tile + tile_bytes(kKeys, a.head_dim);  // (kKeys, head_dim_v)
  const uint32_t stage_bytes = tile_bytes(kKeys, a.head_dim) + tile_bytes(kKeys, a.head_dim_v);

  // Tiles begin at multiples of their size, so that a row's bits do not depend on its neighbours.
  const int first_key = begin / kKeys * kKeys;
  if (first_key < end) {
    copy_rows<kRows>(q_tile, source(a.q, h, a.head_dim, 0, queries), first_row);
    copy_rows<kKeys>(k_tile, k_source, first_key);
    copy_rows<kKeys>(v_tile, v_source, first_key);
  }

  const Lane lane = this_lane();
  WarpRows warp;
  warp.first = first_row + static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  warp.of_first = keys_seen_by(a, warp.first + diagonal, keys);
  warp.of_last = keys_seen_by(a, min(warp.first + kWarpRows - 1, last_row) + diagonal, keys);
  const bool warp_is_idle = warp.first >= queries;
  const bool plain = logits_are_plain(a);

  KeyRange range[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp.first + lane.group + 8 * half;
    range[half] = row < queries ? keys_seen_by(a, row + diagonal, keys) : KeyRange{0, 0};
  }

  // Lanes 8 i to 8 i + 7 give ldmatrix the rows of its matrix i. Of Q and V: rows 0-7 and 8-15 of
  // the first eight columns, then of the next eight. Of K the other way round: the first eight
  // keys with both halves of 16 columns, then the next eight keys.
  const int matrix = static_cast<int>(threadIdx.x) % 32 / 8;
  const int matrix_row = static_cast<int>(threadIdx.x) % 8;
  const uint32_t q_lane =
      q_tile + swizzled(warp.first - first_row + matrix % 2 * 8 + matrix_row, matrix / 2);
  const uint32_t k_lane = k_tile + swizzled(matrix / 2 * 8 + matrix_row, matrix % 2);
  const uint32_t v_lane = v_tile + swizzled(matrix % 2 * 8 + matrix_row, matrix / 2);

  Softmax softmax = {{-INFINITY, -INFINITY}, {0.0F, 0.0F}, {0.0F, 0.0F}};
  float o[kWidth / 8][4];
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n) {
    o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.0F;
  }

  uint32_t stage = 0;  // bytes from the first stage to the one that holds this tile
  for (int j0 = first_key; j0 < end; j0 += kKeys) {
    wait_for_copies();
    __syncthreads();  // this tile is there for all, and nobody needs the one before
    const uint32_t other = stage_bytes - stage;
    if (j0 + kKeys < end) {
      copy_rows<kKeys>(k_tile + other, k_source, j0 + kKeys);
      copy_rows<kKeys>(v_tile + other, v_source, j0 + kKeys);
    }
    if (!warp_is_idle && !warp.see_none_of(j0, kKeys)) {
      float s[kKeys / 8][4];
      multiply_q_k<kFormat, kRows, kKeys, kKeys>(q_lane, k_lane + stage, a.head_dim, s);
      if (!plain) {
        const int row = warp.first + lane.group;
        const LogitRow rows[2] = {logit_row(a, b, h, row, diagonal),
                                  logit_row(a, b, h, row + 8, diagonal)};
        shape_logits<kKeys>(a, rows, range, j0 + lane.pair, s);
      } else if (!warp.see_all_of(j0, kKeys)) {
        hide_keys<kKeys>(range, j0 + lane.pair, s);
      }
      weigh<kKeys>(a.bits_per_unit, s, softmax);
      add_p_v<kFormat, kKeys, kKeys, kWidth>(s, v_lane + stage, a.head_dim_v, softmax.rescale, o);
    }
    stage = other;
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp.first + lane.group + 8 * half;
    const float row_sum = sum_of_row(softmax.l[half]);
    if (row >= queries) {
      continue;
    }
    const RowEnd row_end = finish_row(a, h, softmax.m[half], row_sum);
    if (lane.pair == 0) {
      store_lse(a, row_end, a.lse.offset(b, h, row));
    }
    const int64_t o_row = a.o.offset(b, h, row) + lane.pair;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      if (n * 8 < a.head_dim_v) {
        store_two(a, row_end, o_row + n * 8, o[n][2 * half], o[n][2 * half + 1]);
      }
    }
  }
}

template <uint32_t kFormat, int kKeys, int kWidth>
cudaError_t launch(const AttestAttention& attention, const AttentionArguments& a) {
  const int shared_bytes = tile_bytes(kRows, a.head_dim) +
                           2 * (tile_bytes(kKeys, a.head_dim) + tile_bytes(kKeys, a.head_dim_v));
  const auto kernel = mma_prefill<kFormat, kKeys, kWidth>;
  if (shared_bytes > 48 * 1024) {  // more must be asked for (CUDA C++ Programming Guide)
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (status != cudaSuccess) {
      return status;
    }
  }
  const auto row_tiles = static_cast<unsigned>((attention.problem.seqlen_q + kRows - 1) / kRows);
  const auto blocks = static_cast<unsigned>(attention.problem.batch * a.num_heads_q * row_tiles);
  if (blocks == 0) {
    return cudaSuccess;
  }
  kernel<<<blocks, kThreads, shared_bytes, static_cast<cudaStream_t>(attention.stream)>>>(
      a, row_tiles);
  return cudaGetLastError();
}

/// Columns of V are padded to 64, 128 or 256; what is beyond head_dim_v is skipped.
template <uint32_t kFormat>
cudaError_t launch(const AttestAttention& attention, const AttentionArguments& a) {
  if (a.head_dim > kNarrow || a.head_dim_v > kNarrow) {
    return launch<kFormat, 32, 256>(attention, a);
  }
#ifndef ATTEST_FEWER_INSTANCES
  if (a.head_dim_v <= 64) {
    return launch<kFormat, 64, 64>(attention, a);
  }
#endif
  return launch<kFormat, 64, 128>(attention, a);
}

}  // namespace

bool mma_prefill_serves(const AttestProblem& problem) {
  const bool contiguous =
      problem.cache == problem.input && problem.page_size == 0 && problem.ring == 0;
  return (problem.input == ATTEST_F16 || problem.input == ATTEST_BF16) && contiguous &&
         problem.head_dim % 8 == 0 && problem.head_dim_v % 8 == 0 &&
         problem.head_dim <= kDepthLimit && problem.head_dim_v <= kDepthLimit;
}

bool mma_prefill_takes(const AttestAttention& attention) {
  const AttentionArguments a = arguments_of(attention);
  return mma_prefill_serves(attention.problem) && a.q.chunks && a.k.chunks && a.v.chunks &&
         a.o.vectors;
}

int mma_prefill_keys(const AttestProblem& problem) {
  return problem.head_dim > kNarrow || problem.head_dim_v > kNarrow ? 32 : 64;
}

cudaError_t launch_mma_prefill(const AttestAttention& attention) {
  const AttentionArguments a = arguments_of(attention);
  return attention.problem.input == ATTEST_F16 ? launch<ATTEST_F16>(attention, a)
                                               : launch<ATTEST_BF16>(attention, a);
}

}  // namespace attest::kernels
