// How near to the bound a simulated kernel came: the largest error / bound over a Problem's rows,
// and how many elements were refused. For the tests of the bounds alone.
#pragma once
#include <algorithm>

#include "reference/bound/acceptance.hpp"
#include "reference/bound/testing/simulated_kernel.hpp"

namespace attest {

struct Tally {
  Index rows = 0, judged = 0, unjudged = 0, refused = 0, refused_lse = 0;
  Index elements[kStrengthNames.size()] = {};  // judged, by what they were judged by
  double o_ratio[kStrengthNames.size()] = {};  // the largest error / bound
  double lse_ratio = 0;

  void add(const Tally& other) {
    rows += other.rows;
    judged += other.judged;
    unjudged += other.unjudged;
    refused += other.refused;
    refused_lse += other.refused_lse;
    lse_ratio = std::max(lse_ratio, other.lse_ratio);
    for (std::size_t s = 0; s < kStrengthNames.size(); ++s) {
      elements[s] += other.elements[s];
      o_ratio[s] = std::max(o_ratio[s], other.o_ratio[s]);
    }
  }
};

inline void judge(const Problem& p, const Acceptance& acceptance, const Simulated& found,
                  Tally& tally) {
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < query_length(p, b); ++i) {
        const std::size_t row = row_number(p, b, h, i);
        ++tally.rows;
        const double lse = found.lse.at(static_cast<Index>(row));
        tally.lse_ratio = std::max(tally.lse_ratio, acceptance.lse.margin_of(lse, row));
        if (!acceptance.lse.accepts(lse, row)) ++tally.refused_lse;
        const auto strength = static_cast<std::size_t>(acceptance.strength[row]);
        for (Index c = 0; c < p.head_dim_v; ++c) {
          const auto at =
              row * static_cast<std::size_t>(p.head_dim_v) + static_cast<std::size_t>(c);
          const double o = found.o.at(static_cast<Index>(at));
          const bool judged = acceptance.o.radius[at] < std::numeric_limits<double>::infinity();
          ++(judged ? tally.judged : tally.unjudged);
          if (judged) ++tally.elements[strength];
          if (!acceptance.o.accepts(o, at)) ++tally.refused;
          tally.o_ratio[strength] =
              std::max(tally.o_ratio[strength], acceptance.o.margin_of(o, at));
        }
      }
    }
  }
}

}  // namespace attest
