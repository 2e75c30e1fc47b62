// projection: Y = X W + bias, in f32 operations, for every format.
//
// Algorithm: a block owns 32 x 32 of Y and walks over the inner dimension in tiles of 32. A thread
// holds 4 rows x 4 columns.
// Precision path: inputs are widened to f32 exactly; each element is one chain of f32 FMAs in
// rising order of the inner dimension, from 0; the bias is added in f32; one rounding to the output
// format.
// Launch: 64 threads; grid.x = batch * tiles of rows * tiles of columns; static shared memory.
// Preconditions: last strides 1. Tiles end in zeros, which add nothing.
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/projection_arguments.cuh"
#include "optimized/kernels/tiles.cuh"

namespace attest::kernels {
namespace {

constexpr int kThreads = kTileThreads;
constexpr int kTile = 32;      // rows, columns and inner steps of a tile
constexpr int kPerThread = 4;  // rows, and columns, of one thread
constexpr int kLanesPerRow = kTile / kPerThread;
constexpr int kPitch = row_major_pitch(kTile);

__device__ void load_columns(const float* from, float (&to)[4]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

__global__ void __launch_bounds__(kThreads)
    projection(const __grid_constant__ ProjectionArguments a, unsigned row_tiles,
               unsigned column_tiles) {
  __shared__ __align__(16) float x_tile[kTile * kPitch];  // (rows, inner)
  __shared__ __align__(16) float w_tile[kTile * kPitch];  // (inner, columns)
  const int first_column = static_cast<int>(blockIdx.x % column_tiles) * kTile;
  const int first_row = static_cast<int>(blockIdx.x / column_tiles % row_tiles) * kTile;
  const int b = static_cast<int>(blockIdx.x / column_tiles / row_tiles);
  const int thread_row = static_cast<int>(threadIdx.x) / kLanesPerRow * kPerThread;
  const int thread_column = static_cast<int>(threadIdx.x) % kLanesPerRow * kPerThread;

  float acc[kPerThread][kPerThread] = {};
  for (int first = 0; first < a.inner; first += kTile) {
    const TileSource x_source = {a.x.data,   a.x.offset(b, 0, 0) + first,
                                 a.x.row,    min(a.inner - first, kTile),
                                 0,          a.rows,
                                 a.x.format, a.x.vectors};
    const TileSource w_source = {
        a.w.data, first_column, a.w.row,    min(a.columns - first_column, kTile),
        0,        a.inner,      a.w.format, a.w.vectors};
    load_tile(row_major_tile(x_tile, kTile, kTile), x_source, first_row);
    load_tile(row_major_tile(w_tile, kTile, kTile), w_source, first);
    __syncthreads();
    for (int k = 0; k < kTile; k += 4) {
      float x[kPerThread][4];
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        load_columns(x_tile + (thread_row + i) * kPitch + k, x[i]);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        float w[kPerThread];
        load_columns(w_tile + (k + n) * kPitch + thread_column, w);
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
          for (int c = 0; c < kPerThread; ++c) {
            acc[i][c] = fmaf(x[i][n], w[c], acc[i][c]);
          }
        }
      }
    }
    __syncthreads();  // before the next tile replaces this one
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int row = first_row + thread_row + i;
#pragma unroll
    for (int c = 0; c < kPerThread; ++c) {
      const int column = first_column + thread_column + c;
      if (row < a.rows && column < a.columns) {
        store_one(a.y.format, a.y.data, a.y.offset(b, 0, row) + column,
                  with_bias(a, column, acc[i][c]));
      }
    }
  }
}

}  // namespace

cudaError_t launch_projection(const AttestProjection& request) {
  const ProjectionArguments a = projection_arguments_of(request);
  return suits_tensor_cores(a) ? launch_mma_projection(request)
                               : launch_tiles(projection, kThreads, kTile, a, request);
}

}  // namespace attest::kernels
