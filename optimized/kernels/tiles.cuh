// Tiles: rows of a tensor of any format brought into shared memory as f32, zero-padded.
// Knows nothing of what is computed with them.
#pragma once
#include <cstdint>

#include "optimized/kernels/elements.cuh"

namespace attest::kernels {

/// Floats from one row of a tile to the next: room for `width`, in an odd number of groups of four,
/// so that eight rows read at the same column lie in different banks.
__host__ __device__ constexpr int tile_pitch(int width) {
  return ((width + 3) / 4 | 1) * 4;
}

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

/// Where they go: (rows, width), with zeros where the source is narrower.
struct Tile {
  float* data;
  int width;
  __device__ int pitch() const { return tile_pitch(width); }
};

template <uint32_t kFormat>
__device__ void load_tile_as(const Tile& tile, const TileSource& source, int first_row, int rows) {
  const int shift = row_shift(tile.width);
  for (int index = threadIdx.x; index < rows << shift; index += blockDim.x) {
    const int row = index >> shift;
    const int column = (index - (row << shift)) * 4;
    if (column >= tile.width) {
      continue;
    }
    float4 four = {0.0F, 0.0F, 0.0F, 0.0F};
    if (first_row + row >= source.begin && first_row + row < source.end) {
      const int64_t at = source.offset + (first_row + row) * source.stride + column;
      four = load_up_to_four<kFormat>(source.data, at, source.width - column, source.vectors);
    }
    *reinterpret_cast<float4*>(tile.data + row * tile.pitch() + column) = four;
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
