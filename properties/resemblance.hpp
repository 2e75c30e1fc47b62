// Resemblance: which well-known mistake a refused answer looks like, if it is worth a word. It
// explains a verdict and never changes one.
#pragma once
#include <optional>
#include <string_view>

#include "properties/given.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {

/// A wrong answer, and what becomes of the numbers that were compared if that is what was given:
/// one is explained if it lies as near to it as the bound lets a right answer lie to the truth.
struct Resemblance {
  std::string_view wrong_answer;
  Index refused = 0, explained = 0;  // explained: of the refused ones
  Index against = 0;                 // accepted, and not what the mistake would have given
  double log_chance = 0;             // how likely an unrelated answer is explained so, ln

  bool all() const { return explained == refused && against == 0; }
};

/// The one that explains most, if it explains more than half of what is refused, or all of it where
/// accepted numbers speak against it; of two that explain as much the one with less against it. Not
/// one that an unrelated answer would look like too: see kChance. Looks at some of the rows with
/// a refused number and at some without. `accepted` is of this problem, these values, this path.
/// Error: where P is followed into its rounding, the wrong answer is taken to move what is accepted
/// by as much as it moves the truth, up to P's roundoff of that.
std::optional<Resemblance> resemblance(const Problem& problem, const Values& values,
                                       const PrecisionPath& path, const Acceptance& accepted,
                                       const Given& given);

}  // namespace attest
