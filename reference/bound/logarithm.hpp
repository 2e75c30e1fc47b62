// The logarithm of a row sum: how large its parts are, and what it brings to an LSE besides the
// errors of the sum. README, "LSE" and S9. Knows no order of work.
#pragma once
#include "reference/bound/scores.hpp"

namespace attest::bound {

struct Logarithm {
  double key_max = 0;    // the largest logit of a key; -infinity without keys
  double reference = 0;  // M: the same with the sink
  double moved = 0;      // by how much a kernel may have moved all logits
  double magnitude = 0;  // the largest |logit|, however moved
  double error = 0;      // e
  double terms = 0;      // keys, and the sink
  double most = 0;   // of the logarithm: that of as many weights as there are, as large as may be
  double shift = 0;  // the largest number that is used as a reference
  double log_error = 0;    // of one logarithm of a row sum
  double swing = 1;        // by which factor a rounded reference may move all weights
  double merges = 0;       // how often, at most, a part's state or LSE meets another's: S9
  double merge_error = 0;  // of one of them, in the exponent, but for distance and exponential
};
Logarithm logarithm_of(const Row& row, const Scores& scores);

/// How often a split of so many meets others, or the sink: at least once, for even a single one may
/// go through what combines them.
double merges_of(double parts, const Scores& scores);

/// How far the LSE may be off, in its base: of a row whose weights add up to `sum` relative to M,
/// and whose computed sum is off by no more than exp(+-in_sum). Error: an over-estimate. Special:
/// infinity where the row sum may overflow.
double lse_radius(const Row& row, const Logarithm& log, double sum, double in_sum);

}  // namespace attest::bound
