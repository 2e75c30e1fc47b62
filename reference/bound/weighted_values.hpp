// P V along the declared order: the sums of one row, what is in them besides the numbers that
// belong there, and where they meet. README, "P V in order".
#pragma once
#include <vector>

#include "reference/bound/cast_weights.hpp"

namespace attest::bound {

/// One number per column of V, relative to the reference of everything.
struct WeightedValues {
  std::vector<double> sum;    // of cast weights times values
  std::vector<double> drift;  // by how much it may be more without being wrong
  std::vector<double> error;  // by how much it may be wrong

  explicit WeightedValues(std::size_t columns) : sum(columns), drift(columns), error(columns) {}
  double most(std::size_t c) const { return std::fabs(sum[c]) + drift[c] + error[c]; }
};

WeightedValues weighted_values_of(const Row& row, const Scores& scores, const Visits& visits,
                                  const Joints& joints, const CastWeights& weights, const Rows& v,
                                  bool quantised);

}  // namespace attest::bound
