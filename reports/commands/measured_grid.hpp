// The grid of `attest measure`: from the words of a command line to the cells that are measured.
// Knows neither subjects nor results.
#pragma once
#include <vector>

#include "reference/subject.hpp"
#include "reports/commands/commands.hpp"

namespace attest {

struct GridCell {
  Operation operation;
  Case test_case;
};

/// The user's own cases, or every combination of length, width, format, output and fill. Throws
/// Error naming option and word.
std::vector<GridCell> measured_grid(const MeasureCommand& options);

}  // namespace attest
