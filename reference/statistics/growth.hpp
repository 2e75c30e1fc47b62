// Whether errors grew between two runs of the same cells, from their summaries alone: cell by cell,
// and over all cells together, where a growth too small for any one of them shows. README.md,
// "Growth". It knows nothing of how cells were run or stored.
#pragma once
#include <string>
#include <vector>

#include "reference/statistics/summary.hpp"

namespace attest {

struct ComparedCell {
  std::string name;
  ErrorSummary before, after;
};

/// A test that says that something grew: "size" or "bias" of a cell; of all cells together "size",
/// or "count" of the cells in which it grew, with an empty name.
struct Grown {
  std::string name, test;
  double before = 0, after = 0;  // root mean square error or mean error inward, in row ulps; of all
                                 // cells 1 and the factor; of a count the halves and the cells
  double chance = 1;             // of as much in equals
  bool operator==(const Grown&) const = default;
};

struct Growth {
  Index cells = 0, changed = 0;  // compared; of those, whose mean square is not the same
  double factor = 1;             // of the root mean square error, geometric mean over cells
  double factor_error = 0;       // standard error of its logarithm
  std::vector<Grown> grown;      // empty: nothing did that could be seen
  double false_alarm = 0;        // how likely two equals are to have one
  double least_factor =
      0;  // together: would have been seen nine times in ten; infinity: none would
};

/// Domain: summaries of the same cells, of two rows or more each; others are not compared.
Growth growth_of(const std::vector<ComparedCell>& cells);

}  // namespace attest
