// Four tests that share a rate of false alarms. README.md, "Growth".
#include "reference/statistics/growth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/statistics/tails.hpp"

namespace attest {
namespace {

using namespace statistics;

constexpr double kFalseAlarm = 1e-6;
constexpr double kShare = kFalseAlarm / 4;  // of size and bias of cells, size and count of all
constexpr double kPower = 0.9;

/// Welch's: two means, their errors from as many rows each, and the tail of their difference.
double chance_of_more(const RowMean& before, Index rows_before, const RowMean& after,
                      Index rows_after) {
  const double a = before.error * before.error, b = after.error * after.error;
  if (a + b == 0) return after.mean > before.mean ? 0 : 1;
  const double degrees =
      (a + b) * (a + b) /
      (a * a / static_cast<double>(rows_before - 1) + b * b / static_cast<double>(rows_after - 1));
  return student_tail((after.mean - before.mean) / std::sqrt(a + b), degrees);
}

/// A mean's logarithm, with the error of that. Domain: mean > 0.
RowMean logarithm(const RowMean& mean) {
  return {std::log(mean.mean), mean.error / mean.mean};
}

RowMean negative(const RowMean& mean) {
  return {-mean.mean, mean.error};
}

void compare_cell(const ComparedCell& cell, double rate, Growth& growth) {
  const ErrorSummary &a = cell.before, &b = cell.after;
  if (a.square.mean > 0 && b.square.mean > 0) {
    const double chance = chance_of_more(logarithm(a.square), a.rows, logarithm(b.square), b.rows);
    if (chance <= rate) {
      growth.grown.push_back(
          {cell.name, "size", std::sqrt(a.square.mean), std::sqrt(b.square.mean), chance});
    }
  } else if (b.square.mean > 0) {  // it was exact
    growth.grown.push_back({cell.name, "size", 0, std::sqrt(b.square.mean), 0});
  }
  if (std::fabs(b.inward.mean) <= std::fabs(a.inward.mean)) return;
  const double chance =
      b.inward.mean > 0 ? chance_of_more(a.inward, a.rows, b.inward, b.rows)
                        : chance_of_more(negative(a.inward), a.rows, negative(b.inward), b.rows);
  if (2 * chance <= rate) {  // either sign would have been noticed
    growth.grown.push_back({cell.name, "bias", a.inward.mean, b.inward.mean, 2 * chance});
  }
}

/// Over cells: the mean of ln(after / before), and in how many it is positive.
void compare_together(const std::vector<double>& logarithms, Growth& growth) {
  const RowMean mean = row_mean(logarithms);
  const auto count = static_cast<double>(logarithms.size());
  growth.factor = std::exp(mean.mean);
  growth.factor_error = mean.error;
  growth.least_factor = std::numeric_limits<double>::infinity();
  if (logarithms.size() >= 2) {
    const double reach = student_limit(kShare, count - 1) + student_limit(1 - kPower, count - 1);
    growth.least_factor = std::exp(reach * mean.error);
    const double chance = mean.error > 0 ? student_tail(mean.mean / mean.error, count - 1) : 1;
    if (chance <= kShare) growth.grown.push_back({"", "size", 1, growth.factor, chance});
  }
  int more = 0, differ = 0;
  for (double logarithm : logarithms) {
    differ += logarithm != 0 ? 1 : 0;
    more += logarithm > 0 ? 1 : 0;
  }
  const double chance = coin_tail(more, differ);
  if (differ > 0 && chance <= kShare) {
    growth.grown.push_back({"", "count", differ / 2.0, static_cast<double>(more), chance});
  }
}

}  // namespace

Growth growth_of(const std::vector<ComparedCell>& cells) {
  Growth growth;
  growth.false_alarm = kFalseAlarm;
  std::vector<const ComparedCell*> compared;
  for (const ComparedCell& cell : cells) {
    if (cell.before.rows >= 2 && cell.after.rows >= 2) compared.push_back(&cell);
  }
  growth.cells = static_cast<Index>(compared.size());
  std::vector<double> logarithms;
  for (const ComparedCell* cell : compared) {
    const double before = cell->before.square.mean, after = cell->after.square.mean;
    if (before != after) ++growth.changed;
    if (before > 0 && after > 0) logarithms.push_back(std::log(after / before) / 2);
    compare_cell(*cell, kShare / static_cast<double>(compared.size()), growth);
  }
  compare_together(logarithms, growth);
  return growth;
}

}  // namespace attest
