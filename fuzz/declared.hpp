// Declared: how wide the precision paths are that a subject declared, number by number, and the
// kernels and formats of a case in one word.
#pragma once
#include <map>
#include <string>

#include "reference/precision.hpp"

namespace attest {

/// Raises every number of `widest`, named as in PrecisionPath, to that of `path`; p_format counts
/// as its unit roundoff.
void widen(std::map<std::string, double>& widest, const PrecisionPath& path);

}  // namespace attest
