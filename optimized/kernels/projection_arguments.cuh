// What both projection kernels receive, and which of them serves a request. Knows the C ABI and
// nothing of how a product is computed.
#pragma once
#include "optimized/kernels/attention_arguments.cuh"

namespace attest::kernels {

struct ProjectionArguments {
  View x;             // (batch, 1, rows, inner)
  View w;             // (1, 1, inner, columns)
  View y;             // (batch, 1, rows, columns)
  const float* bias;  // (columns), or nullptr
  int rows, inner, columns;
};

__device__ inline float with_bias(const ProjectionArguments& a, int column, float sum) {
  return a.bias == nullptr ? sum : sum + a.bias[column];
}

inline ProjectionArguments projection_arguments_of(const AttestProjection& request) {
  ProjectionArguments a{};
  a.x = view_of(request.x, 0, -1, 1);
  a.w = view_of(request.w, -1, -1, 0);
  a.y = view_of(request.y, 0, -1, 1);
  a.bias = vector_of<float>(request.bias);
  a.rows = static_cast<int>(request.x.shape[1]);
  a.inner = static_cast<int>(request.x.shape[2]);
  a.columns = static_cast<int>(request.w.shape[1]);
  return a;
}

/// Whether tensor cores serve it: 16-bit operands whose rows can be copied 16 bytes at a time.
inline bool suits_tensor_cores(const ProjectionArguments& a) {
  const bool narrow = a.x.format == ATTEST_F16 || a.x.format == ATTEST_BF16;
  return narrow && a.x.format == a.w.format && a.inner % 8 == 0 && a.columns % 8 == 0 &&
         a.x.chunks && a.w.chunks;
}

/// One block of `threads` per tile of `tile` rows and as many columns.
template <class Kernel>
cudaError_t launch_tiles(Kernel kernel, int threads, int64_t tile, const ProjectionArguments& a,
                         const AttestProjection& request) {
  const int64_t row_tiles = (request.x.shape[1] + tile - 1) / tile;
  const int64_t column_tiles = (request.w.shape[1] + tile - 1) / tile;
  const int64_t blocks = request.x.shape[0] * row_tiles * column_tiles;
  if (blocks == 0) {
    return cudaSuccess;
  }
  if (blocks > INT32_MAX) {
    return cudaErrorInvalidConfiguration;
  }
  kernel<<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(request.stream)>>>(
      a, static_cast<unsigned>(row_tiles), static_cast<unsigned>(column_tiles));
  return cudaGetLastError();
}

}  // namespace attest::kernels
