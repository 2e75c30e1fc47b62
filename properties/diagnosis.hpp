// Diagnosis: what refused numbers may mean. A wrong answer, a Problem that was meant otherwise, or
// a precision path that was declared wrongly: each is tried, and what would accept everything is
// named. It explains a verdict and never changes one.
#pragma once
#include <string>
#include <vector>

#include "properties/given.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {

/// Sentences for a person, the likeliest first; empty when nothing is refused. `accepted` is of
/// this problem, these values and this path. Costs a few times what the verdict did, where
/// something is refused. `wanted` as for acceptance().
std::vector<std::string> diagnose(const Problem& problem, const Values& values,
                                  const PrecisionPath& path, const Acceptance& accepted,
                                  const Given& given, const std::vector<bool>& wanted = {});

}  // namespace attest
