// Rows are compared in pairs, because both measurements saw the same values: when nothing but the
// order of roundings changed, a row's error grows as often as it shrinks, whatever its
// distribution. So the number of rows that grew is that of heads among as many tosses of a coin.
// A mean over rows that is not 0 may be chance too: before a bias is said to have grown, it must be
// one.
#include "reports/measurement_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reference/text.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

/// Tests of a cell: rows whose error grew, rows whose bias grew, rows beyond; and of all together
/// the first two. Each has its share of the rate.
constexpr double kTestsOfCell = 3, kTestsOfAll = 2;

/// Rows whose margin is larger than any was before. Where only roundings changed, each of the k
/// largest of both is as likely the one's as the other's, so that all are the later one's in at
/// most 2^-k of all cases.
std::uint64_t beyond(const std::vector<double>& now, double largest) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(now, [largest](double margin) { return margin > largest; }));
}

/// Of the two, which no order can be told from: whatever is made of a change with its help is as
/// likely to be positive as negative when the two are alike.
double size_of(double square_before, double square_now) {
  return std::sqrt((square_before + square_now) / 2);
}

double if_noticed(double change) {
  return std::fabs(change) <= kUnnoticed ? 0 : change;
}

std::vector<double> changes_of_errors(const RowFigures& before, const RowFigures& now) {
  std::vector<double> changes;
  for (std::size_t i = 0; i < before.square.size(); ++i) {
    const double a = before.square[i], b = now.square[i];
    changes.push_back(a == b ? 0 : if_noticed(std::log(b / a) / 2));
  }
  return changes;
}

std::vector<double> changes_of_bias(const RowFigures& before, const RowFigures& now, double sign) {
  std::vector<double> changes;
  for (std::size_t i = 0; i < before.inward.size(); ++i) {
    const double a = before.inward[i], b = now.inward[i];
    const double size = size_of(before.square[i], now.square[i]);
    changes.push_back(a == b ? 0 : if_noticed(sign * (b - a) / size));
  }
  return changes;
}

std::vector<double> bias_of(const RowFigures& rows, double sign) {
  std::vector<double> bias;
  for (std::size_t i = 0; i < rows.inward.size(); ++i) {
    const double size = std::sqrt(rows.square[i]);
    bias.push_back(rows.inward[i] == 0 ? 0 : sign * rows.inward[i] / size);
  }
  return bias;
}

double mean_of(const std::vector<double>& rows) {
  double sum = 0;
  for (double row : rows) sum += row;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string grew_text(const char* what, const char* grew, int rows, const Growth& growth) {
  return fmt::format("the {} {} in {} of {} rows that changed", what, grew, rows, growth.changed);
}

RowsChange change_of(const RowFigures& before, const RowFigures& now, double rate) {
  RowsChange change;
  change.rms_before = std::sqrt(mean_of(before.square));
  change.rms_now = std::sqrt(mean_of(now.square));
  change.bias_before = mean_of(before.inward);
  change.bias_now = mean_of(now.inward);
  change.errors = growth_of(changes_of_errors(before, now), rate);
  // Either sign would be noticed, so that each has half of the rate.
  const double sign = change.bias_now < 0 ? -1 : 1;
  change.bias = growth_of(changes_of_bias(before, now, sign), rate / 2);
  change.standing = growth_of(bias_of(now, sign), rate / 2);
  const bool biased = change.standing.chance <= rate / 2 &&
                      std::fabs(change.bias_now) > std::fabs(change.bias_before);
  if (change.errors.chance <= rate) {
    change.why = grew_text("error", "grew", change.errors.grown, change.errors);
  } else if (biased && change.bias.chance <= rate / 2) {
    change.why = grew_text("bias", "grew", change.bias.grown, change.bias);
  }
  change.worse = !change.why.empty();
  change.better = !change.worse && change.errors.chance_shrunk <= rate;
  if (change.better) {
    change.why =
        grew_text("error", "shrank", change.errors.changed - change.errors.grown, change.errors);
  }
  return change;
}

/// The largest margins of the sharpest bound that judged both cells, but for the quantised one:
/// that is used up as soon as one weight is rounded to the other side, and so jumps by itself.
void take_margins(const Cell& before, const Cell& now, CellChange& change) {
  for (const Strength strength : {Strength::running, Strength::order_free}) {
    const auto at = static_cast<std::size_t>(strength);
    if (before.o_bounds[at].elements == 0 || now.o_bounds[at].elements == 0) continue;
    change.margin_before = before.o_bounds[at].largest;
    change.margin_now = now.o_bounds[at].largest;
    return;
  }
}

/// Early warnings. The first is a plain reading of one number: in its logarithm the margin went
/// more than half of the way that was left to the bound.
void judge_margin(const Cell& before, const Cell& now, double rate, CellChange& change) {
  const bool far = change.margin_before > 0 &&
                   change.margin_now > std::sqrt(change.margin_before) &&
                   change.margin_now > change.margin_before;
  if (far) {
    change.warning =
        fmt::format("the largest margin went from {} to {}", short_number(change.margin_before),
                    short_number(change.margin_now));
  }
  const std::uint64_t above = beyond(now.rows.margin, before.o.margin);
  if (std::exp2(-static_cast<double>(above)) <= rate) {
    change.warning += fmt::format("{}{} rows use more of their bound than any row did",
                                  change.warning.empty() ? "" : "; ", above);
  }
}

void append(RowFigures& all, const RowFigures& rows) {
  all.square.insert(all.square.end(), rows.square.begin(), rows.square.end());
  all.inward.insert(all.inward.end(), rows.inward.begin(), rows.inward.end());
}

bool has_figures(const Cell& cell) {
  return cell.o.elements > 0;
}

}  // namespace

MeasurementComparison compared(const Measurement& before, const Measurement& now) {
  std::map<std::pair<Operation, std::string>, const Cell*> earlier;
  for (const Cell& cell : before.cells) {
    if (has_figures(cell)) earlier[{cell.operation, print(cell.test_case)}] = &cell;
  }
  std::vector<std::pair<const Cell*, std::size_t>> pairs;
  MeasurementComparison comparison;
  for (std::size_t i = 0; i < now.cells.size(); ++i) {
    const Cell& cell = now.cells[i];
    const auto found = earlier.find({cell.operation, print(cell.test_case)});
    const bool same = has_figures(cell) && found != earlier.end() &&
                      found->second->rows.square.size() == cell.rows.square.size();
    if (!same) {
      comparison.only_now += has_figures(cell) ? 1 : 0;
      continue;
    }
    pairs.emplace_back(found->second, i);
    earlier.erase(found);
  }
  comparison.only_before = earlier.size();
  comparison.rate =
      kFalseAlarmRate / (kTestsOfCell * static_cast<double>(pairs.size()) + kTestsOfAll);
  RowFigures all_before, all_now;
  for (const auto& [cell, i] : pairs) {
    const Cell& later = now.cells[i];
    CellChange& change = comparison.changes.emplace_back();
    change.cell = i;
    change.rows = change_of(cell->rows, later.rows, comparison.rate);
    change.same = cell->o == later.o && cell->lse == later.lse && cell->rows == later.rows;
    take_margins(*cell, later, change);
    judge_margin(*cell, later, comparison.rate, change);
    append(all_before, cell->rows);
    append(all_now, later.rows);
  }
  comparison.together = change_of(all_before, all_now, comparison.rate);
  return comparison;
}

int exit_code_of(const MeasurementComparison& comparison) {
  if (comparison.changes.empty()) return 2;
  const auto worse = [](const CellChange& change) { return change.rows.worse; };
  return comparison.together.worse || std::ranges::any_of(comparison.changes, worse) ? 1 : 0;
}

}  // namespace attest
