// What a case projects, and one element of a projection: the exact sum, and how far a correct
// subject may be from it.
#pragma once
#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

/// X: q of head 0. W: k of batch entry 0 and head 0, transposed. The bias: that of row 0 of head 0,
/// where it is finite.
Projection projection_from(const Problem& problem, const Values& values);

struct ProjectedElement {
  double value;  // exact to 2^-90 of the sum of magnitudes
  double bound;  // infinity where f32 or the output may overflow
};

/// Row `row` of batch entry b of X times column `column` of W, plus the bias. Accumulated in f32,
/// in any order or in the steps of tensor cores that `path` declares, then rounded to the output:
///   A roundings(s) + n 2^-126 + [with bias] u (|y| + |bias|) + one rounding to the output format
/// with n the inner extent, A the sum of |x w| (of magnitudes as tensor cores align them), s the
/// roundings that reference/bound/README.md allows a sum, steps S1 and "Tensor cores"; n 2^-126
/// covers products and partial sums below f32's normal range, flushed or not.
ProjectedElement projected(const Projection& projection, const PrecisionPath& path, Index b,
                           Index row, Index column);

}  // namespace attest
