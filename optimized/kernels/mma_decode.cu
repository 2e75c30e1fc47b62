// mma_decode: attention of few queries over many cached keys with tensor cores, for queries in f16
// and bf16 over caches of the same format or of 8 bits. Its parts are combined by split_keys.cu.
//
// Algorithm: as split_keys.cu, with the 16 packed rows of a tile as the rows of one mma. A tile of
// 64 keys (32 if a row is wider than 128) is dealt to the warps of a block, 16 keys each, of which
// a warp makes S, weights and P V by itself; what the warps hold in m, l and O is brought together
// at the end of the part. While one tile is worked on, the next is on its way into the other of two
// stages of shared memory: by cp.async where the cache has the format of the queries, otherwise
// through registers, where 8 bits become 16, which is exact.
// Precision path: q.k is summed in f32 by tensor cores, 16 columns at a time in rising order, then
// multiplied by the scale of the stored key; logits as logits.cuh says; weights f32; the row sum
// adds them as they are, per lane, over four lanes at the end; P V takes them, multiplied by the
// scale of the stored value, rounded to the format of the queries, and sums in f32 by tensor cores
// the 16 keys of a warp, rescaled once per tile when the maximum grows, once more when the warps,
// and once more when the parts are brought together. A later rescale of a key needs one that is at
// least 16 keys away: keys_per_rescale is 16. The f32 additions of warps are fewer than the steps
// of tensor cores that the keys of the other warps would have taken in one chain. Launch: 128
// threads (64 for wide rows); grid.x as split_keys; dynamic shared memory for Q and two stages of K
// and V, at most 99 KiB. Preconditions: head_dim and head_dim_v multiples of 8 in [8, 256]; rows of
// q and of 16-bit caches aligned to 16 bytes, of others to 8. Scratch, and what is never read or
// written: as split_keys.cu.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/decode_parts.cuh"
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"
#include "optimized/kernels/mma_products.cuh"
#include "optimized/kernels/online_softmax.cuh"

namespace attest::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpKeys = kMmaDecodeKeyBlock;  // of a tile, of one warp: what one mma of P V takes
constexpr int kNarrow = 128;                   // widest row with tiles of 64 keys
constexpr int kLeastGroup = 4;  // heads of a KV head: with fewer, 16 rows would mostly be padding

__host__ __device__ constexpr int warps_of(int width) {
  return width > kNarrow ? 2 : 4;
}

__device__ void store_chunk(uint32_t to, const uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};"
               :
               : "r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

/// Eight elements of 8 bits as 16 bytes of kFormat. Exact: no significand or exponent is wider.
template <uint32_t kFormat, uint32_t kCache>
__device__ void widen(const void* data, int64_t index, uint32_t (&words)[4]) {
  const uint2 bytes =
      *reinterpret_cast<const uint2*>(static_cast<const unsigned char*>(data) + index);
  const auto number = [](uint32_t bits) {
    return kCache == ATTEST_I8     ? from_i8(bits)
           : kCache == ATTEST_E4M3 ? from_e4m3(bits & 0xFFU)
                                   : from_e5m2(bits & 0xFFU);
  };
  words[0] = pack<kFormat>(number(bytes.x), number(bytes.x >> 8));
  words[1] = pack<kFormat>(number(bytes.x >> 16), number(bytes.x >> 24));
  words[2] = pack<kFormat>(number(bytes.y), number(bytes.y >> 8));
  words[3] = pack<kFormat>(number(bytes.y >> 16), number(bytes.y >> 24));
}

/// Rows of the cache into a tile, filled up with zeros to a multiple of 16 columns; offset -1 is a
/// row of zeros. Eight threads to a row. Complete after wait_for_copies() and a barrier.
template <uint32_t kFormat, int kKeys>
__device__ void bring_rows(uint32_t tile, const View& cache, const int64_t* offsets, int columns) {
  const int first_chunk = static_cast<int>(threadIdx.x) % kChunksOfPanel;
  const int padded = (columns + kStepColumns - 1) / kStepColumns * kStepColumns;
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x) / kChunksOfPanel; row < kKeys;
       row += static_cast<int>(blockDim.x) / kChunksOfPanel) {
    const int64_t offset = offsets[row];
    uint32_t to = tile + swizzled(row, first_chunk);
#pragma unroll 1
    for (int column = first_chunk * kChunkColumns; column < padded; column += kPanelColumns) {
      const bool wanted = offset >= 0 && column < columns;
      const int64_t index = wanted ? offset + column : 0;
      if (cache.format == kFormat) {
        copy_or_zero(to, static_cast<const uint16_t*>(cache.data) + index, wanted);
      } else {
        uint32_t words[4] = {0, 0, 0, 0};
        if (wanted && cache.format == ATTEST_E4M3) {
          widen<kFormat, ATTEST_E4M3>(cache.data, index, words);
        } else if (wanted && cache.format == ATTEST_E5M2) {
          widen<kFormat, ATTEST_E5M2>(cache.data, index, words);
        } else if (wanted) {
          widen<kFormat, ATTEST_I8>(cache.data, index, words);
        }
        store_chunk(to, words);
      }
      to += panel_bytes(kKeys);
    }
  }
}

/// Queries of the tile's rows, zeros where there is none.   (16, head_dim)
__device__ void bring_queries(const AttentionArguments& a, const DecodeBlock& block,
                              uint32_t tile) {
  const int first_chunk = static_cast<int>(threadIdx.x) % kChunksOfPanel;
  const int padded = (a.head_dim + kStepColumns - 1) / kStepColumns * kStepColumns;
  for (int r = static_cast<int>(threadIdx.x) / kChunksOfPanel; r < kRowsPerTile;
       r += static_cast<int>(blockDim.x) / kChunksOfPanel) {
    const PackedRow row = packed_row(a, block, r);
    const int64_t offset = row.live ? a.q.offset(block.b, row.head, row.query) : 0;
    uint32_t to = tile + swizzled(r, first_chunk);
    for (int column = first_chunk * kChunkColumns; column < padded; column += kPanelColumns) {
      const bool wanted = row.live && column < a.head_dim;
      copy_or_zero(to, static_cast<const uint16_t*>(a.q.data) + (wanted ? offset + column : 0),
                   wanted);
      to += panel_bytes(kRowsPerTile);
    }
  }
}

/// What a lane carries of its two rows from tile to tile.
template <int kWidth>
struct Carried {
  float m[2], l[2];
  float o[kWidth / 8][4];  // fragments of (16, kWidth)
};

/// Brings together what the warps of a block hold, and hands it to the parts.
/// joined: (warps, 16, head_dim_v + 8), so that lanes of a fragment lie in different banks.
template <int kWidth>
__device__ void join_warps(const AttentionArguments& a, const Parts& parts,
                           const DecodeBlock& block, const Carried<kWidth>& carried,
                           float* joined) {
  constexpr int kWarps = warps_of(kWidth);
  __shared__ float m_of[kWarps][kRowsPerTile];
  __shared__ float l_of[kWarps][kRowsPerTile];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int group = static_cast<int>(threadIdx.x) % kWarp / 4;
  const int pair = static_cast<int>(threadIdx.x) % 4 * 2;
  const int pitch = a.head_dim_v + 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float l = sum_of_row(carried.l[half]);
    if (pair == 0) {
      m_of[warp][group + 8 * half] = carried.m[half];
      l_of[warp][group + 8 * half] = l;
    }
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = group + 8 * half;
    float m = -INFINITY;
    for (int w = 0; w < kWarps; ++w) {
      m = fmaxf(m, m_of[w][row]);
    }
    const float rescale = weight(carried.m[half], m, a.bits_per_unit);
    float* to = joined + (warp * kRowsPerTile + row) * pitch + pair;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      if (n * 8 < a.head_dim_v) {
        *reinterpret_cast<float2*>(to + n * 8) =
            make_float2(carried.o[n][2 * half] * rescale, carried.o[n][2 * half + 1] * rescale);
      }
    }
  }
  __syncthreads();
  for (int r = warp; r < kRowsPerTile; r += kWarps) {
    const PackedRow row = packed_row(a, block, r);
    if (!row.live) {
      continue;
    }
    float m = -INFINITY;
    for (int w = 0; w < kWarps; ++w) {
      m = fmaxf(m, m_of[w][r]);
    }
    float l = 0.0F;
    for (int w = 0; w < kWarps; ++w) {
      l += l_of[w][r] * weight(m_of[w][r], m, a.bits_per_unit);
    }
    const int64_t at = place_in_parts(a, parts, block, row);
    if (threadIdx.x % kWarp == 0) {
      parts.m[at] = m;
      parts.l[at] = l;
    }
    for (int column = static_cast<int>(threadIdx.x) % kWarp; column < a.head_dim_v;
         column += kWarp) {
      float o = 0.0F;
      for (int w = 0; w < kWarps; ++w) {
        o += joined[(w * kRowsPerTile + r) * pitch + column];
      }
      parts.o[at * a.head_dim_v + column] = o;
    }
  }
}

/// One tile for one warp: logits, weights, P V.   s arrives as q.k
template <uint32_t kFormat, int kKeys, int kWidth>
__device__ void attend(const AttentionArguments& a, const DecodeBlock& block,
                       const PackedRow (&row)[2], const KeyTile<kKeys>& tile, int j0, int first,
                       uint32_t v_lane, float (&s)[2][4], Carried<kWidth>& carried) {
  const bool plain = logits_are_plain(a);
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const PackedRow& mine = row[i / 2];
      const int key = first + n * 8 + i % 2;  // in the tile
      float z = -INFINITY;
      if (contains(mine.range, j0 + key)) {
        z = s[n][i] * tile.k_scale[key];
        if (!plain) {
          z = logit(a, logit_row(a, block.b, mine.head, mine.query, block.diagonal), z, j0 + key);
        }
      }
      s[n][i] = z;
    }
  }
  float rescale[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int x = 2 * half;
    const float here = fmaxf(fmaxf(s[0][x], s[0][x + 1]), fmaxf(s[1][x], s[1][x + 1]));
    const float largest = fmaxf(carried.m[half], largest_of_row(here));
    rescale[half] = weight(carried.m[half], largest, a.bits_per_unit);
    carried.m[half] = largest;
    carried.l[half] *= rescale[half];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int i = x; i < x + 2; ++i) {
        const float p = weight(s[n][i], largest, a.bits_per_unit);
        carried.l[half] += p;
        s[n][i] = p * tile.v_scale[first + n * 8 + i % 2];
      }
    }
  }
  add_p_v<kFormat, kKeys, kWarpKeys, kWidth>(s, v_lane, a.head_dim_v, rescale, carried.o);
}

template <uint32_t kFormat, int kWidth>
__global__ void __launch_bounds__(warps_of(kWidth) * kWarp)
    mma_decode(const __grid_constant__ AttentionArguments a, const __grid_constant__ Parts parts,
               unsigned row_tiles) {
  constexpr int kKeys = warps_of(kWidth) * kWarpKeys;
  extern __shared__ __align__(kPanelRowBytes) unsigned char shared[];
  __shared__ KeyTile<kKeys> key_tile[2];
  const DecodeBlock block = decode_block(a, parts.splits, row_tiles);
  if (block.idle) {
    return;
  }
  const auto q_tile = static_cast<uint32_t>(__cvta_generic_to_shared(shared));  // (16, head_dim)
  const uint32_t k_tile = q_tile + tile_bytes(kRowsPerTile, a.head_dim);        // (kKeys, head_dim)
  const uint32_t v_tile = k_tile + tile_bytes(kKeys, a.head_dim);  // (kKeys, head_dim_v)
  const uint32_t stage_bytes = tile_bytes(kKeys, a.head_dim) + tile_bytes(kKeys, a.head_dim_v);

  // Where lanes point ldmatrix: see mma_prefill.cu.
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int matrix = lane / 8;
  const int matrix_row = lane % 8;
  const int warp_row = warp * kWarpKeys + matrix_row;
  const uint32_t q_lane = q_tile + swizzled(matrix % 2 * 8 + matrix_row, matrix / 2);
  const uint32_t k_lane = k_tile + swizzled(matrix / 2 * 8 + warp_row, matrix % 2);
  const uint32_t v_lane = v_tile + swizzled(matrix % 2 * 8 + warp_row, matrix / 2);
  const int first = warp * kWarpKeys + lane % 4 * 2;  // the first key of this lane in a tile

  PackedRow row[2];
  Carried<kWidth> carried;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    row[half] = packed_row(a, block, lane / 4 + 8 * half);
    carried.m[half] = -INFINITY;
    carried.l[half] = 0.0F;
  }
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n) {
    carried.o[n][0] = carried.o[n][1] = carried.o[n][2] = carried.o[n][3] = 0.0F;
  }

  const auto bring = [&](int tile) {
    const uint32_t stage = tile % 2 * stage_bytes;
    bring_rows<kFormat, kKeys>(k_tile + stage, a.k, key_tile[tile % 2].k, a.head_dim);
    bring_rows<kFormat, kKeys>(v_tile + stage, a.v, key_tile[tile % 2].v, a.head_dim_v);
  };
  const int first_key = block.mine.begin + (block.seen.begin - block.mine.begin) / kKeys * kKeys;
  const int tiles = max(block.seen.end - first_key + kKeys - 1, 0) / kKeys;
  if (tiles > 0) {
    bring_queries(a, block, q_tile);
    find_keys(a, block, first_key, key_tile[0]);
    __syncthreads();
    bring(0);
  }
  for (int t = 0; t < tiles; ++t) {
    const int j0 = first_key + t * kKeys;
    wait_for_copies();
    __syncthreads();  // this tile is there for all, and nobody needs the one before
    if (t + 1 < tiles) {
      find_keys(a, block, j0 + kKeys, key_tile[(t + 1) % 2]);
      __syncthreads();
      bring(t + 1);
    }
    float s[kWarpKeys / 8][4];
    const uint32_t stage = t % 2 * stage_bytes;
    multiply_q_k<kFormat, kRowsPerTile, kKeys, kWarpKeys>(q_lane, k_lane + stage, a.head_dim, s);
    attend<kFormat, kKeys, kWidth>(a, block, row, key_tile[t % 2], j0, first, v_lane + stage, s,
                                   carried);
  }
  __syncthreads();  // nobody needs the tiles
  join_warps<kWidth>(a, parts, block, carried, reinterpret_cast<float*>(shared));
}

template <uint32_t kFormat, int kWidth>
cudaError_t launch(const AttestAttention& attention, const AttentionArguments& a,
                   const Parts& parts) {
  constexpr int kWarps = warps_of(kWidth);
  constexpr int kKeys = kWarps * kWarpKeys;
  const int tiles = tile_bytes(kRowsPerTile, a.head_dim) +
                    2 * (tile_bytes(kKeys, a.head_dim) + tile_bytes(kKeys, a.head_dim_v));
  const int joined = kWarps * kRowsPerTile * (a.head_dim_v + 8) * static_cast<int>(sizeof(float));
  const int shared_bytes = std::max(tiles, joined);
  const auto kernel = mma_decode<kFormat, kWidth>;
  if (shared_bytes > 40 * 1024) {  // 48 KiB with what is static; more must be asked for
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (status != cudaSuccess) {
      return status;
    }
  }
  kernel<<<static_cast<unsigned>(split_keys_blocks(attention.problem)), kWarps * kWarp,
           shared_bytes, static_cast<cudaStream_t>(attention.stream)>>>(
      a, parts, static_cast<unsigned>(row_tiles_of(attention.problem)));
  return cudaGetLastError();
}

template <uint32_t kFormat>
cudaError_t launch(const AttestAttention& attention, const AttentionArguments& a,
                   const Parts& parts) {
  return a.head_dim > kNarrow || a.head_dim_v > kNarrow ? launch<kFormat, 256>(attention, a, parts)
                                                        : launch<kFormat, 128>(attention, a, parts);
}

}  // namespace

// By the heads and not by the rows: how many queries come along must not move a bit of any.
bool mma_decode_serves(const AttestProblem& problem) {
  const bool eight_bits =
      problem.cache == ATTEST_E4M3 || problem.cache == ATTEST_E5M2 || problem.cache == ATTEST_I8;
  return (problem.input == ATTEST_F16 || problem.input == ATTEST_BF16) &&
         (problem.cache == problem.input || eight_bits) && problem.head_dim % 8 == 0 &&
         problem.head_dim_v % 8 == 0 && problem.num_heads_q / problem.num_heads_kv >= kLeastGroup;
}

bool mma_decode_takes(const AttestAttention& attention) {
  const AttentionArguments a = arguments_of(attention);
  return mma_decode_serves(attention.problem) && a.q.chunks && a.k.chunks && a.v.chunks;
}

int mma_decode_warps(const AttestProblem& problem) {
  return warps_of(static_cast<int>(std::max(problem.head_dim, problem.head_dim_v)));
}

cudaError_t launch_mma_decode(const AttestAttention& attention) {
  const Parts parts = parts_of(attention);
  const AttentionArguments a = arguments_of(attention);
  return attention.problem.input == ATTEST_F16 ? launch<ATTEST_F16>(attention, a, parts)
                                               : launch<ATTEST_BF16>(attention, a, parts);
}

}  // namespace attest::kernels
