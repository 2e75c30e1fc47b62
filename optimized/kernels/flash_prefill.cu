// flash_prefill: attention of a tile of queries over all keys, without ever holding a T x T matrix.
//
// Algorithm: FlashAttention's online softmax. A block owns a tile of query rows. Tiles of 32 keys
// pass by in rising order; S = Q K^T, the running maximum, the weights and the rescaled sum P V are
// updated with each. Outer-product register tiles: a thread holds rows x 4 logits and rows x
// columns of O; eight neighbouring lanes share a row. Precision path: inputs are widened to f32
// exactly; q.k is a chain of f32 FMAs in rising column order; logits as logits.cuh says; weights
// f32, never rounded further (P format f32); P V is a chain of f32 FMAs in rising key order,
// rescaled once per 32 keys when the maximum grows; the row sum is kept per lane, with the same
// rescales, and added over 8 lanes at the end; IEEE division; one rounding to the output format.
// Launch: 64 threads; grid.x = batch * num_heads_q * tiles of rows (so that 65,536 batches fit);
// dynamic shared memory for the tiles of Q, K, V and P.
// Preconditions: head_dim and head_dim_v in [1, 256]; last strides 1; lengths within queries and
// keys. Never read: rows of k and v behind a key length or outside what the tile may see; rows of q
// behind a query length. Never written: rows of o and lse behind a query length.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"
#include "optimized/kernels/online_softmax.cuh"
#include "optimized/kernels/tiles.cuh"

namespace attest::kernels {
namespace {

constexpr int kThreads = kTileThreads;
constexpr int kWarps = kThreads / 32;
constexpr int kLanesPerRow = 8;
constexpr int kRowGroups = 32 / kLanesPerRow;             // rows of a warp side by side
constexpr int kKeysPerThread = kKeyBlock / kLanesPerRow;  // key `lane + 8 n`, n < 4
constexpr int kWeightPitch = row_major_pitch(kKeyBlock);

__host__ __device__ constexpr int rows_per_tile(int rows_per_thread) {
  return kWarps * kRowGroups * rows_per_thread;
}

// With ATTEST_FEWER_INSTANCES (mutants: compiled often, run little) two widths of V must do.
#ifdef ATTEST_FEWER_INSTANCES
constexpr int kWidestOfFourRows = 64;
#else
constexpr int kWidestOfFourRows = 128;
#endif

/// A row of 8 threads holds head_dim_v columns; 256 columns in turn leave registers for 2 rows
/// only.
constexpr int rows_per_thread(int head_dim_v) {
  return head_dim_v > kWidestOfFourRows ? 2 : 4;
}

int shared_floats(int rows, int head_dim, int padded_head_dim_v) {
  const int groups = (head_dim + 3) / 4;
  return groups * (group_major_pitch(rows) + group_major_pitch(kKeyBlock)) +
         kKeyBlock * row_major_pitch(padded_head_dim_v) + rows * kWeightPitch;
}

__device__ void add_products(float& sum, const float4& x, const float4& y) {
  sum = fmaf(x.x, y.x, sum);
  sum = fmaf(x.y, y.y, sum);
  sum = fmaf(x.z, y.z, sum);
  sum = fmaf(x.w, y.w, sum);
}

/// S = Q K^T for this thread's rows and keys.   q (rows, head_dim), k (keys, head_dim), s (rows,
/// keys)
template <int kRows>
__device__ void multiply_q_k(const float* q, const float* k, int head_dim,
                             float (&s)[kRows][kKeysPerThread]) {
  constexpr int kQStep = group_major_pitch(rows_per_tile(kRows));
  constexpr int kKStep = group_major_pitch(kKeyBlock);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int n = 0; n < kKeysPerThread; ++n) {
      s[i][n] = 0.0F;
    }
  }
  for (int column = 0; column < head_dim; column += 4) {
    float4 x[kRows];
    float4 y[kKeysPerThread];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      x[i] = *reinterpret_cast<const float4*>(q + i * kRowGroups * 4);
    }
#pragma unroll
    for (int n = 0; n < kKeysPerThread; ++n) {
      y[n] = *reinterpret_cast<const float4*>(k + n * kLanesPerRow * 4);
    }
    q += kQStep;
    k += kKStep;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int n = 0; n < kKeysPerThread; ++n) {
        add_products(s[i][n], x[i], y[n]);
      }
    }
  }
}

/// Columns that a thread holds lie in groups of up to four; the groups of the 8 lanes of a row
/// alternate.
template <int kColumns>
struct ColumnGroups {
  static constexpr int kWidth = kColumns < 4 ? kColumns : 4;
  static constexpr int kCount = kColumns / kWidth;
  static constexpr int kStep = kWidth * kLanesPerRow;
};

template <int kWidth>
__device__ void load_columns(const float* from, float* to) {
  if constexpr (kWidth == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  }
}

/// O += P V for this thread's rows and columns.   p (rows, keys), v (keys, columns)
template <int kRows, int kColumns>
__device__ void add_p_v(const float* p, const float* v, int v_pitch, int keys,
                        float (&acc)[kRows][kColumns]) {
  using Groups = ColumnGroups<kColumns>;
  for (int j = 0; j < keys; j += 4) {
    float x[kRows][4];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      load_columns<4>(p + i * kRowGroups * kWeightPitch + j, x[i]);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      float y[kColumns];
#pragma unroll
      for (int group = 0; group < Groups::kCount; ++group) {
        load_columns<Groups::kWidth>(v + (j + n) * v_pitch + group * Groups::kStep,
                                     y + group * Groups::kWidth);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          acc[i][c] = fmaf(x[i][n], y[c], acc[i][c]);
        }
      }
    }
  }
}

/// Largest, or sum, over the eight lanes that share a row.
__device__ float largest_of_row(float x) {
#pragma unroll
  for (int lanes = 1; lanes < kLanesPerRow; lanes *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, lanes));
  }
  return x;
}
__device__ float sum_of_row(float x) {
#pragma unroll
  for (int lanes = 1; lanes < kLanesPerRow; lanes *= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, lanes);
  }
  return x;
}

// One block at least: left to itself, ptxas spills to make room for another.
template <int kRows, int kColumns>
__global__ void __launch_bounds__(kThreads, 1)
    flash_prefill(const __grid_constant__ AttentionArguments a, unsigned row_tiles) {
  constexpr int kTileRows = rows_per_tile(kRows);
  using Groups = ColumnGroups<kColumns>;
  const int b = static_cast<int>(blockIdx.x / row_tiles / a.num_heads_q);
  const int h = static_cast<int>(blockIdx.x / row_tiles % a.num_heads_q);
  const int first_row = static_cast<int>(blockIdx.x % row_tiles) * kTileRows;
  const int kv_head = h / (a.num_heads_q / a.num_heads_kv);
  const int queries = query_count(a, b);
  const int keys = key_count(a, b);
  if (first_row >= queries) {
    return;
  }
  const int64_t diagonal = diagonal_of(a, queries, keys);

  extern __shared__ float4 shared[];
  constexpr int kVWidth = kColumns * kLanesPerRow;
  constexpr int kVPitch = row_major_pitch(kVWidth);
  const int groups = (a.head_dim + 3) / 4;
  float* q_data = reinterpret_cast<float*>(shared);
  float* k_data = q_data + groups * group_major_pitch(kTileRows);
  float* v_data = k_data + groups * group_major_pitch(kKeyBlock);
  float* p_data = v_data + kKeyBlock * kVPitch;                         // (kTileRows, kKeyBlock)
  const Tile q_tile = group_major_tile(q_data, kTileRows, a.head_dim);  // (kTileRows, head_dim)
  const Tile k_tile = group_major_tile(k_data, kKeyBlock, a.head_dim);  // (kKeyBlock, head_dim)
  const Tile v_tile = row_major_tile(v_data, kKeyBlock, kVWidth);       // (kKeyBlock, kVWidth)

  // What the tile as a whole may see: from the first key of its first row to the last of its last.
  const int last_row = min(first_row + kTileRows, queries) - 1;
  const int begin = keys_seen_by(a, first_row + diagonal, keys).begin;
  const int end = keys_seen_by(a, last_row + diagonal, keys).end;
  const TileSource q_source = {a.q.data, a.q.offset(b, h, 0), a.q.row,    a.head_dim, 0,
                               queries,  a.q.format,          a.q.vectors};
  const TileSource k_source = {
      a.k.data,   a.k.offset(b, kv_head, 0), a.k.row, a.head_dim, begin, end, a.k.format,
      a.k.vectors};
  const TileSource v_source = {
      a.v.data,   a.v.offset(b, kv_head, 0), a.v.row, a.head_dim_v, begin, end, a.v.format,
      a.v.vectors};
  load_tile(q_tile, q_source, first_row);

  const int lane = threadIdx.x % 32;
  const int row_lane = lane % kLanesPerRow;
  const int warp_row = threadIdx.x / 32 * (kTileRows / kWarps);
  const int thread_row = warp_row + lane / kLanesPerRow;  // and every kRowGroups-th after it
  const int first_column = row_lane * Groups::kWidth;
  const bool warp_is_idle = first_row + warp_row >= queries;
  const bool plain = logits_are_plain(a);

  KeyRange range[kRows];
  float m[kRows];
  float l[kRows];
  float acc[kRows][kColumns];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first_row + thread_row + i * kRowGroups;
    range[i] = row < queries ? keys_seen_by(a, row + diagonal, keys) : KeyRange{0, 0};
    m[i] = -INFINITY;
    l[i] = 0.0F;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      acc[i][c] = 0.0F;
    }
  }

  // Tiles begin at multiples of their size, so that a row's bits do not depend on its neighbours.
  for (int j0 = begin / kKeyBlock * kKeyBlock; j0 < end; j0 += kKeyBlock) {
    load_tile(k_tile, k_source, j0);
    load_tile(v_tile, v_source, j0);
    __syncthreads();
    if (!warp_is_idle) {
      float s[kRows][kKeysPerThread];
      multiply_q_k(q_data + thread_row * 4, k_data + row_lane * 4, a.head_dim, s);
      if (plain) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
          for (int n = 0; n < kKeysPerThread; ++n) {
            const int j = j0 + row_lane + n * kLanesPerRow;
            s[i][n] = contains(range[i], j) ? s[i][n] : -INFINITY;
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int row = first_row + thread_row + i * kRowGroups;
          const LogitRow logits = logit_row(a, b, h, row, diagonal);
#pragma unroll
          for (int n = 0; n < kKeysPerThread; ++n) {
            const int j = j0 + row_lane + n * kLanesPerRow;
            s[i][n] = contains(range[i], j) ? logit(a, logits, s[i][n], j) : -INFINITY;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        float largest = m[i];
#pragma unroll
        for (int n = 0; n < kKeysPerThread; ++n) {
          largest = fmaxf(largest, s[i][n]);
        }
        largest = largest_of_row(largest);
        const float rescale = weight(m[i], largest, a.bits_per_unit);
        m[i] = largest;
        l[i] *= rescale;
#pragma unroll
        for (int n = 0; n < kKeysPerThread; ++n) {
          const float p = weight(s[i][n], largest, a.bits_per_unit);
          l[i] += p;
          p_data[(thread_row + i * kRowGroups) * kWeightPitch + row_lane + n * kLanesPerRow] = p;
        }
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          acc[i][c] *= rescale;
        }
      }
      __syncwarp();  // a warp reads only the rows of P that it wrote
      add_p_v(p_data + thread_row * kWeightPitch, v_data + first_column, kVPitch,
              min(end - j0, kKeyBlock), acc);
    }
    __syncthreads();  // before the next tile replaces this one
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first_row + thread_row + i * kRowGroups;
    const float row_sum = sum_of_row(l[i]);
    if (row >= queries) {
      continue;
    }
    const RowEnd row_end = finish_row(a, h, m[i], row_sum);
    if (row_lane == 0) {
      store_lse(a, row_end, a.lse.offset(b, h, row));
    }
    const int64_t o_row = a.o.offset(b, h, row);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int column = first_column + c / Groups::kWidth * Groups::kStep + c % Groups::kWidth;
      if (column < a.head_dim_v) {
        store_output(a, row_end, o_row + column, acc[i][c]);
      }
    }
  }
}

/// Columns of V are padded to 16, 32, 64, 128 or 256: kColumns per thread.
template <int kColumns>
cudaError_t launch(const AttestAttention& attention) {
  constexpr int kRows = rows_per_thread(kColumns * kLanesPerRow);
  const AttentionArguments a = arguments_of(attention);
  const int shared_bytes =
      shared_floats(rows_per_tile(kRows), a.head_dim, kColumns * kLanesPerRow) *
      static_cast<int>(sizeof(float));
  const auto kernel = flash_prefill<kRows, kColumns>;
  if (shared_bytes > 48 * 1024) {  // more must be asked for (CUDA C++ Programming Guide)
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (status != cudaSuccess) {
      return status;
    }
  }
  const int64_t blocks = flash_prefill_blocks(attention.problem);
  const auto row_tiles =
      static_cast<unsigned>(blocks / (attention.problem.batch * attention.problem.num_heads_q));
  kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes,
           static_cast<cudaStream_t>(attention.stream)>>>(a, row_tiles);
  return cudaGetLastError();
}

}  // namespace

int64_t flash_prefill_blocks(const AttestProblem& problem) {
  const int64_t rows = rows_per_tile(rows_per_thread(static_cast<int>(problem.head_dim_v)));
  return problem.batch * problem.num_heads_q * ((problem.seqlen_q + rows - 1) / rows);
}

cudaError_t launch_flash_prefill(const AttestAttention& attention) {
  const int64_t head_dim_v = attention.problem.head_dim_v;
  if (flash_prefill_blocks(attention.problem) == 0) {
    return cudaSuccess;
  }
#ifndef ATTEST_FEWER_INSTANCES
  if (head_dim_v <= 16) {
    return launch<2>(attention);
  }
  if (head_dim_v <= 32) {
    return launch<4>(attention);
  }
  if (head_dim_v > 64 && head_dim_v <= 128) {
    return launch<16>(attention);
  }
#endif
  return head_dim_v <= 64 ? launch<8>(attention) : launch<32>(attention);
}

}  // namespace attest::kernels
