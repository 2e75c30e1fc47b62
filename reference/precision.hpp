// PrecisionPath: how a subject rounds, and as far as it says so in which order. Data only; what
// follows for the allowed error is derived in reference/bound/README.md.
#pragma once
#include <cstdint>

#include "reference/problem.hpp"

namespace attest {

// How `part` says that the parts of a split sequence depend on its length.
inline constexpr Index kEvenParts = -1;        // ceil(keys / splits) keys each
inline constexpr Index kPowerOfTwoParts = -2;  // the least power of two that is no less than that

/// The first block holds for every f32 kernel. With the defaults of the second only the order-free
/// bound applies; what it declares allows the sharper ones, and must be so for every row. All
/// errors are relative and per operation unless said otherwise.
struct PrecisionPath {
  Format p_format = Format::f32;  // what the weights are rounded to before they meet V
  double exp_error = 0;           // relative error of the exponential; 0: correctly rounded
  double log_error = 0;           // of the logarithm in LSE, nats; relative beyond 1
  double tanh_error = 0;          // relative error of tanh in softcap
  double division_error = 0;      // relative error of 1/l and the multiplication by it
  Index key_block = 1;            // least number of keys between two rescales; 1: unknown
  // Products that tensor cores add in one step, at least; 0: q.k and P V are sums of f32
  // operations.
  Index tensor_step = 0;
  bool sums_cast = false;    // the row sum adds the weights as rounded to p_format
  bool scales_in_p = false;  // a scale of the cache's v joins the weight before that rounding
  double lazy = 0;     // by how many powers of two a weight may exceed 1 before the reference rises
  double p_shift = 0;  // log2 of a factor on the weights, in P and in the row sum, at the cast

  // Keys of a block share one reference: the largest logit that its state has seen, the block
  // included (see `lazy`). Blocks begin at multiples of it, counted from the first key of the part;
  // more keys than there are: one block, the reference is the maximum. 0: unknown.
  Index block = 0;
  Index streams = 1;  // a part's blocks are dealt in turn to this many states, combined at the end
  bool falling = false;  // a part's last block comes first
  Index part = 0;        // keys of a part when splits > 1, or kEvenParts ...; 0: unknown
  // q.k is added over columns, from 0, and P V over the keys of a block to its state's only
  // accumulator, in rising order, singly or in groups of tensor_step: bound/README.md, "Order".
  bool in_order = false;
  Index sum_lanes = 1;  // partial sums of l in a state, each of an equal share of every block
  // Weights are divided by the row sum before they are rounded to p_format, and O is not.
  bool normalize_before_cast = false;
  // What q.k is rounded to, and perhaps again whatever is made of it before the exponential.
  Format scores_format = Format::f32;
  bool operator==(const PrecisionPath&) const = default;
};

}  // namespace attest
