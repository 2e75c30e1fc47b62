// Wrong answers: cheap versions of well-known mistakes, in plain double, to learn which of them a
// case could have told from the truth, and which of them an answer that was refused looks like.
// They judge the testbed, and explain; no verdict on a subject rests on them.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "properties/given.hpp"
#include "reference/bound/acceptance.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// Names of all wrong answers, in the order in which they are tried.
std::vector<std::string_view> wrong_answer_names();
/// "the last visible key is left out": what was done wrong.
std::string_view meaning_of_wrong_answer(std::string_view name);

/// For each wrong answer that means something else than the right one on this Problem: would the
/// bound have refused it somewhere, in O or LSE? Costs a small part of what the oracle costs: the
/// search ends at the first refused element.
std::vector<Power> measure_power(const Problem& problem, const Values& values,
                                 const Acceptance& accepted);

/// A wrong answer, and how many of the refused numbers that were looked at it explains: they lie as
/// near to it as the bound lets a right answer lie to the truth.
struct Resemblance {
  std::string_view wrong_answer;
  Index refused = 0, explained = 0;
};

/// The one that explains most, if it explains more than half. Looks at some of the rows with a
/// refused number. `accepted` is of this problem, these values and this path.
/// Error: where P is followed into its rounding, the wrong answer is taken to move what is accepted
/// by as much as it moves the truth, up to P's roundoff of that.
std::optional<Resemblance> resemblance(const Problem& problem, const Values& values,
                                       const PrecisionPath& path, const Acceptance& accepted,
                                       const Given& given);

}  // namespace attest
