// Step S1 of bound/README.md: an inner product, and how far off a kernel may compute it, whatever
// the order of its sum or along the order that it declared.
#pragma once
#include "reference/bound/scores.hpp"

namespace attest::bound {

struct InnerProduct {
  double sum = 0;        // x
  double magnitude = 0;  // a, and for tensor cores what they align by
  double error = 0;      // of x times the scales of the logits and of k
};

/// Of `q` with row `j` of `k`. With `follow` along the declared order, if there is one.
/// Error: an over-estimate, up to double's own error, which is 2^-29 of it.
InnerProduct inner_product(const Row& row, const Rows& q, const Rows& k, Index j, bool follow);

}  // namespace attest::bound
