// The weights of a row whose order is known, as they meet V, and their sum: what each is, and by
// how much a kernel's may differ. README, "Weights at the cast". Knows nothing of values.
#pragma once
#include <optional>
#include <vector>

#include "reference/bound/logarithm.hpp"
#include "reference/bound/visits.hpp"

namespace attest::bound {

/// Where accumulators meet, and by how much the factors between their references may be off.
struct Joints {
  std::vector<std::vector<double>> state_error;  // relative: from a state to its part
  std::vector<double> part_error;                // from a part to what all keys refer to
  double sink_error = 0;                         // from there to the sink, if that is larger
  Reference all;                                 // what everything refers to in the end
  double exponential = 0;                        // of one exponential, in its exponent
  double part_lse = 0;  // in the exponent: a part's LSE, where parts or the sink meet by it
  double merges = 0;    // how often, at most, a part may meet others: one after another
};

/// Nothing where the declared errors promise nothing, or where it depends on when the sink joins
/// what a weight was when it was cast.
std::optional<Joints> joints_of(const Row& row, const Scores& scores, const Visits& visits,
                                const Logarithm& log);

/// Relative to `Joints::all`.
struct CastWeight {
  double number = 0;  // meets V: rounded as the kernel does, or for the running bound as it is
  double wrong = 0;   // how far what meets V may be from it, apart from `drift`
  double drift = 0;   // running bound: the same, but shared with the row sum
  double least = 0;   // tensor cores align it by no less
  double most() const { return number + wrong + drift; }
};

struct CastWeights {
  std::vector<CastWeight> keys;  // like Scores::keys
  double sink_drift = 0;
  double sum = 0;        // of the weights and the sink: lq, or W
  double theta = 0;      // relative error of `sum` through its terms: Sq, or S
  double kappa_sum = 0;  // ... and through its additions
};

/// `v` for its scales, which may join the weights.
CastWeights cast_weights_of(const Row& row, const Scores& scores, const Visits& visits,
                            const Joints& joints, const Rows& v, bool quantised);

/// The relative error of a factor that brings `from` to `to`, `exponent` besides.
double factor_error(const Reference& from, const Reference& to, double exponent);

}  // namespace attest::bound
