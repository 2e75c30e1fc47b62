// cache_append: rows of new keys and values into a cache, turned by their position and quantised on
// the way.
//
// Algorithm: row r of batch entry b is token cache_seqlens[b] + r, for r < new_seqlens[b], and goes
// to that token's place in a contiguous cache, a page or a ring. A token that has no slot is
// dropped, and so is one of a ring whose slot a later row of the same append takes. Of one row and
// KV head the first warp of a block stores the key, the second one the value. Precision path: input
// is widened to f32 exactly. A turned column is fma(x, cos, -+ y sin), with y sin rounded to f32
// before. With scales the number is divided by its row's scale (IEEE division), and is rounded to
// the format of the cache to nearest even; what lies beyond the largest number of the format
// becomes the largest. A scale per token is the largest magnitude of the row, after turning,
// divided by that largest number (IEEE division) and at least the smallest normal f32; 1 for a row
// of zeros. A row that is neither turned nor scaled nor of another format is copied bit by bit.
// Launch: 64 threads; grid.x = batch * num_heads_kv * rows.
// Preconditions: last strides 1; new_seqlens <= rows; with rope an even head_dim, and a row of the
// rope_cos_sin for every token; entries of the block table name pages.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"

namespace attest::kernels {
namespace {

constexpr int kWarp = 32;

struct AppendArguments {
  View k;                   // (blocks, num_heads_kv, slots, head_dim)
  View v;                   // (blocks, num_heads_kv, slots, head_dim_v)
  View new_k;               // (batch, num_heads_kv, rows, head_dim)
  View new_v;               // (batch, num_heads_kv, rows, head_dim_v)
  View k_scales, v_scales;  // (blocks, num_heads_kv, slots, 1), or data == nullptr
  View rope_cos_sin;        // (1, 1, positions, head_dim)      cosines, then sines
  CacheLayout cache;
  const int32_t* cache_seqlens;  // (batch)
  const int32_t* new_seqlens;    // (batch)
  int64_t num_heads_kv, rows;
  uint32_t capacity;
  int head_dim, head_dim_v;
  uint32_t rope;
  bool scale_per_token;
};

/// A row on its way into the cache. `rotation`: its cosines and sines, or nullptr.
struct Row {
  const void* from;
  void* to;
  float* scale;
  const float* rotation;
  int64_t from_offset, to_offset;
  uint32_t from_format, to_format, rope;
  int width;
};

/// Column c of the row, turned. Error: two roundings of what is subtracted or added, one of the
/// sum.
__device__ float turned(const Row& row, int c) {
  const float x = load_any(row.from_format, row.from, row.from_offset + c);
  if (row.rotation == nullptr) {
    return x;
  }
  const int half = row.width / 2;
  const bool halves = row.rope == ATTEST_ROPE_HALVES;
  const bool first = halves ? c < half : c % 2 == 0;
  const int pair = halves ? (first ? c : c - half) : c / 2;
  const int beside = halves ? half : 1;
  const int partner = first ? c + beside : c - beside;
  const float y = load_any(row.from_format, row.from, row.from_offset + partner);
  const float crossed = __fmul_rn(y, row.rotation[half + pair]);
  return fmaf(x, row.rotation[pair], first ? -crossed : crossed);
}

/// By one warp.
__device__ float largest_magnitude(const Row& row, int lane) {
  float largest = 0.0F;
  for (int c = lane; c < row.width; c += kWarp) {
    largest = fmaxf(largest, fabsf(turned(row, c)));
  }
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, lanes));
  }
  return largest;
}

template <class Bits>
__device__ void copy_row(const Row& row, int lane) {
  for (int c = lane; c < row.width; c += kWarp) {
    static_cast<Bits*>(row.to)[row.to_offset + c] =
        static_cast<const Bits*>(row.from)[row.from_offset + c];
  }
}

__device__ void copy_bits(const Row& row, int lane) {
  if (row.to_format == ATTEST_F32) {
    copy_row<uint32_t>(row, lane);
  } else if (row.to_format == ATTEST_F16 || row.to_format == ATTEST_BF16) {
    copy_row<uint16_t>(row, lane);
  } else {
    copy_row<uint8_t>(row, lane);
  }
}

/// By one warp.
__device__ void store_row(const Row& row, bool scale_per_token, int lane) {
  if (row.rotation == nullptr && row.scale == nullptr && row.from_format == row.to_format) {
    return copy_bits(row, lane);
  }
  float scale = 1.0F;
  if (scale_per_token) {
    const float largest = largest_magnitude(row, lane);
    if (largest != 0.0F) {
      scale = fmaxf(largest / largest_of(row.to_format), FLT_MIN);
    }
    if (lane == 0) {
      *row.scale = scale;
    }
  } else if (row.scale != nullptr) {
    scale = *row.scale;
  }
  for (int c = lane; c < row.width; c += kWarp) {
    store_saturating(row.to_format, row.to, row.to_offset + c, turned(row, c) / scale);
  }
}

__device__ float* scale_of(const View& scales, int h, const CachePlace& place) {
  return scales.data == nullptr
             ? nullptr
             : static_cast<float*>(scales.data) + scales.offset(place.block, h, place.slot);
}

__global__ void __launch_bounds__(2 * kWarp)
    cache_append(const __grid_constant__ AppendArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t r = blockIdx.x % a.rows;
  const int h = static_cast<int>(blockIdx.x / a.rows % a.num_heads_kv);
  const int b = static_cast<int>(blockIdx.x / a.rows / a.num_heads_kv);
  const auto before = static_cast<uint32_t>(a.cache_seqlens[b]);
  const auto added = static_cast<uint32_t>(a.new_seqlens[b]);
  const uint32_t token = before + static_cast<uint32_t>(r);
  const bool has_slot =
      a.cache.ring != 0 ? before + added - token <= a.cache.ring : token < a.capacity;
  if (r >= added || !has_slot) {
    return;
  }
  const CachePlace place = a.cache.place(b, token);
  Row row{};
  row.rope = a.rope;
  if (threadIdx.x < kWarp) {
    row.from = a.new_k.data, row.from_format = a.new_k.format;
    row.from_offset = a.new_k.offset(b, h, r);
    row.to = a.k.data, row.to_format = a.k.format;
    row.to_offset = a.k.offset(place.block, h, place.slot);
    row.scale = scale_of(a.k_scales, h, place);
    row.width = a.head_dim;
    if (a.rope != ATTEST_ROPE_NONE) {
      row.rotation =
          static_cast<const float*>(a.rope_cos_sin.data) + a.rope_cos_sin.offset(0, 0, token);
    }
  } else {
    row.from = a.new_v.data, row.from_format = a.new_v.format;
    row.from_offset = a.new_v.offset(b, h, r);
    row.to = a.v.data, row.to_format = a.v.format;
    row.to_offset = a.v.offset(place.block, h, place.slot);
    row.scale = scale_of(a.v_scales, h, place);
    row.width = a.head_dim_v;
  }
  store_row(row, a.scale_per_token, lane);
}

}  // namespace

cudaError_t launch_cache_append(const AttestAppend& append) {
  const AttestProblem& problem = append.problem;
  AppendArguments a{};
  a.k = view_of(append.k, 0, 1, 2);
  a.v = view_of(append.v, 0, 1, 2);
  a.new_k = view_of(append.new_k, 0, 1, 2);
  a.new_v = view_of(append.new_v, 0, 1, 2);
  a.k_scales = scales_view_of(problem, append.k_scales);
  a.v_scales = scales_view_of(problem, append.v_scales);
  a.cache = cache_layout_of(problem, append.block_table);
  a.cache_seqlens = vector_of<int32_t>(append.cache_seqlens);
  a.new_seqlens = vector_of<int32_t>(append.new_seqlens);
  a.num_heads_kv = append.new_k.shape[1];
  a.rows = append.new_k.shape[2];
  a.capacity = static_cast<uint32_t>(problem.capacity);
  a.head_dim = static_cast<int>(append.new_k.shape[3]);
  a.head_dim_v = static_cast<int>(append.new_v.shape[3]);
  a.rope = problem.rope;
  if (problem.rope != ATTEST_ROPE_NONE) {
    a.rope_cos_sin = view_of(append.rope_cos_sin, -1, -1, 0);
  }
  a.scale_per_token = problem.scales == ATTEST_SCALES_TOKEN;
  const int64_t blocks = append.new_k.shape[0] * a.num_heads_kv * a.rows;
  if (blocks == 0) {
    return cudaSuccess;
  }
  if (blocks > INT32_MAX) {
    return cudaErrorInvalidConfiguration;
  }
  cache_append<<<static_cast<unsigned>(blocks), 2 * kWarp, 0,
                 static_cast<cudaStream_t>(append.stream)>>>(a);
  return cudaGetLastError();
}

}  // namespace attest::kernels
