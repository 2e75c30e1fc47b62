// Requests of the C ABI cut down to a part of themselves: a part of an axis is another shape and
// another first element, so that a kernel can be put to it alone. Reads no tensor.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <vector>

#include "optimized/plugin/attest_subject.h"

namespace attest::sizes {

/// A request that is being changed, and what its tensors point to meanwhile.
template <class Request>
struct Changed {
  Request request;

  explicit Changed(const Request& given) : request(given) {}

  /// Elements [first, first + count) of an axis. Absent tensors stay absent.
  void cut(DLTensor& tensor, int axis, int64_t first, int64_t count) {
    if (tensor.data == nullptr || axis >= tensor.ndim) return;
    tensor.shape = own(tensor.shape, tensor.ndim);
    tensor.shape[axis] = count;
    move(tensor, axis, first);
  }
  /// The first element of an axis becomes number `by`; the last ones are then beyond it.
  void move(DLTensor& tensor, int axis, int64_t by) {
    if (tensor.data == nullptr) return;
    const int64_t bytes = tensor.strides[axis] * (tensor.dtype.bits / 8) * by;
    tensor.data = static_cast<char*>(tensor.data) + bytes;
  }
  /// All elements of an axis are its first one.
  void repeat_first(DLTensor& tensor, int axis) {
    if (tensor.data == nullptr) return;
    tensor.strides = own(tensor.strides, tensor.ndim);
    tensor.strides[axis] = 0;
  }

 private:
  int64_t* own(const int64_t* numbers, int count) {
    return kept_.emplace_back(numbers, std::next(numbers, count)).data();
  }

  std::deque<std::vector<int64_t>> kept_;
};

/// One batch entry alone.
inline void cut_entry(Changed<AttestAttention>& changed, int64_t b) {
  AttestAttention& a = changed.request;
  const bool in_pages = a.problem.page_size > 0;
  a.problem.batch = 1;
  for (DLTensor* each :
       {&a.q, &a.o, &a.lse, &a.bias, &a.mask, &a.seqlens_q, &a.seqlens_kv, &a.block_table}) {
    changed.cut(*each, 0, b, 1);
  }
  if (in_pages) return;
  changed.cut(a.k, 0, b, 1);
  changed.cut(a.v, 0, b, 1);
  if (a.problem.scales != ATTEST_SCALES_TOKEN) return;
  changed.cut(a.k_scales, 0, b, 1);
  changed.cut(a.v_scales, 0, b, 1);
}

/// One query head alone, with its KV head.
inline void cut_head(Changed<AttestAttention>& changed, int64_t head) {
  AttestAttention& a = changed.request;
  const int64_t kv_head = head / (a.problem.num_heads_q / a.problem.num_heads_kv);
  a.problem.num_heads_q = a.problem.num_heads_kv = 1;
  for (DLTensor* each : {&a.q, &a.o, &a.lse, &a.bias}) changed.cut(*each, 1, head, 1);
  for (DLTensor* each : {&a.alibi_slopes, &a.sinks}) changed.cut(*each, 0, head, 1);
  for (DLTensor* each : {&a.k, &a.v}) changed.cut(*each, 1, kv_head, 1);
  if (a.problem.scales < ATTEST_SCALES_HEAD) return;
  const int axis = a.problem.scales == ATTEST_SCALES_TOKEN ? 1 : 0;
  for (DLTensor* each : {&a.k_scales, &a.v_scales}) changed.cut(*each, axis, kv_head, 1);
}

}  // namespace attest::sizes
