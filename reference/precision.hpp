// PrecisionPath: how a subject rounds, and as far as it says so in which order. Data only; what
// follows for the allowed error is derived in reference/bound/README.md.
#pragma once
#include <cstdint>

#include "reference/problem.hpp"

namespace attest {

// How split_size says that the splits of a sequence depend on its length.
inline constexpr Index kEvenSplits = -1;        // ceil(keys / num_splits) keys each
inline constexpr Index kPowerOfTwoSplits = -2;  // the least power of two that is no less than that

/// The first block holds for every f32 kernel. With the defaults of the second only the order-free
/// bound applies; what it declares allows the sharper ones, and must be so for every row. All
/// errors are relative and per operation unless said otherwise.
struct PrecisionPath {
  Format p_format = Format::f32;  // what the weights are rounded to before they meet V
  double exp_error = 0;           // relative error of the exponential; 0: correctly rounded
  double log_error = 0;           // of the logarithm in LSE, nats; relative beyond 1
  double tanh_error = 0;          // relative error of tanh in softcap
  double division_error = 0;      // relative error of 1/l and the multiplication by it
  Index keys_per_rescale = 1;     // least number of keys between two rescales; 1: unknown
  // Products that tensor cores add in one step, at least; 0: q.k and P V are sums of f32
  // operations.
  Index tensor_step = 0;
  bool row_sum_of_rounded_p = false;  // row_sum adds the weights as rounded to p_format
  bool v_scale_in_p = false;  // a scale of the cache's v joins the weight before that rounding
  // By how many powers of two a weight may exceed 1 before row_max is raised.
  double rescale_threshold_log2 = 0;
  double p_scale_log2 = 0;  // log2 of a factor on the weights, in P and in row_sum, at the cast

  // Keys of a KV block share one row_max: the largest logit that its accumulator has seen, the
  // block included (see rescale_threshold_log2). Blocks begin at multiples of it, counted from the
  // first key of the split; more keys than there are: one block, row_max is that of the whole row.
  // 0: unknown.
  Index kv_block = 0;
  // (row_max, row_sum, O): a split's KV blocks are dealt in turn to so many, combined at the end.
  Index interleaved_accumulators = 1;
  bool kv_blocks_descending = false;  // a split's last KV block comes first
  Index split_size = 0;  // keys of a split when num_splits > 1, or kEvenSplits ...; 0: unknown
  // q.k is added over columns, from 0, and P V over the keys of a KV block to the accumulator's
  // only O, in rising order, singly or in groups of tensor_step: bound/README.md, "Order".
  bool in_order = false;
  // Partial sums of row_sum in an accumulator, each of an equal share of every KV block.
  Index partial_row_sums = 1;
  // Weights are divided by row_sum before they are rounded to p_format, and O is not.
  bool normalize_before_cast = false;
  // What q.k is rounded to, and perhaps again whatever is made of it before the exponential.
  Format scores_format = Format::f32;
  bool operator==(const PrecisionPath&) const = default;
};

}  // namespace attest
