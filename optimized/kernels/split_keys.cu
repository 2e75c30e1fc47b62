// split_keys: attention of few queries over many cached keys, which are split into parts that are
// attended to independently and combined afterwards.
//
// Algorithm: Flash-Decoding with packed heads. A block takes one part of the keys of one KV head
// and up to 16 rows that read it (all heads of the group, of one query after another), so that K
// and V leave memory once for all of them. It brings 32 keys at a time, wherever the cache has
// them, into shared memory; a warp keeps up to four rows, scores one key per lane, and holds m, l
// and an unscaled O per row, which go to scratch. A second kernel brings the parts of a row to
// their common maximum and adds them.
// Which keys form a part, and why a row's bits depend on nothing but itself and its own keys:
// decode_parts.cuh.
// Precision path: q and the cache are widened to f32 exactly; q.k is a chain of f32 FMAs in rising
// column order, then multiplied by the scale of the stored key; logits as logits.cuh says; weights
// f32, never rounded further (P format f32), multiplied by the scale of the stored value; P V is a
// chain of f32 FMAs in rising key order, rescaled once per 32 keys when the maximum grows, and once
// more when the parts are combined; the row sum is kept per lane and added over 32 lanes at the end
// of a part; IEEE division; one rounding to the output format.
// Launch: split_keys: 32 threads per four rows of a tile, up to 128; grid.x = batch * num_heads_kv
// * tiles of rows * splits; dynamic shared memory. combine_parts: 32 threads; grid.x = batch *
// num_heads_q * queries.
// Preconditions: head_dim and head_dim_v in [1, 256]; last strides 1; lengths within queries and
// keys; split_keys_scratch_floats() floats of scratch. A part behind the last key is neither
// written nor read; one that has keys but hides them all writes m = -inf, l = 0, O = 0. Never read:
// entries of the block table and rows of the cache that no row of a tile sees. Never written: as in
// flash_prefill.cu.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/decode_parts.cuh"
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"
#include "optimized/kernels/online_softmax.cuh"
#include "optimized/kernels/tiles.cuh"

namespace attest::kernels {
namespace {

constexpr int kWarp = 32;
static_assert(kKeyBlock == kWarp, "one key per lane");
constexpr int kColumnGroups = kDepthLimit / kWarp;
constexpr int kRowsPerWarp = 4;
constexpr int kThreadsMost = kWarp * kRowsPerTile / kRowsPerWarp;
constexpr int kBlocksPerProcessor = 2;  // leaves every thread the 255 registers there are

__device__ float largest_of_warp(float x) {
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, lanes));
  }
  return x;
}
__device__ float sum_of_warp(float x) {
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, lanes);
  }
  return x;
}

/// Rows of k or v into shared memory. A warp deals its lanes to columns first, then to rows.
template <uint32_t kFormat>
__device__ void load_keys(const Tile& tile, const View& cache, const int64_t* offsets) {
  const int shift = min(tile.shift, 5);  // 2^5 lanes
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first_column = (lane & ((1 << shift) - 1)) * 4;
  const int step = static_cast<int>(blockDim.x) >> shift;
  for (int row = static_cast<int>(threadIdx.x) >> shift; row < kKeyBlock; row += step) {
    const int64_t offset = offsets[row];
    float* to = tile.data + row * tile.row_step + first_column / 4 * tile.group_step;
    for (int column = first_column; column < tile.width; column += 4 << shift) {
      const int left = tile.width - column;
      float4 four = {0.0F, 0.0F, 0.0F, 0.0F};
      if (offset >= 0) {
        four = cache.vectors && left >= 4
                   ? load_four<kFormat>(cache.data, offset + column)
                   : load_up_to_four<kFormat>(cache.data, offset + column, left);
      }
      *reinterpret_cast<float4*>(to) = four;
      to += tile.group_step << shift;
    }
  }
}

/// S = Q K^T for the rows of a warp and the key of a lane.   q (kRows, q_pitch)
template <int kRows>
__device__ void multiply_q_k(const float* q, int q_pitch, const Tile& k, int key,
                             float (&s)[kRows]) {
  const float* row = k.data + key * k.row_step;
  for (int column = 0; column < k.width; column += 4) {
    const float4 y = *reinterpret_cast<const float4*>(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 x = *reinterpret_cast<const float4*>(q + r * q_pitch + column);
      s[r] = fmaf(x.x, y.x, s[r]);
      s[r] = fmaf(x.y, y.y, s[r]);
      s[r] = fmaf(x.z, y.z, s[r]);
      s[r] = fmaf(x.w, y.w, s[r]);
    }
    row += k.group_step;
  }
}

/// Floats of shared memory of a block of `warps`, in this order: Q, K, V, P.
struct SharedParts {
  int q_pitch, k, v, p, floats;
};
__host__ __device__ SharedParts shared_parts(int tile_rows, int head_dim, int head_dim_v) {
  SharedParts parts{};
  parts.q_pitch = (head_dim + 3) / 4 * 4;
  parts.k = tile_rows * parts.q_pitch;
  parts.v = parts.k + parts.q_pitch / 4 * group_major_pitch(kKeyBlock);
  parts.p = parts.v + kKeyBlock * row_major_pitch(head_dim_v);
  parts.floats = parts.p + tile_rows * kKeyBlock;
  return parts;
}

/// What the rows of a warp weigh the stored value of one key with.
template <int kRows>
struct alignas(kRows * sizeof(float)) Weights {
  float of[kRows];
};

template <uint32_t kCache, int kRows>
__global__ void __launch_bounds__(kThreadsMost, kBlocksPerProcessor)
    split_keys(const __grid_constant__ AttentionArguments a, const __grid_constant__ Parts parts,
               unsigned row_tiles) {
  extern __shared__ __align__(16) float shared[];
  __shared__ KeyTile<kKeyBlock> key_tile;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const DecodeBlock block = decode_block(a, parts.splits, row_tiles);
  if (block.idle) {
    return;
  }

  const int tile_rows = static_cast<int>(blockDim.x) / kWarp * kRows;
  const SharedParts places = shared_parts(tile_rows, a.head_dim, a.head_dim_v);
  const Tile k_tile = group_major_tile(shared + places.k, kKeyBlock, a.head_dim);
  const Tile v_tile = row_major_tile(shared + places.v, kKeyBlock, a.head_dim_v);
  float* q = shared + warp * kRows * places.q_pitch;  // (kRows, q_pitch)
  auto* p = reinterpret_cast<Weights<kRows>*>(shared + places.p) + warp * kKeyBlock;

  PackedRow row[kRows];
  float m[kRows];
  float l[kRows];
  float acc[kRows][kColumnGroups];  // column lane + 32 c
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    row[r] = packed_row(a, block, warp * kRows + r);
    m[r] = -INFINITY;
    l[r] = 0.0F;
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      acc[r][c] = 0.0F;
    }
    const int64_t q_row = a.q.offset(block.b, row[r].head, row[r].query);
    for (int column = lane; column < places.q_pitch; column += kWarp) {
      const bool there = row[r].live && column < a.head_dim;
      q[r * places.q_pitch + column] =
          there ? load_any(a.q.format, a.q.data, q_row + column) : 0.0F;
    }
  }

  const int hidden = block.seen.begin - block.mine.begin;
  for (int j0 = block.mine.begin + hidden / kKeyBlock * kKeyBlock; j0 < block.seen.end;
       j0 += kKeyBlock) {
    find_keys(a, block, j0, key_tile);
    __syncthreads();
    load_keys<kCache>(k_tile, a.k, key_tile.k);
    load_keys<kCache>(v_tile, a.v, key_tile.v);
    __syncthreads();
    const int j = j0 + lane;
    float s[kRows] = {};
    multiply_q_k<kRows>(q, places.q_pitch, k_tile, lane, s);
    float rescale[kRows];
    Weights<kRows> weights;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float z = -INFINITY;
      if (contains(row[r].range, j)) {
        z = s[r] * key_tile.k_scale[lane];
        if (!logits_are_plain(a)) {
          z = logit(a, logit_row(a, block.b, row[r].head, row[r].query, block.diagonal), z, j);
        }
      }
      const float largest = fmaxf(m[r], largest_of_warp(z));
      const float weight_of_key = weight(z, largest, a.bits_per_unit);
      rescale[r] = weight(m[r], largest, a.bits_per_unit);
      m[r] = largest;
      l[r] = l[r] * rescale[r] + weight_of_key;
      weights.of[r] = weight_of_key * key_tile.v_scale[lane];
    }
    p[lane] = weights;
    __syncwarp();
    const int count = min(block.seen.end - j0, kKeyBlock);
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      const int column = lane + c * kWarp;
      if (c * kWarp >= a.head_dim_v) {
        break;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        acc[r][c] *= rescale[r];
      }
      if (column < a.head_dim_v) {
        for (int n = 0; n < count; ++n) {
          const float y = v_tile.data[n * v_tile.row_step + column];
          const Weights<kRows> x = p[n];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            acc[r][c] = fmaf(x.of[r], y, acc[r][c]);
          }
        }
      }
    }
    __syncthreads();  // before the next tile replaces this one
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float row_sum = sum_of_warp(l[r]);
    if (!row[r].live) {
      continue;
    }
    const int64_t at = place_in_parts(a, parts, block, row[r]);
    if (lane == 0) {
      parts.m[at] = m[r];
      parts.l[at] = row_sum;
    }
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      const int column = lane + c * kWarp;
      if (column < a.head_dim_v) {
        parts.o[at * a.head_dim_v + column] = acc[r][c];
      }
    }
  }
}

__global__ void __launch_bounds__(kWarp) combine_parts(const __grid_constant__ AttentionArguments a,
                                                       const __grid_constant__ Parts parts) {
  const int64_t row = blockIdx.x;
  const int i = static_cast<int>(row % a.seqlen_q);
  const int h = static_cast<int>(row / a.seqlen_q % a.num_heads_q);
  const int b = static_cast<int>(row / a.seqlen_q / a.num_heads_q);
  if (i >= query_count(a, b)) {
    return;
  }
  const int count = part_count(key_count(a, b), parts.splits);
  const int lane = static_cast<int>(threadIdx.x);
  float m = -INFINITY;
  for (int part = lane; part < count; part += kWarp) {
    m = fmaxf(m, parts.m[part * parts.rows + row]);
  }
  m = largest_of_warp(m);

  // A lane weighs one part of 32; then the parts come one after another, and a lane has columns.
  float l = 0.0F;
  float acc[kColumnGroups] = {};
  for (int first = 0; first < count; first += kWarp) {
    const int64_t mine = (first + lane) * parts.rows + row;
    float factor = 0.0F;
    if (first + lane < count) {
      factor = weight(parts.m[mine], m, a.bits_per_unit);
      l += parts.l[mine] * factor;
    }
    for (int part = first; part < min(first + kWarp, count); ++part) {
      const float f = __shfl_sync(0xFFFFFFFFU, factor, part - first);
      const float* o = parts.o + (part * parts.rows + row) * a.head_dim_v;
#pragma unroll
      for (int n = 0; n < kColumnGroups; ++n) {
        const int column = lane + n * kWarp;
        acc[n] += column < a.head_dim_v ? o[column] * f : 0.0F;
      }
    }
  }
  const RowEnd end = finish_row(a, h, m, sum_of_warp(l));
  if (lane == 0) {
    store_lse(a, end, a.lse.offset(b, h, i));
  }
  const int64_t o_row = a.o.offset(b, h, i);
#pragma unroll
  for (int n = 0; n < kColumnGroups; ++n) {
    const int column = lane + n * kWarp;
    if (column < a.head_dim_v) {
      store_output(a, end, o_row + column, acc[n]);
    }
  }
}

int warps_per_block(const AttestProblem& problem) {
  const int64_t rows = std::min<int64_t>(packed_rows(problem), kRowsPerTile);
  return static_cast<int>((rows + kRowsPerWarp - 1) / kRowsPerWarp);
}

template <uint32_t kCache, int kRows>
cudaError_t launch(const AttestAttention& attention, const AttentionArguments& a,
                   const Parts& parts) {
  const int warps = warps_per_block(attention.problem);
  const int shared_bytes = shared_parts(warps * kRows, a.head_dim, a.head_dim_v).floats *
                           static_cast<int>(sizeof(float));
  const auto kernel = split_keys<kCache, kRows>;
  if (shared_bytes > 40 * 1024) {  // 48 KiB with KeyTile; more must be asked for
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (status != cudaSuccess) {
      return status;
    }
  }
  const auto blocks = static_cast<unsigned>(split_keys_blocks(attention.problem));
  kernel<<<blocks, warps * kWarp, shared_bytes, static_cast<cudaStream_t>(attention.stream)>>>(
      a, parts, static_cast<unsigned>(row_tiles_of(attention.problem)));
  return cudaGetLastError();
}

template <uint32_t kCache>
cudaError_t launch_rows(const AttestAttention& attention, const AttentionArguments& a,
                        const Parts& parts) {
#ifndef ATTEST_FEWER_INSTANCES  // see flash_prefill.cu
  // A single row, as in the decode of one token without groups: four would mostly idle.
  if (packed_rows(attention.problem) == 1) {
    return launch<kCache, 1>(attention, a, parts);
  }
#endif
  return launch<kCache, kRowsPerWarp>(attention, a, parts);
}

cudaError_t launch_format(const AttestAttention& attention, const AttentionArguments& a,
                          const Parts& parts) {
  switch (a.k.format) {
    case ATTEST_F32:
      return launch_rows<ATTEST_F32>(attention, a, parts);
    case ATTEST_F16:
      return launch_rows<ATTEST_F16>(attention, a, parts);
    case ATTEST_BF16:
      return launch_rows<ATTEST_BF16>(attention, a, parts);
    case ATTEST_E4M3:
      return launch_rows<ATTEST_E4M3>(attention, a, parts);
    case ATTEST_E5M2:
      return launch_rows<ATTEST_E5M2>(attention, a, parts);
    default:
      return launch_rows<ATTEST_I8>(attention, a, parts);
  }
}

}  // namespace

int64_t split_keys_scratch_floats(const AttestProblem& problem) {
  return problem.num_splits * problem.batch * problem.num_heads_q * problem.seqlen_q *
         (problem.head_dim_v + 2);
}

int64_t split_keys_blocks(const AttestProblem& problem) {
  return problem.batch * problem.num_heads_kv * row_tiles_of(problem) * problem.num_splits;
}

cudaError_t launch_split_keys(const AttestAttention& attention) {
  const Parts parts = parts_of(attention);
  if (parts.rows == 0) {
    return cudaSuccess;
  }
  const AttentionArguments a = arguments_of(attention);
  const cudaError_t status = mma_decode_takes(attention) ? launch_mma_decode(attention)
                                                         : launch_format(attention, a, parts);
  if (status != cudaSuccess) {
    return status;
  }
  combine_parts<<<static_cast<unsigned>(parts.rows), kWarp, 0,
                  static_cast<cudaStream_t>(attention.stream)>>>(a, parts);
  return cudaGetLastError();
}

}  // namespace attest::kernels
