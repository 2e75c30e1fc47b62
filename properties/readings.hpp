// Readings: what a Problem or a precision path may have been meant to be, one change at a time, and
// the words that say so. Which of them explains an answer is diagnosis.hpp's business.
#pragma once
#include <string>
#include <vector>

#include "reference/precision.hpp"
#include "reference/problem.hpp"

namespace attest {

struct Reading {
  std::string words;  // "kv_block=128", "causal": how it differs
  Problem problem;
  PrecisionPath path;
};

/// Conventions on which two sides may differ: causality, alignment, scale, base of LSE, ...
std::vector<Reading> other_problems(const Problem& problem, const PrecisionPath& path);

/// Paths as sharp as this one: another format of P, block, order, sum.
std::vector<Reading> other_paths(const Problem& problem, const PrecisionPath& path);

/// Paths that round more than this one says: P in 16 bits, and in the row sum too, tensor cores,
/// approximate functions.
std::vector<Reading> coarser_paths(const Problem& problem, const PrecisionPath& path);

}  // namespace attest
