// By heads: what is accepted, of one head after another on as many threads as there are. The
// numbers are those of acceptance(); only the time differs.
#pragma once
#include <atomic>

#include "reference/bound/acceptance.hpp"

namespace attest {

/// acceptance(), bit for bit. `done` counts the heads of all batch entries that are finished, for
/// whoever shows progress.
Acceptance acceptance_by_heads(const Problem& problem, const Values& values,
                               const PrecisionPath& path, Strength at_most = Strength::quantised,
                               std::atomic<Index>* done = nullptr);

}  // namespace attest
