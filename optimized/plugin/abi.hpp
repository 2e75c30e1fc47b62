// Problem in the words of the C ABI. The only place where attest's enumerations and those of
// attest_subject.h meet.
#pragma once
#include <optional>
#include <string>

#include "optimized/plugin/attest_subject.h"
#include "reference/subject.hpp"

namespace attest {

AttestProblem abi_problem(const Problem& problem);

/// Domain: declarations that passed the worker's wrong_precision().
PrecisionPath precision_path(const AttestPrecision& precision);

/// Why the ABI cannot state this Problem without changing it, or nothing.
std::optional<std::string> inexpressible(const Problem& problem);

}  // namespace attest
