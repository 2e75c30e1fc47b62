// What a comparison of two measurements says: what changed and what that means, and, as much a part
// of the answer, how small a change it could have shown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/text.hpp"
#include "reports/measurement_comparison.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

std::string figures_text(const RowsChange& rows) {
  return fmt::format("rms {} -> {}, bias {:+.2g} -> {:+.2g} row ulps",
                     short_number(rows.rms_before), short_number(rows.rms_now), rows.bias_before,
                     rows.bias_now);
}

std::string cell_text(const CellChange& change, const Measurement& now, int columns) {
  const RowsChange& rows = change.rows;
  if (rows.why.empty() && change.warning.empty()) return {};
  const std::string_view word = rows.worse                ? "worse"
                                : !change.warning.empty() ? "warning"
                                                          : "better";
  const char* semicolon = rows.why.empty() || change.warning.empty() ? "" : "; ";
  std::string text = fmt::format("cell {} {}: {}{}{}\n", change.cell + 1, word, rows.why, semicolon,
                                 change.warning);
  const std::string figures =
      fmt::format("  {}, margin {} -> {}", figures_text(rows), short_number(change.margin_before),
                  short_number(change.margin_now));
  const std::string line = print(now.cells[change.cell].test_case);
  const bool fits = figures.size() + line.size() + 2 <= static_cast<std::size_t>(columns);
  return text + figures + (fits ? "  " : "\n  ") + line + "\n";
}

std::string range_text(double low, double high, const char* unit) {
  return low == high ? short_number(low) + unit
                     : fmt::format("{} to {}{}", short_number(low), short_number(high), unit);
}

double least_error(const RowsChange& rows) {
  return std::expm1(rows.errors.least + kUnnoticed);
}

/// It must be seen to have changed, and to be one. No bias is larger than the error it is part of.
double least_bias(const RowsChange& rows) {
  const double least = std::max(rows.bias.least + kUnnoticed, rows.standing.least);
  return least <= 1 ? least : INFINITY;
}

/// "5 to 32 % in one cell, 1.1 % in all together": of the cells in which anything would show.
std::string least_text(const MeasurementComparison& comparison,
                       double (*least_of)(const RowsChange&)) {
  constexpr double kPercent = 100;
  double low = INFINITY, high = 0;
  for (const CellChange& change : comparison.changes) {
    const double least = kPercent * least_of(change.rows);
    if (!std::isfinite(least)) continue;
    low = std::min(low, least);
    high = std::max(high, least);
  }
  std::string text;
  if (low <= high) text = range_text(low, high, " %") + " in one cell";
  const double all = kPercent * least_of(comparison.together);
  if (std::isfinite(all) && comparison.changes.size() > 1) {
    text += fmt::format("{}{} % in all together", text.empty() ? "" : ", ", short_number(all));
  }
  return text;
}

/// What the rows were able to show, and where they were too few to show anything.
std::string power_text(const MeasurementComparison& comparison) {
  std::string text;
  const std::string errors = least_text(comparison, least_error);
  const std::string bias = least_text(comparison, least_bias);
  if (!errors.empty()) {
    text += fmt::format("nine times in ten would have been seen: errors larger by {}", errors);
    text += bias.empty()
                ? "\n"
                : fmt::format(",\n  or a bias larger by that part of the error: {}\n", bias);
  }
  std::uint64_t blind = 0;
  int rows = 0;
  for (const CellChange& change : comparison.changes) {
    if (change.rows.errors.needed <= change.rows.errors.rows) continue;
    ++blind;
    rows = std::max(rows, change.rows.errors.rows);
  }
  if (blind > 0) {
    text += fmt::format(
        "{} cells have too few rows to be called worse by themselves: {} rows all grow by chance "
        "in {:.1e} of all cases; {} rows would be enough (--rows)\n",
        blind, rows, std::exp2(-rows), std::ceil(-std::log2(comparison.rate / 2)));
  }
  return text;
}

}  // namespace

std::string comparison_text(const MeasurementComparison& comparison, const Measurement& now,
                            int columns) {
  if (comparison.changes.empty()) {
    return "nothing can be compared: the other measurement has none of these cells\n";
  }
  std::string text;
  std::uint64_t worse = 0, better = 0, warned = 0, same = 0;
  for (const CellChange& change : comparison.changes) {
    worse += change.rows.worse ? 1 : 0;
    better += change.rows.better ? 1 : 0;
    warned += change.warning.empty() ? 0 : 1;
    same += change.same ? 1 : 0;
    text += cell_text(change, now, columns);
  }
  const RowsChange& together = comparison.together;
  if (!together.why.empty() && comparison.changes.size() > 1) {
    text += fmt::format("all cells together {}: {}\n  {}\n", together.worse ? "worse" : "better",
                        together.why, figures_text(together));
  }
  text += fmt::format(
      "{} cells compared: {} worse, {} better, {} warned of, {} with the same "
      "figures to the last bit",
      comparison.changes.size(), worse, better, warned, same);
  if (together.worse && worse == 0) text += "; all together worse";
  if (comparison.only_before + comparison.only_now > 0) {
    text += fmt::format("; {} cells are only in the earlier one, {} only in this one",
                        comparison.only_before, comparison.only_now);
  }
  text += fmt::format("\nequals are called worse in {:.0e} of all comparisons at most\n",
                      kFalseAlarmRate);
  return text + power_text(comparison);
}

}  // namespace attest
