// A measurement against an earlier one of the same cells: which got worse, by more than chance
// explains. Knows no file and no subject.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/statistics/growth.hpp"
#include "reports/measurement.hpp"

namespace attest {

/// How often the rows of all cells together call a change worse that is none, at most.
inline constexpr double kFalseAlarmRate = 1e-6;

/// A cell that both have, by operation and case.
struct CellChange {
  std::size_t cell = 0;                  // of the later measurement
  double rms_before = 0, rms_now = 0;    // of the error of O, in row ulps
  double bias_before = 0, bias_now = 0;  // its mean away from zero, in row ulps
  double margin_before = 0, margin_now = 0;
  std::uint64_t rows = 0, changed = 0, larger = 0;  // rows of O; error not the same; error larger
  double chance = 1;                                // that so many rows got worse by chance
  bool worse = false, better = false;               // by less than the rate allows as chance
  bool warned = false;                              // the largest margin jumped
  std::string why;                                  // a sentence when one of the three is set
};

struct MeasurementComparison {
  std::vector<CellChange> changes;              // in the order of the later measurement
  Growth growth;                                // of the same cells, from their summaries
  std::uint64_t only_before = 0, only_now = 0;  // cells that the other has not, or not measured
};
MeasurementComparison compared(const Measurement& before, const Measurement& now);

/// 1: a cell got worse, or all of them together did. 0: none did. 2: there is no cell that both
/// have.
int exit_code_of(const MeasurementComparison& comparison);

/// What changed, and what it means, in `columns` columns.
std::string comparison_text(const MeasurementComparison& comparison, const Measurement& now,
                            int columns);

}  // namespace attest
