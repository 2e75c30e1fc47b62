// Tiles: rows of a tensor of any format brought into shared memory as f32, zero-padded.
// Knows nothing of what is computed with them.
#pragma once
#include <cstdint>

#include "optimized/kernels/elements.cuh"

namespace attest::kernels {

/// log2 of the number of groups of four in a row, rounded up: how threads are dealt to a row.
__host__ __device__ constexpr int row_shift(int width) {
  int shift = 0;
  while ((4 << shift) < width) {
    ++shift;
  }
  return shift;
}

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
  int width;
  int row_step, group_step;  // floats from a group to the one below, and to the one beside it
};

// A tile whose rows are read whole, eight lanes side by side (V, P): row after row. A tile of which
// eight lanes read eight rows at the same column (Q, K): group after group. The longer step is an
// odd number of groups, so that those eight lie in different banks when written as well as when
// read. All steps are known when compiling, whatever the depth.
__host__ __device__ constexpr int row_major_pitch(int width) {
  return ((width + 3) / 4 | 1) * 4;
}
__host__ __device__ constexpr int group_major_pitch(int rows) {
  return (rows | 1) * 4;
}
__device__ inline Tile row_major_tile(float* data, int width) {
  return {data, width, row_major_pitch(width), 4};
}
__device__ inline Tile group_major_tile(float* data, int rows, int width) {
  return {data, width, 4, group_major_pitch(rows)};
}

template <uint32_t kFormat>
__device__ void load_tile_as(const Tile& tile, const TileSource& source, int first_row, int rows) {
  const int shift = row_shift(tile.width);
  for (int index = threadIdx.x; index < rows << shift; index += blockDim.x) {
    const int row = index >> shift;
    const int group = index - (row << shift);
    const int column = group * 4;
    if (column >= tile.width) {
      continue;
    }
    float4 four = {0.0F, 0.0F, 0.0F, 0.0F};
    if (first_row + row >= source.begin && first_row + row < source.end) {
      const int64_t at = source.offset + (first_row + row) * source.stride + column;
      four = load_up_to_four<kFormat>(source.data, at, source.width - column, source.vectors);
    }
    *reinterpret_cast<float4*>(tile.data + row * tile.row_step + group * tile.group_step) = four;
  }
}

/// Rows [first_row, first_row + rows) of the source into the tile. By the whole block; a barrier
/// must follow before anything is read.
__device__ inline void load_tile(const Tile& tile, const TileSource& source, int first_row,
                                 int rows) {
  switch (source.format) {
    case ATTEST_F32:
      return load_tile_as<ATTEST_F32>(tile, source, first_row, rows);
    case ATTEST_F16:
      return load_tile_as<ATTEST_F16>(tile, source, first_row, rows);
    case ATTEST_BF16:
      return load_tile_as<ATTEST_BF16>(tile, source, first_row, rows);
    case ATTEST_E4M3:
      return load_tile_as<ATTEST_E4M3>(tile, source, first_row, rows);
    default:
      return load_tile_as<ATTEST_E5M2>(tile, source, first_row, rows);
  }
}

}  // namespace attest::kernels
