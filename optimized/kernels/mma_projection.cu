// mma_projection: Y = X W + bias with tensor cores, for f16 and bf16.
//
// Algorithm: a block of four warps owns 64 x 64 of Y, a warp 16 rows of it, and walks over the
// inner dimension in tiles of 64. While one tile is worked on, the next is on its way into the
// other of two stages of shared memory.
// Precision path: each element is summed in f32 by tensor cores, 16 products at a time in rising
// order of the inner dimension, from 0; the bias is added in f32; one rounding to the output
// format. Launch: 128 threads; grid.x = batch * tiles of rows * tiles of columns; static shared
// memory. Preconditions: x and w f16 or bf16, both the same; inner and columns multiples of 8; rows
// of x and w aligned to 16 bytes. Tiles end in zeros, which add nothing.
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/projection_arguments.cuh"
#include "optimized/kernels/swizzle.cuh"

namespace attest::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kTile = kPanelColumns;  // rows, columns and inner steps of a tile: one panel each
constexpr int kWarpRows = 16;         // of a warp: one mma
constexpr int kColumnGroups = kTile / 8;
constexpr int kStages = 2;

struct Stage {
  unsigned char x[panel_bytes(kTile)];  // (rows, inner)
  unsigned char w[panel_bytes(kTile)];  // (inner, columns)
};

/// Where this lane's row of an ldmatrix lies in a panel. Lanes 8 i to 8 i + 7 name the rows of
/// matrix i; matrices 1 and 3 are eight rows further down, 2 and 3 one chunk further right.
__device__ uint32_t lane_address(const unsigned char* panel, int first_row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(panel));
  return base + swizzled(first_row + lane / 8 % 2 * 8 + lane % 8, lane / 16);
}

/// Y += X W for this warp's rows.   x (16, inner), w (inner, columns), y (16, columns)
/// x, w: this lane's addresses. Columns of a tile that ends early were not copied.
template <uint32_t kFormat>
__device__ void multiply_x_w(uint32_t x, uint32_t w, int inner, int columns,
                             float (&y)[kColumnGroups][4]) {
#pragma unroll
  for (int step = 0; step < kTile / kStepColumns; ++step) {
    if (step * kStepColumns >= inner) {
      break;
    }
    uint32_t rows[4];
    load_matrices(rows, stepped(x, step));
#pragma unroll
    for (int n = 0; n < kColumnGroups; n += 2) {
      if (n * 8 >= columns) {
        break;
      }
      uint32_t two_groups[4];  // 16 inner steps, 16 columns
      load_matrices_transposed(two_groups,
                               stepped(w, n / 2) + step * kStepColumns * kPanelRowBytes);
      multiply_add<kFormat>(y[n], rows, two_groups[0], two_groups[1]);
      multiply_add<kFormat>(y[n + 1], rows, two_groups[2], two_groups[3]);
    }
  }
}

template <uint32_t kFormat>
__global__ void __launch_bounds__(kThreads)
    mma_projection(const __grid_constant__ ProjectionArguments a, unsigned row_tiles,
                   unsigned column_tiles) {
  __shared__ __align__(128) Stage stages[kStages];
  const int first_column = static_cast<int>(blockIdx.x % column_tiles) * kTile;
  const int first_row = static_cast<int>(blockIdx.x / column_tiles % row_tiles) * kTile;
  const int b = static_cast<int>(blockIdx.x / column_tiles / row_tiles);
  const int columns = min(a.columns - first_column, kTile);

  const auto copy = [&](int first) {
    Stage& stage = stages[first / kTile % kStages];
    constexpr int kBytes = 2;  // of an element
    const RowSource x = {
        static_cast<const char*>(a.x.data) + (a.x.offset(b, 0, 0) + first) * kBytes,
        a.x.row * kBytes, min(a.inner - first, kTile), 0, a.rows};
    const RowSource w = {static_cast<const char*>(a.w.data) + first_column * kBytes,
                         a.w.row * kBytes, columns, 0, a.inner};
    copy_rows<kTile>(static_cast<uint32_t>(__cvta_generic_to_shared(stage.x)), x, first_row);
    copy_rows<kTile>(static_cast<uint32_t>(__cvta_generic_to_shared(stage.w)), w, first);
  };

  float y[kColumnGroups][4] = {};
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  copy(0);
  for (int first = 0; first < a.inner; first += kTile) {
    wait_for_copies();
    __syncthreads();  // this tile is here, and the one before is done with
    if (first + kTile < a.inner) {
      copy(first + kTile);
    }
    const Stage& stage = stages[first / kTile % kStages];
    multiply_x_w<kFormat>(lane_address(stage.x, warp_row), lane_address(stage.w, 0),
                          min(a.inner - first, kTile), columns, y);
  }

  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kColumnGroups; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = first_row + warp_row + lane / 4 + i / 2 * 8;
      const int column = first_column + n * 8 + lane % 4 * 2 + i % 2;
      if (row < a.rows && column < a.columns) {
        store_one(a.y.format, a.y.data, a.y.offset(b, 0, row) + column,
                  with_bias(a, column, y[n][i]));
      }
    }
  }
}

}  // namespace

cudaError_t launch_mma_projection(const AttestProjection& request) {
  const ProjectionArguments a = projection_arguments_of(request);
  const auto kernel =
      a.x.format == ATTEST_F16 ? mma_projection<ATTEST_F16> : mma_projection<ATTEST_BF16>;
  return launch_tiles(kernel, kThreads, kTile, a, request);
}

}  // namespace attest::kernels
