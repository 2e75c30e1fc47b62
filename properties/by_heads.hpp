// By heads: what is accepted, and what is true, of one head after another on as many threads as
// there are. The numbers are those of the whole; only the time differs, and how far it is can be
// shown.
#pragma once
#include <atomic>
#include <vector>

#include "reference/bound/acceptance.hpp"
#include "reference/oracle/certified.hpp"

namespace attest {

/// In all of them `done` counts the heads of all batch entries that are finished, for whoever shows
/// progress.

/// acceptance(), bit for bit. A head without a wanted row costs nothing.
Acceptance acceptance_by_heads(const Problem& problem, const Values& values,
                               const PrecisionPath& path, Strength at_most = Strength::quantised,
                               const std::vector<bool>& wanted = {},
                               std::atomic<Index>* done = nullptr);

/// certified_attention(), bit for bit.
Certified certified_by_heads(const Problem& problem, const Values& values,
                             std::atomic<Index>* done = nullptr);

/// exact_attention(), bit for bit, and certified_digits().
struct ExactTruth {
  Truth truth;
  int digits = 0;
};
ExactTruth exact_by_heads(const Problem& problem, const Values& values, Digits digits,
                          std::atomic<Index>* done = nullptr);

}  // namespace attest
