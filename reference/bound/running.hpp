// B2 and B3: how far O of a correct kernel may be from a centre, where its path says in which order
// it works: the running bound around the truth, the quantisation-aware one around the quotient that
// weights rounded as the kernel rounds them have. Derivation: README.md.
#pragma once
#include <optional>
#include <vector>

#include "reference/bound/roundings.hpp"
#include "reference/bound/scores.hpp"

namespace attest::bound {

/// Before O is rounded to its format, per column of V. Infinite or no number: nothing is promised
/// here, which the order-free bound then may do.
struct FollowedRow {
  std::vector<double> centre, radius;
  double lse = kInfinity;  // around the truth, and by B2 alone: P's rounding is no part of it
};

/// Quantised: B3, otherwise B2. Nothing where the path does not declare enough, or where what it
/// declares leaves open what happened in this row.
/// Domain: `scores` of the declared order, judged, with a key; `v` of the row's head.
/// Error: an over-estimate, double's own error in the centre included.
std::optional<FollowedRow> followed_row(const Row& row, const Scores& scores, const Rows& v,
                                        bool quantised);

}  // namespace attest::bound
