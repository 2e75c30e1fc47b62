// How near to the bound a simulated kernel came: the largest error / bound over a Problem's rows.
// For the tests of the bound alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/order_free.hpp"
#include "reference/bound/simulated_kernel.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {

struct Tally {
  Index rows = 0, judged = 0, unjudged = 0;
  double o_ratio = 0, lse_ratio = 0;
  double o_ratio_f32 = 0;  // where the output is f32, and its own rounding does not hide the rest

  void add(const Tally& other, bool f32) {
    rows += other.rows;
    judged += other.judged;
    unjudged += other.unjudged;
    o_ratio = std::max(o_ratio, other.o_ratio);
    lse_ratio = std::max(lse_ratio, other.lse_ratio);
    if (f32) o_ratio_f32 = std::max(o_ratio_f32, other.o_ratio);
  }
};

/// Largest error / bound; NaN where a bound is 0 must be matched by NaN.
inline double ratio_of(double found, double truth, double tail, double bound) {
  if (bound == std::numeric_limits<double>::infinity()) return 0;
  if (std::isnan(truth) || std::isinf(truth)) {
    return std::isnan(truth) == std::isnan(found) && (std::isnan(truth) || truth == found)
               ? 0
               : std::numeric_limits<double>::infinity();
  }
  const double error = std::fabs((found - truth) - tail);
  if (error == 0) return 0;
  const double ratio = error / bound;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

inline void judge(const Problem& p, const Truth& truth, const Bounds& bounds,
                  const Simulated& found, Tally& tally) {
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.query_heads; ++h) {
      for (Index i = 0; i < query_length(p, b); ++i) {
        const auto row = static_cast<std::size_t>((b * p.query_heads + h) * p.queries + i);
        ++tally.rows;
        tally.lse_ratio = std::max(tally.lse_ratio,
                                   ratio_of(found.lse.at(static_cast<Index>(row)), truth.lse[row],
                                            truth.lse_tail[row], bounds.lse[row]));
        for (Index c = 0; c < p.v_depth; ++c) {
          const std::size_t at =
              row * static_cast<std::size_t>(p.v_depth) + static_cast<std::size_t>(c);
          ++(bounds.o[at] == std::numeric_limits<double>::infinity() ? tally.unjudged
                                                                     : tally.judged);
          tally.o_ratio =
              std::max(tally.o_ratio, ratio_of(found.o.at(static_cast<Index>(at)), truth.o[at],
                                               truth.o_tail[at], bounds.o[at]));
        }
      }
    }
  }
}

}  // namespace attest
