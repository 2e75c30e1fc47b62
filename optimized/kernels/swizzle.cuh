// Swizzled tiles: rows of 16-bit numbers in shared memory, laid out so that neither the copies that
// write them nor the ldmatrix that read them meet in a bank. Knows nothing of what they mean.
//
// A tile is cut into panels of 64 columns. A row of a panel is 128 bytes, all 32 banks, in 8 chunks
// of 16 bytes; chunk c of row r lies at place c XOR (r mod 8). Eight lanes that write one row use
// every bank once, and so do eight lanes that read one chunk of eight neighbouring rows:
//
//   place    0 1 2 3 4 5 6 7
//   row 0    0 1 2 3 4 5 6 7
//   row 1    1 0 3 2 5 4 7 6
//   row 2    2 3 0 1 6 7 4 5       and so on; row 8 is as row 0
//
// Stepping by 16 columns (two chunks) inside a panel is therefore an XOR of the address with 32,
// 64 or 96 and not an addition; stepping by 8 rows or by a panel is an addition.
#pragma once
#include <cstdint>

#include "optimized/kernels/mma.cuh"

namespace attest::kernels {

constexpr int kPanelColumns = 64;
constexpr int kPanelRowBytes = 128;
constexpr int kChunkColumns = 8;  // 16 bytes
constexpr int kChunksOfPanel = kPanelColumns / kChunkColumns;
constexpr int kStepColumns = 16;  // of one mma

__host__ __device__ constexpr int panels(int columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}
__host__ __device__ constexpr int panel_bytes(int rows) {
  return rows * kPanelRowBytes;
}
__host__ __device__ constexpr int tile_bytes(int rows, int columns) {
  return panels(columns) * panel_bytes(rows);
}

/// Bytes from the start of a panel to a chunk of one of its rows. Panels are aligned to 128 bytes.
__device__ inline uint32_t swizzled(int row, int chunk) {
  return row * kPanelRowBytes + ((chunk ^ row) % kChunksOfPanel) * 16;
}
/// The chunk `step` steps of 16 columns further along the same row of the same panel.
__device__ inline uint32_t stepped(uint32_t address, int step) {
  return address ^ (step * 32U);
}

/// Where the rows of a tile come from.
struct RowSource {
  const char* data;   // of row 0
  int64_t row_bytes;  // from a row to the next; a multiple of 16, like data
  int columns;        // a multiple of 8
  int begin, end;     // rows outside are not read and become zeros
};

/// Rows first_row ... first_row + kRows - 1 of the source into a tile, filled up with zeros to a
/// multiple of 16 columns. By a whole block of 128 threads, eight to a row, so that a warp asks for
/// four times 128 bytes in sequence. Complete after wait_for_copies() and a barrier.
template <int kRows>
__device__ inline void copy_rows(uint32_t tile, const RowSource& source, int first_row) {
  constexpr int kRowsAtOnce = 16;
  const int row = static_cast<int>(threadIdx.x) / kChunksOfPanel;
  const int first_chunk = static_cast<int>(threadIdx.x) % kChunksOfPanel;
  const char* from =
      source.data + (first_row + row) * source.row_bytes + first_chunk * kChunkColumns * 2;
  uint32_t to = tile + swizzled(row, first_chunk);
  const int padded = (source.columns + kStepColumns - 1) / kStepColumns * kStepColumns;
  const unsigned behind_begin = first_row + row - source.begin;  // large for rows before it
#pragma unroll 1
  for (int column = first_chunk * kChunkColumns; column < padded; column += kPanelColumns) {
    const unsigned rows = column < source.columns ? max(source.end - source.begin, 0) : 0;
#pragma unroll
    for (int i = 0; i < kRows; i += kRowsAtOnce) {
      copy_or_zero(to + i * kPanelRowBytes, from + i * source.row_bytes, behind_begin + i < rows);
    }
    from += kPanelRowBytes;
    to += panel_bytes(kRows);
  }
}

}  // namespace attest::kernels
