// Misplaced rows: refused rows of an answer that are right for another row, head or batch entry, or
// that hold nothing but NaN. They explain a verdict and never change one.
#pragma once
#include <string>
#include <vector>

#include "properties/given.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {

/// Sentences for a person; empty where most refused rows are nothing of the kind. A row counts as
/// another one's if that one's bound accepts all of it, and no third row's does. Looks at some of
/// the refused rows.
std::vector<std::string> misplaced(const Problem& problem, const Acceptance& accepted,
                                   const Given& given);

}  // namespace attest
