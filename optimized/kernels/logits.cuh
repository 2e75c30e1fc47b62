// Logits: which keys a row may see, and what is done to q.k before the softmax.
// The order is scale, softcap, bias and ALiBi, mask. Knows nothing of tiles or of sums.
#pragma once
#include <cmath>
#include <cstdint>

#include "optimized/kernels/attention_arguments.cuh"

namespace attest::kernels {

__device__ inline int query_count(const AttentionArguments& a, int b) {
  return a.seqlens_q == nullptr ? a.seqlen_q : a.seqlens_q[b];
}
__device__ inline int key_count(const AttentionArguments& a, int b) {
  return a.seqlens_kv == nullptr ? a.seqlen_kv : a.seqlens_kv[b];
}

/// The key that stands opposite query 0 of a batch entry.
__device__ inline int64_t diagonal_of(const AttentionArguments& a, int queries, int keys) {
  return a.bottom_right ? static_cast<int64_t>(keys) - queries : 0;
}

/// Keys [begin, end), what length, causality and window leave of a row; may be empty. Both ends
/// never decrease from one row to the next.
struct KeyRange {
  int begin, end;
};
__device__ inline KeyRange keys_seen_by(const AttentionArguments& a, int64_t opposite, int keys) {
  int64_t begin = 0;
  int64_t end = keys;
  if (a.causal) {
    end = min(end, opposite + 1);
  }
  if (a.window_right >= 0) {
    end = min(end, opposite + a.window_right + 1);
  }
  if (a.window_left >= 0) {
    begin = max(begin, opposite - a.window_left);
  }
  return {static_cast<int>(min(begin, static_cast<int64_t>(keys))),
          static_cast<int>(max(end, INT64_C(0)))};
}

__device__ inline bool contains(const KeyRange& range, int j) {
  return j >= range.begin && j < range.end;
}

/// One row of queries, as far as its logits need to know.
struct LogitRow {
  int64_t opposite;     // the key opposite this query: i + diagonal
  int64_t bias_offset;  // of key 0 in bias
  int64_t mask_offset;  // of key 0 in mask
  float slope;
};
__device__ inline LogitRow logit_row(const AttentionArguments& a, int b, int h, int i,
                                     int64_t diagonal) {
  LogitRow row;
  row.opposite = i + diagonal;
  row.bias_offset = a.bias.offset(b, h, i);
  row.mask_offset = a.mask.offset(b, 0, i);
  row.slope = a.alibi_slopes == nullptr ? 0.0F : a.alibi_slopes[h];
  return row;
}

/// Whether q.k and the key range are all there is to a logit: then logit() need not be called.
__device__ inline bool logits_are_plain(const AttentionArguments& a) {
  return !a.natural && a.mask.data == nullptr;
}

/// From q.k to the logit of key j in our unit, -inf where it is masked. A hidden key is replaced,
/// never added to, so that a NaN behind it cannot come through. Only for keys of the row's range:
/// bias and mask have no others.
/// Error: natural mode rounds once each in scale, z/cap, cap*tanh and every addition, and tanhf has
/// 2 ulp (CUDA C++ Programming Guide); otherwise none.
__device__ inline float logit(const AttentionArguments& a, const LogitRow& row, float z, int j) {
  if (a.natural) {
    z *= a.softmax_scale;
    if (a.softcap > 0.0F) {
      z = a.softcap * tanhf(z / a.softcap);
    }
    if (a.bias.data != nullptr) {
      const float bias = static_cast<const float*>(a.bias.data)[row.bias_offset + j];
      z = bias == -INFINITY ? -INFINITY : z + bias;  // -inf hides a key, whatever its logit
    }
    if (a.alibi_slopes != nullptr) {
      const int64_t distance = row.opposite - j;
      z -= row.slope * static_cast<float>(distance < 0 ? -distance : distance);
    }
  }
  if (a.mask.data != nullptr &&
      static_cast<const unsigned char*>(a.mask.data)[row.mask_offset + j] == 0) {
    return -INFINITY;
  }
  return z;
}

}  // namespace attest::kernels
