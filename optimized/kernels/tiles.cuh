// Tiles: rows of a tensor of any format brought into shared memory as f32, zero-padded.
// Knows nothing of what is computed with them.
#pragma once
#include <cstdint>

#include "optimized/kernels/elements.cuh"

namespace attest::kernels {

/// Where the rows of a tile come from. Row r lies at offset + r * stride.
struct TileSource {
  const void* data;
  int64_t offset, stride;
  int width;       // elements in a row
  int begin, end;  // rows outside are not read and become zeros
  uint32_t format;
  bool vectors;
};

/// Where they go: (rows, width), with zeros where the source is narrower. Groups of four columns
/// stay together; which of the two steps is the longer one decides in what order groups lie.
struct Tile {
  float* data;
  int rows, width;
  int row_step, group_step;  // floats from a group to the one below, and to the one beside it
  int shift;                 // 2^shift threads are dealt to a row, at least one per group
};

/// Threads dealt to a row must divide a block: at most this many.
constexpr int kTileThreads = 64;

__device__ inline int row_shift(int width) {
  int shift = 0;
  while ((4 << shift) < width) {
    ++shift;
  }
  return shift;
}

// A tile whose rows are read whole, eight lanes side by side (V, P): row after row. A tile of which
// eight lanes read eight rows at the same column (Q, K): group after group. The longer step is an
// odd number of groups, so that those eight lie in different banks when written as well as when
// read. All steps are known when compiling, whatever the head_dim.
__host__ __device__ constexpr int row_major_pitch(int width) {
  return ((width + 3) / 4 | 1) * 4;
}
__host__ __device__ constexpr int group_major_pitch(int rows) {
  return (rows | 1) * 4;
}
__device__ inline Tile row_major_tile(float* data, int rows, int width) {
  return {data, rows, width, row_major_pitch(width), 4, row_shift(width)};
}
__device__ inline Tile group_major_tile(float* data, int rows, int width) {
  return {data, rows, width, 4, group_major_pitch(rows), row_shift(width)};
}

template <uint32_t kFormat>
__device__ void load_tile_as(const Tile& tile, const TileSource& source, int first_row) {
  // A thread stays in its column and walks down the rows.
  const int group = static_cast<int>(threadIdx.x) & ((1 << tile.shift) - 1);
  const int column = group * 4;
  const int left = source.width - column;
  const int step = kTileThreads >> tile.shift;
  if (column >= tile.width) {
    return;
  }
  int row = static_cast<int>(threadIdx.x) >> tile.shift;
  float* to = tile.data + row * tile.row_step + group * tile.group_step;
  int64_t from = source.offset + (first_row + row) * source.stride + column;
  const int64_t from_step = step * source.stride;
  const bool whole = source.vectors && left >= 4;
  for (; row < tile.rows; row += step) {
    float4 four = {0.0F, 0.0F, 0.0F, 0.0F};
    if (first_row + row >= source.begin && first_row + row < source.end) {
      four = whole ? load_four<kFormat>(source.data, from)
                   : load_up_to_four<kFormat>(source.data, from, left);
    }
    *reinterpret_cast<float4*>(to) = four;
    to += step * tile.row_step;
    from += from_step;
  }
}

/// Rows of the source from first_row on into the tile. By a whole block of kTileThreads; a barrier
/// must follow before anything is read.
__device__ inline void load_tile(const Tile& tile, const TileSource& source, int first_row) {
  switch (source.format) {
    case ATTEST_F32:
      return load_tile_as<ATTEST_F32>(tile, source, first_row);
    case ATTEST_F16:
      return load_tile_as<ATTEST_F16>(tile, source, first_row);
    case ATTEST_BF16:
      return load_tile_as<ATTEST_BF16>(tile, source, first_row);
    case ATTEST_E4M3:
      return load_tile_as<ATTEST_E4M3>(tile, source, first_row);
    default:
      return load_tile_as<ATTEST_E5M2>(tile, source, first_row);
  }
}

}  // namespace attest::kernels
