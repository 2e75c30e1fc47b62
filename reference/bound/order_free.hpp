// B1: how far a correct kernel's O and LSE may be from the truth, whatever the order in which it
// adds. Derivation, with the source of every term: reference/bound/README.md.
#pragma once
#include <vector>

#include "reference/bound/roundings.hpp"
#include "reference/bound/scores.hpp"
#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

/// Absolute, per element, already including the rounding to the output format (o) and to f32 (lse).
/// Rows that see no key have bound 0: what they must hold is exact (except the lse of such a row
/// with a sink, which is the sink's logit after a few roundings). Infinity: nothing is promised (an
/// intermediate may overflow, or the row is behind a query length), such an element is not judged.
///
/// Domain: any legal Problem with values of its extents; problem.num_splits > 1 covers the
/// combination. Error: an over-estimate; evaluated in double and enlarged by bound::kEvaluation.
/// Special: NaN and infinities among visible values give infinity.
struct Bounds {
  std::vector<double> o;         // like Truth::o
  std::vector<double> o_before;  // the same without the rounding to the output format
  std::vector<double> lse;       // like Truth::lse
};
Bounds order_free_bounds(const Problem& problem, const Values& values, const PrecisionPath& path);

namespace bound {

/// The same of one row, from its scores and the values of its head.
struct RowBounds {
  std::vector<double> after, before;
  double lse = kInfinity;
};
RowBounds order_free_row(const Row& row, const Scores& scores, const Rows& v);

}  // namespace bound
}  // namespace attest
