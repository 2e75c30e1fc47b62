// What an attention kernel receives: the Problem and its tensors as plain pointers and strides, and
// where in a cache a token lies. Knows the C ABI and nothing of any algorithm.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest::kernels {

// log2(e) and ln(2) to the last bit of a float.
constexpr float kLog2E = 1.4426950408889634F;

/// A tensor of (batch, head, row, column), whatever its strides; the last one is 1.
struct View {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;  // strides in elements: 64 bits, a batch may span 2^31
  uint32_t format = ATTEST_F32;
  bool vectors = false;  // every row starts where four elements may be loaded at once
  bool chunks = false;   // the same of eight: 16 bytes of 16-bit numbers, 8 of narrower ones

  __host__ __device__ int64_t offset(int64_t b, int64_t h, int64_t i) const {
    return b * batch + h * head + i * row;
  }
};

/// One token's row in a cache: the first and the third index into k and v, and into scales per
/// token.
struct CachePlace {
  int64_t block, slot;
};

/// Which place a token of a batch entry has. Contiguous, paged or a ring: attest_subject.h.
struct CacheLayout {
  View block_table;        // (batch, 1, pages, 1) int32, or data == nullptr: not paged
  uint32_t page_size = 0;  // 0: not paged
  uint32_t ring = 0;       // 0: no ring

  /// Only of tokens that exist: entries of the block table behind the last one name no page.
  __device__ CachePlace place(int b, uint32_t token) const {
    if (page_size != 0) {
      const auto* pages = static_cast<const int32_t*>(block_table.data);
      return {pages[block_table.offset(b, 0, token / page_size)], token % page_size};
    }
    return {b, ring != 0 ? token % ring : token};
  }
};

struct AttentionArguments {
  View q;         // (batch, num_heads_q, seqlen_q, head_dim)
  View k;         // (blocks, num_heads_kv, slots, head_dim); a token's row is at cache.place()
  View v;         // (blocks, num_heads_kv, slots, head_dim_v)
  View k_scales;  // (blocks, num_heads_kv, slots, 1)         f32, or data == nullptr: all 1
  View v_scales;  // likewise; strides are 0 where one number serves all
  CacheLayout cache;
  View o;     // (batch, num_heads_q, seqlen_q, head_dim_v)
  View lse;   // (batch, num_heads_q, seqlen_q, 1)         f32, or data == nullptr
  View bias;  // (batch, num_heads_q, seqlen_q, seqlen_kv)      f32, or data == nullptr
  View mask;  // (batch, 1, seqlen_q, seqlen_kv)                uint8, or data == nullptr
  const float* alibi_slopes;  // (num_heads_q), or nullptr
  const float* sinks;         // (num_heads_q), or nullptr
  const int32_t* seqlens_q;   // (batch), or nullptr: all full
  const int32_t* seqlens_kv;  // (batch), or nullptr: all full
  int num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  int64_t window_left, window_right;  // inclusive, -1: unbounded
  float softcap;                      // 0: off
  float softmax_scale;                // multiplies q.k in natural mode
  // Logits are kept in a unit of our choice. In natural mode (anything is done to a logit beside
  // scaling it) the unit is 1 nat. Otherwise it is `scale` nats: q.k is used as it comes, and
  // scaling costs no rounding of its own.
  bool natural;
  float nats_per_unit, bits_per_unit;
  bool causal, bottom_right, empty_is_nan, base_two;
  float empty_lse;  // of a row that sees neither a key nor a sink
};

inline uint32_t format_of(DLDataType type) {
  if (type.code == kDLBfloat) {
    return ATTEST_BF16;
  }
  if (type.code == ATTEST_DL_FLOAT8_E4M3FN) {
    return ATTEST_E4M3;
  }
  if (type.code == ATTEST_DL_FLOAT8_E5M2) {
    return ATTEST_E5M2;
  }
  if (type.code == kDLInt) {
    return ATTEST_I8;
  }
  return type.bits == 16 ? ATTEST_F16 : ATTEST_F32;
}

/// The View of a tensor whose axes are numbered as given; -1: the tensor has no such axis.
inline View view_of(const DLTensor& tensor, int batch_axis, int head_axis, int row_axis) {
  View view;
  view.format = format_of(tensor.dtype);  // also of a cache without slots, which may have no data
  if (tensor.data == nullptr) {
    return view;
  }
  const auto stride = [&](int axis) -> int64_t {
    if (axis < 0) {
      return 0;
    }
    if (tensor.strides != nullptr) {
      return tensor.strides[axis];
    }
    int64_t product = 1;  // DLPack: no strides means compact and row-major
    for (int later = axis + 1; later < tensor.ndim; ++later) {
      product *= tensor.shape[later];
    }
    return product;
  };
  view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  view.batch = stride(batch_axis);
  view.head = stride(head_axis);
  view.row = stride(row_axis);
  const auto rows_start_at_multiples_of = [&](int64_t elements) {
    const uintptr_t bytes = elements * (tensor.dtype.bits / 8U);
    return reinterpret_cast<uintptr_t>(view.data) % bytes == 0 && view.batch % elements == 0 &&
           view.head % elements == 0 && view.row % elements == 0;
  };
  view.vectors = rows_start_at_multiples_of(4);
  view.chunks = rows_start_at_multiples_of(8);
  return view;
}

template <class Number>
const Number* vector_of(const DLTensor& tensor) {
  return tensor.data == nullptr ? nullptr
                                : reinterpret_cast<const Number*>(static_cast<char*>(tensor.data) +
                                                                  tensor.byte_offset);
}

inline CacheLayout cache_layout_of(const AttestProblem& problem, const DLTensor& block_table) {
  CacheLayout layout;
  layout.page_size = static_cast<uint32_t>(problem.page_size);
  layout.ring = static_cast<uint32_t>(problem.ring);
  if (problem.page_size > 0) {
    layout.block_table = view_of(block_table, 0, -1, 1);
  }
  return layout;
}

/// Scales of a cache as (block, head, slot), whatever one number of them serves.
inline View scales_view_of(const AttestProblem& problem, const DLTensor& scales) {
  switch (problem.scales) {
    case ATTEST_SCALES_TENSOR:
      return view_of(scales, -1, -1, -1);
    case ATTEST_SCALES_HEAD:
      return view_of(scales, -1, 0, -1);
    case ATTEST_SCALES_TOKEN:
      return view_of(scales, 0, 1, 2);
    default:
      return {};
  }
}

/// What the stored row at `place` is multiplied by.
__device__ inline float scale_at(const View& scales, int h, const CachePlace& place) {
  return scales.data == nullptr
             ? 1.0F
             : static_cast<const float*>(scales.data)[scales.offset(place.block, h, place.slot)];
}

inline AttentionArguments arguments_of(const AttestAttention& attention) {
  const AttestProblem& problem = attention.problem;
  const bool has_bias = (problem.flags & ATTEST_BIAS) != 0;
  const bool has_alibi = (problem.flags & ATTEST_ALIBI) != 0;
  const bool has_sinks = (problem.flags & ATTEST_SINKS) != 0;
  const bool has_mask = (problem.flags & ATTEST_MASK) != 0;
  AttentionArguments a{};
  a.q = view_of(attention.q, 0, 1, 2);
  a.k = view_of(attention.k, 0, 1, 2);
  a.v = view_of(attention.v, 0, 1, 2);
  a.k_scales = scales_view_of(problem, attention.k_scales);
  a.v_scales = scales_view_of(problem, attention.v_scales);
  a.cache = cache_layout_of(problem, attention.block_table);
  a.o = view_of(attention.o, 0, 1, 2);
  a.lse = view_of(attention.lse, 0, 1, 2);
  a.bias = has_bias ? view_of(attention.bias, 0, 1, 2) : View{};
  a.mask = has_mask ? view_of(attention.mask, 0, -1, 1) : View{};
  a.alibi_slopes = has_alibi ? vector_of<float>(attention.alibi_slopes) : nullptr;
  a.sinks = has_sinks ? vector_of<float>(attention.sinks) : nullptr;
  a.seqlens_q = vector_of<int32_t>(attention.seqlens_q);
  a.seqlens_kv = vector_of<int32_t>(attention.seqlens_kv);
  a.num_heads_q = static_cast<int>(problem.num_heads_q);
  a.num_heads_kv = static_cast<int>(problem.num_heads_kv);
  a.seqlen_q = static_cast<int>(problem.seqlen_q);
  a.seqlen_kv = static_cast<int>(problem.seqlen_kv);
  a.head_dim = static_cast<int>(problem.head_dim);
  a.head_dim_v = static_cast<int>(problem.head_dim_v);
  // A window wider than any sequence hides nothing; clamped, so that adding to it cannot overflow.
  a.window_left = std::min<int64_t>(problem.window_left, INT64_C(1) << 40);
  a.window_right = std::min<int64_t>(problem.window_right, INT64_C(1) << 40);
  a.softcap = problem.softcap;
  a.softmax_scale = problem.softmax_scale;
  // One rounding; a product that is zero, subnormal or infinite, or a scale that would turn the
  // order of the logits round, is left to natural mode.
  const float bits =
      static_cast<float>(static_cast<double>(problem.softmax_scale) * 1.4426950408889634);
  const bool usable = bits >= FLT_MIN && bits <= FLT_MAX;
  a.natural = problem.softcap > 0 || has_bias || has_alibi || has_sinks || !usable;
  a.nats_per_unit = a.natural ? 1.0F : problem.softmax_scale;
  a.bits_per_unit = a.natural ? kLog2E : bits;
  a.causal = (problem.flags & ATTEST_CAUSAL) != 0;
  a.bottom_right = problem.alignment == ATTEST_BOTTOM_RIGHT;
  a.empty_is_nan = problem.empty_row == ATTEST_EMPTY_NAN;
  a.base_two = problem.lse_base == ATTEST_LSE_TWO;
  a.empty_lse = problem.empty_lse == ATTEST_EMPTY_LSE_PLUS_INF ? INFINITY : -INFINITY;
  return a;
}

}  // namespace attest::kernels
