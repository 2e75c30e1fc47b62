// Wrong answers: cheap versions of well-known mistakes, in plain double, to learn which of them a
// case could have told from the truth. They judge the testbed, never a subject.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "reference/bound/acceptance.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// Names of all wrong answers, in the order in which they are tried.
std::vector<std::string_view> wrong_answer_names();

/// For each wrong answer that means something else than the right one on this Problem: would the
/// bound have refused it somewhere, in O or LSE? Costs a small part of what the oracle costs: the
/// search ends at the first refused element.
std::vector<Power> measure_power(const Problem& problem, const Values& values,
                                 const Acceptance& accepted);

}  // namespace attest
