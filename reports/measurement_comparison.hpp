// A measurement against an earlier one of the same cells: which got worse, by more than chance
// explains. Knows no file and no subject.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/statistics/growth.hpp"
#include "reports/measurement.hpp"

namespace attest {

/// In how many of all comparisons of equals anything is called worse or warned of for its rows, at
/// most.
inline constexpr double kFalseAlarmRate = 1e-6;

/// A row whose error, or whose bias over its error, changed by no more than this has not changed:
/// nobody would notice, and other hardware moves everything a little to one side.
inline constexpr double kUnnoticed = 0x1p-8;

/// Rows of O that both measured, of one cell or of all together.
struct RowsChange {
  double rms_before = 0, rms_now = 0;    // of the error, in row ulps
  double bias_before = 0, bias_now = 0;  // its mean away from zero, in row ulps
  Growth errors;                         // of their logarithms: `least` is that of a factor
  Growth bias;      // over the row's error, in the direction in which it now is
  Growth standing;  // rows whose bias is in that direction: where not most are, it is chance
  bool worse = false, better = false;  // by less than the rate allows as chance
  std::string why;                     // a sentence when one of the two is set
};

/// A cell that both have, by operation and case.
struct CellChange {
  std::size_t cell = 0;  // of the later measurement
  RowsChange rows;
  double margin_before = 0, margin_now = 0;
  bool same = false;    // all figures of O and LSE and of each row, to the last bit
  std::string warning;  // a sentence when the margin jumped
};

struct MeasurementComparison {
  std::vector<CellChange> changes;              // in the order of the later measurement
  RowsChange together;                          // the rows of all these cells
  double rate = 0;                              // each test's share of kFalseAlarmRate
  std::uint64_t only_before = 0, only_now = 0;  // cells that the other has not, or not measured
};
MeasurementComparison compared(const Measurement& before, const Measurement& now);

/// 1: a cell got worse, or all of them together did. 0: none did. 2: there is no cell that both
/// have.
int exit_code_of(const MeasurementComparison& comparison);

/// What changed, what it means, and what would have been seen, in `columns` columns.
std::string comparison_text(const MeasurementComparison& comparison, const Measurement& now,
                            int columns);

}  // namespace attest
