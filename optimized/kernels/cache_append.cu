// cache_append: rows of new keys and values into the slots of a contiguous cache.
//
// Algorithm: row r of batch entry b goes to slot lengths[b] + r, for r < new_lengths[b]; a row
// whose slot is at or behind the capacity is dropped. One block copies one row of k and the same
// row of v. Precision path: none; bits are copied, so every format is served by its width in bytes.
// Launch: 64 threads; grid.x = batch * kv_heads * rows.
// Preconditions: cache and new rows of one format; last strides 1; new_lengths <= rows.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/launchers.hpp"

namespace attest::kernels {
namespace {

constexpr int kThreads = 64;

struct AppendArguments {
  View k;                      // (batch, kv_heads, capacity, depth)
  View v;                      // (batch, kv_heads, capacity, v_depth)
  View new_k;                  // (batch, kv_heads, rows, depth)
  View new_v;                  // (batch, kv_heads, rows, v_depth)
  const int32_t* lengths;      // (batch)
  const int32_t* new_lengths;  // (batch)
  int64_t kv_heads, capacity, rows, depth, v_depth;
};

template <class Bits>
__device__ void copy_row(const View& to, int64_t slot, const View& from, int64_t row, int b, int h,
                         int64_t width) {
  Bits* target = static_cast<Bits*>(to.data) + to.offset(b, h, slot);
  const Bits* source = static_cast<const Bits*>(from.data) + from.offset(b, h, row);
  for (int64_t column = threadIdx.x; column < width; column += kThreads) {
    target[column] = source[column];
  }
}

template <class Bits>
__global__ void __launch_bounds__(kThreads)
    cache_append(const __grid_constant__ AppendArguments a) {
  const int64_t row = blockIdx.x % a.rows;
  const int h = static_cast<int>(blockIdx.x / a.rows % a.kv_heads);
  const int b = static_cast<int>(blockIdx.x / a.rows / a.kv_heads);
  const int64_t slot = a.lengths[b] + row;
  if (row >= a.new_lengths[b] || slot >= a.capacity) {
    return;
  }
  copy_row<Bits>(a.k, slot, a.new_k, row, b, h, a.depth);
  copy_row<Bits>(a.v, slot, a.new_v, row, b, h, a.v_depth);
}

}  // namespace

cudaError_t launch_cache_append(const AttestAppend& append) {
  AppendArguments a{};
  a.k = view_of(append.k, 0, 1, 2);
  a.v = view_of(append.v, 0, 1, 2);
  a.new_k = view_of(append.new_k, 0, 1, 2);
  a.new_v = view_of(append.new_v, 0, 1, 2);
  a.lengths = vector_of<int32_t>(append.lengths);
  a.new_lengths = vector_of<int32_t>(append.new_lengths);
  a.kv_heads = append.new_k.shape[1];
  a.capacity = append.k.shape[2];
  a.rows = append.new_k.shape[2];
  a.depth = append.new_k.shape[3];
  a.v_depth = append.new_v.shape[3];
  const int64_t blocks = append.new_k.shape[0] * a.kv_heads * a.rows;
  if (blocks == 0) {
    return cudaSuccess;
  }
  if (blocks > INT32_MAX) {
    return cudaErrorInvalidConfiguration;
  }
  const auto grid = static_cast<unsigned>(blocks);
  const auto stream = static_cast<cudaStream_t>(append.stream);
  switch (append.k.dtype.bits) {
    case 32:
      cache_append<uint32_t><<<grid, kThreads, 0, stream>>>(a);
      break;
    case 16:
      cache_append<uint16_t><<<grid, kThreads, 0, stream>>>(a);
      break;
    default:
      cache_append<uint8_t><<<grid, kThreads, 0, stream>>>(a);
      break;
  }
  return cudaGetLastError();
}

}  // namespace attest::kernels
