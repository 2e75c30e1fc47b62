// split_keys: attention of few queries over many cached keys, which are split into parts that are
// attended to independently and combined afterwards.
//
// Algorithm: Flash-Decoding. One warp takes up to four rows that share a KV head (heads of a group
// and queries alike) and one part of the keys. It scores 32 keys at a time, one key per lane, and
// keeps m, l and an unscaled O per row; these go to scratch. A second kernel brings the parts of a
// row to their common maximum and adds them.
// Precision path: inputs are widened to f32 exactly; q.k is a chain of f32 FMAs in rising column
// order; logits as logits.cuh says; weights f32, never rounded further (P format f32); P V is a
// chain of f32 FMAs in rising key order, rescaled once per 32 keys when the maximum grows, and once
// more when the parts are combined; the row sum is kept per lane and added over 32 lanes at the end
// of a part; IEEE division; one rounding to the output format. Launch: both kernels 32 threads;
// split_keys: grid.x = batch * kv_heads * groups of rows * parts; combine_parts: grid.x = batch *
// query_heads * queries. Preconditions: depth and v_depth in [1, 256]; last strides 1; lengths
// within queries and keys; split_keys_scratch_floats() floats of scratch. A part without keys
// (there may be more parts than keys) still writes its m = -inf, l = 0, O = 0: scratch arrives
// poisoned. Never read and never written: as in flash_prefill.cu.
#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/elements.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"
#include "optimized/kernels/online_softmax.cuh"

namespace attest::kernels {
namespace {

constexpr int kWarp = 32;
static_assert(kKeyBlock == kWarp, "one key per lane");
constexpr int kColumnGroups = kDepthLimit / kWarp;

/// Scratch of one call: parts of all rows, (splits, rows) and (splits, rows, v_depth), where row is
/// (b * query_heads + h) * queries + i.
struct Parts {
  float* m;
  float* l;
  float* o;
  int64_t rows;
  int splits;
};

Parts parts_of(const AttestAttention& attention) {
  const AttestProblem& problem = attention.problem;
  Parts parts{};
  parts.rows = problem.batch * problem.query_heads * problem.queries;
  parts.splits = static_cast<int>(problem.splits);
  parts.m = static_cast<float*>(attention.scratch);
  parts.l = parts.m + parts.splits * parts.rows;
  parts.o = parts.l + parts.splits * parts.rows;
  return parts;
}

/// Keys [begin, end) of one part. The last parts are short or empty when splits does not divide.
__device__ KeyRange keys_of_part(int keys, int splits, int part) {
  const int span = (keys + splits - 1) / splits;
  const int64_t begin = static_cast<int64_t>(part) * span;
  return {static_cast<int>(min(begin, static_cast<int64_t>(keys))),
          static_cast<int>(min(begin + span, static_cast<int64_t>(keys)))};
}

__device__ float largest_of_warp(float x) {
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, lanes));
  }
  return x;
}
__device__ float sum_of_warp(float x) {
  for (int lanes = 1; lanes < kWarp; lanes *= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, lanes);
  }
  return x;
}

/// S = Q K^T for the rows of this warp and the key of this lane.   q (kRows, kDepthLimit)
template <uint32_t kFormat, int kRows>
__device__ void multiply_q_k(const AttentionArguments& a, const float (*q)[kDepthLimit],
                             int64_t k_row, float (&s)[kRows]) {
  for (int column = 0; column < a.depth; column += 4) {
    const int left = a.depth - column;
    const float4 y = a.k.vectors && left >= 4
                         ? load_four<kFormat>(a.k.data, k_row + column)
                         : load_up_to_four<kFormat>(a.k.data, k_row + column, left);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 x = *reinterpret_cast<const float4*>(&q[r][column]);
      s[r] = fmaf(x.x, y.x, s[r]);
      s[r] = fmaf(x.y, y.y, s[r]);
      s[r] = fmaf(x.z, y.z, s[r]);
      s[r] = fmaf(x.w, y.w, s[r]);
    }
  }
}

template <uint32_t kFormat, int kRows>
__global__ void __launch_bounds__(kWarp)
    split_keys(const __grid_constant__ AttentionArguments a, const __grid_constant__ Parts parts,
               unsigned row_groups) {
  __shared__ __align__(16) float q_rows[kRows][kDepthLimit];
  __shared__ __align__(16) float p_rows[kRows][kKeyBlock];
  const int lane = threadIdx.x;
  const int part = static_cast<int>(blockIdx.x % parts.splits);
  unsigned rest = blockIdx.x / parts.splits;
  const int first_row = static_cast<int>(rest % row_groups) * kRows;
  rest /= row_groups;
  const int kv_head = static_cast<int>(rest % a.kv_heads);
  const int b = static_cast<int>(rest / a.kv_heads);
  const int group = a.query_heads / a.kv_heads;
  const int queries = query_count(a, b);
  const int keys = key_count(a, b);
  const int64_t diagonal = diagonal_of(a, queries, keys);
  const KeyRange mine = keys_of_part(keys, parts.splits, part);

  // Rows of a KV head are numbered head by head: row r is query r % queries of head r / queries.
  int head[kRows];
  int query[kRows];
  KeyRange range[kRows];
  bool live[kRows];
  int begin = mine.end;
  int end = mine.begin;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    head[r] = kv_head * group + row / a.queries;
    query[r] = row % a.queries;
    live[r] = row < group * a.queries && query[r] < queries;
    range[r] = {0, 0};
    if (live[r]) {
      const KeyRange seen = keys_seen_by(a, query[r] + diagonal, keys);
      range[r] = {max(seen.begin, mine.begin), min(seen.end, mine.end)};
      begin = min(begin, range[r].begin);
      end = max(end, range[r].end);
    }
    const int64_t q_row = a.q.offset(b, head[r], query[r]);
    for (int column = lane; column < (a.depth + 3) / 4 * 4; column += kWarp) {
      const bool there = live[r] && column < a.depth;
      q_rows[r][column] = there ? load_one<kFormat>(a.q.data, q_row + column) : 0.0F;
    }
  }
  __syncwarp();

  float m[kRows];
  float l[kRows];
  float acc[kRows][kColumnGroups];  // column lane + 32 c
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    m[r] = -INFINITY;
    l[r] = 0.0F;
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      acc[r][c] = 0.0F;
    }
  }

  for (int j0 = begin; j0 < end; j0 += kKeyBlock) {
    const int j = j0 + lane;
    float s[kRows] = {};
    if (j < end) {
      multiply_q_k<kFormat, kRows>(a, q_rows, a.k.offset(b, kv_head, j), s);
    }
    float rescale[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float z = -INFINITY;
      if (contains(range[r], j)) {
        z = logits_are_plain(a) ? s[r]
                                : logit(a, logit_row(a, b, head[r], query[r], diagonal), s[r], j);
      }
      const float largest = fmaxf(m[r], largest_of_warp(z));
      const float p = weight(z, largest, a.bits_per_unit);
      rescale[r] = weight(m[r], largest, a.bits_per_unit);
      m[r] = largest;
      l[r] = l[r] * rescale[r] + p;
      p_rows[r][lane] = p;
    }
    __syncwarp();
    const int count = min(end - j0, kKeyBlock);
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      const int column = lane + c * kWarp;
      if (c * kWarp >= a.v_depth) {
        break;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        acc[r][c] *= rescale[r];
      }
      if (column < a.v_depth) {
        for (int n = 0; n < count; ++n) {
          const float y = load_one<kFormat>(a.v.data, a.v.offset(b, kv_head, j0 + n) + column);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            acc[r][c] = fmaf(p_rows[r][n], y, acc[r][c]);
          }
        }
      }
    }
    __syncwarp();  // before the next weights replace these
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float row_sum = sum_of_warp(l[r]);
    if (!live[r]) {
      continue;
    }
    const int64_t row = (static_cast<int64_t>(b) * a.query_heads + head[r]) * a.queries + query[r];
    const int64_t at = part * parts.rows + row;
    if (lane == 0) {
      parts.m[at] = m[r];
      parts.l[at] = row_sum;
    }
#pragma unroll
    for (int c = 0; c < kColumnGroups; ++c) {
      const int column = lane + c * kWarp;
      if (column < a.v_depth) {
        parts.o[at * a.v_depth + column] = acc[r][c];
      }
    }
  }
}

__global__ void __launch_bounds__(kWarp) combine_parts(const __grid_constant__ AttentionArguments a,
                                                       const __grid_constant__ Parts parts) {
  const int64_t row = blockIdx.x;
  const int i = static_cast<int>(row % a.queries);
  const int h = static_cast<int>(row / a.queries % a.query_heads);
  const int b = static_cast<int>(row / a.queries / a.query_heads);
  if (i >= query_count(a, b)) {
    return;
  }
  float m = -INFINITY;
  for (int part = 0; part < parts.splits; ++part) {
    m = fmaxf(m, parts.m[part * parts.rows + row]);
  }
  float l = 0.0F;
  for (int part = 0; part < parts.splits; ++part) {
    const int64_t at = part * parts.rows + row;
    l += parts.l[at] * weight(parts.m[at], m, a.bits_per_unit);
  }
  const RowEnd end = finish_row(a, h, m, l);
  if (threadIdx.x == 0) {
    static_cast<float*>(a.lse.data)[a.lse.offset(b, h, i)] = end.lse;
  }
  const int64_t o_row = a.o.offset(b, h, i);
  for (int column = threadIdx.x; column < a.v_depth; column += kWarp) {
    float acc = 0.0F;
    for (int part = 0; part < parts.splits; ++part) {
      const int64_t at = part * parts.rows + row;
      acc += parts.o[at * a.v_depth + column] * weight(parts.m[at], m, a.bits_per_unit);
    }
    store_output(a, end, o_row + column, acc);
  }
}

/// Few rows, as in the decode of one token without groups: four at a time would mostly idle.
int rows_per_warp([[maybe_unused]] const AttestProblem& problem) {
#ifdef ATTEST_FEWER_INSTANCES  // see flash_prefill.cu
  return 4;
#else
  return problem.query_heads / problem.kv_heads * problem.queries == 1 ? 1 : 4;
#endif
}

int64_t row_groups(const AttestProblem& problem) {
  const int64_t rows = problem.query_heads / problem.kv_heads * problem.queries;
  return (rows + rows_per_warp(problem) - 1) / rows_per_warp(problem);
}

template <uint32_t kFormat, int kRows>
void launch(const AttestAttention& attention, const AttentionArguments& a, const Parts& parts) {
  const auto stream = static_cast<cudaStream_t>(attention.stream);
  const auto blocks = static_cast<unsigned>(split_keys_blocks(attention.problem));
  split_keys<kFormat, kRows><<<blocks, kWarp, 0, stream>>>(
      a, parts, static_cast<unsigned>(row_groups(attention.problem)));
}

template <uint32_t kFormat>
void launch_rows(const AttestAttention& attention, const AttentionArguments& a,
                 const Parts& parts) {
#ifndef ATTEST_FEWER_INSTANCES
  if (rows_per_warp(attention.problem) == 1) {
    return launch<kFormat, 1>(attention, a, parts);
  }
#endif
  launch<kFormat, 4>(attention, a, parts);
}

}  // namespace

int64_t split_keys_scratch_floats(const AttestProblem& problem) {
  return problem.splits * problem.batch * problem.query_heads * problem.queries *
         (problem.v_depth + 2);
}

int64_t split_keys_blocks(const AttestProblem& problem) {
  return problem.batch * problem.kv_heads * row_groups(problem) * problem.splits;
}

cudaError_t launch_split_keys(const AttestAttention& attention) {
  const Parts parts = parts_of(attention);
  if (parts.rows == 0) {
    return cudaSuccess;
  }
  const AttentionArguments a = arguments_of(attention);
  switch (a.k.format) {
    case ATTEST_F32:
      launch_rows<ATTEST_F32>(attention, a, parts);
      break;
    case ATTEST_F16:
      launch_rows<ATTEST_F16>(attention, a, parts);
      break;
    case ATTEST_BF16:
      launch_rows<ATTEST_BF16>(attention, a, parts);
      break;
    case ATTEST_E4M3:
      launch_rows<ATTEST_E4M3>(attention, a, parts);
      break;
    default:
      launch_rows<ATTEST_E5M2>(attention, a, parts);
      break;
  }
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    return status;
  }
  combine_parts<<<static_cast<unsigned>(parts.rows), kWarp, 0,
                  static_cast<cudaStream_t>(attention.stream)>>>(a, parts);
  return cudaGetLastError();
}

}  // namespace attest::kernels
