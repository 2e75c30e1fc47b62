// Tally: how one verdict changes a Run. Knows nothing of threads, drawing or shrinking.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "fuzz/check.hpp"
#include "fuzz/run.hpp"

namespace attest {

/// One empty tally per property, in the order given.
void open_tallies(Run& run, std::span<const Property* const> properties);

/// Which operations it has functions for.
void note_offered(Run& run, const Subject& subject);

/// Counts `seen` in run.tallies[property], and what the case tried and could have told. A case that
/// was declined or came out vacuous has tried nothing.
void count(Run& run, std::size_t property, const Case& test_case, const Observation& seen);

/// Draws that were declined, and why, before the case that is counted.
void count_redrawn(Run& run, std::size_t property, std::span<const std::string> declines);

/// Violated or faulted.
bool fails(const Observation& seen);

}  // namespace attest
