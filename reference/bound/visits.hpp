// In which order a kernel visits the keys of a row, as its path declares it, and which reference
// the weights of each block have when they are cast. README, "Order". Knows nothing of values.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "reference/bound/scores.hpp"

namespace attest::bound {

/// What weights refer to. The truth of it is `value`; a kernel computes something from low to high.
struct Reference {
  double value = -std::numeric_limits<double>::infinity();
  double low = value, high = value;
  double error() const { return std::max(high - value, value - low); }
  double moved = 0;  // Term::moved
  double size() const { return std::max(std::fabs(high), std::fabs(low)) + moved; }
  /// The larger of two, number by number.
  Reference join(const Reference& other) const {
    return {std::max(value, other.value), std::max(low, other.low), std::max(high, other.high),
            std::max(moved, other.moved)};
  }
};

/// A logit, as what weights may refer to.
Reference reference_of(const Term& term);

/// Keys of every part but the last; 0: the path does not say.
/// Domain: of a batch entry's `keys`.
Index keys_of_part(const PrecisionPath& path, Index splits, Index keys);

/// A block in which the row sees a key.
struct Visit {
  std::size_t begin = 0, end = 0;  // its keys in Scores::keys
  Index first_key = 0;             // where its groups of keys are counted from
  Reference before, reference;
  bool may_rise = false;   // whether `reference` may differ from `before`
  double later_rises = 0;  // how often the state's reference may rise afterwards
};

/// What is accumulated by itself. Visits in the kernel's order; one at least.
struct State {
  std::vector<Visit> visits;
  const Reference& reference() const { return visits.back().reference; }
};

/// Parts of states of visits; what has no key is left out.
struct Visits {
  std::vector<std::vector<State>> parts;
  Index longest_block = 0;  // keys of a block, or of a part if it is shorter
};

/// Nothing where blocks are not declared, make no sense, or where a lazy reference may or may not
/// have risen. `scores` has a key.
std::optional<Visits> visits_of(const Row& row, const Scores& scores);

}  // namespace attest::bound
