// Rows are compared in pairs, because both measurements saw the same values: when nothing but the
// order of roundings changed, a row's error grows as often as it shrinks, whatever its
// distribution. So the number of rows that grew is that of heads among as many tosses of a coin.
#include "reports/measurement_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reference/statistics/tails.hpp"
#include "reference/text.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

/// Heads and tosses: rows in which the number grew, among those in which it changed.
struct Tosses {
  int heads = 0, tosses = 0;

  double chance() const { return statistics::coin_tail(heads, tosses); }
  double chance_of_tails() const { return statistics::coin_tail(tosses - heads, tosses); }
};

Tosses grown(const std::vector<double>& before, const std::vector<double>& now) {
  Tosses tosses;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == now[i]) continue;
    ++tosses.tosses;
    tosses.heads += now[i] > before[i] ? 1 : 0;  // a NaN among them is neither
  }
  return tosses;
}

/// Rows whose margin is larger than any was before. Where only roundings changed, each of the k
/// largest of both is as likely the one's as the other's, so that all are the later one's in at
/// most 2^-k of all cases.
std::uint64_t beyond(const std::vector<double>& now, double largest) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(now, [largest](double margin) { return margin > largest; }));
}

/// Several tests look at each cell; each has its share of the rate.
constexpr double kTests = 3;  // rows whose error grew, rows whose bias grew, rows beyond

void judge_errors(const Cell& before, const Cell& now, double rate, CellChange& change) {
  const Tosses errors = grown(before.rows.square, now.rows.square);
  change.changed = static_cast<std::uint64_t>(errors.tosses);
  change.larger = static_cast<std::uint64_t>(errors.heads);
  change.chance = errors.chance();
  // The bias that grew: in the direction in which it now is larger than it was.
  std::vector<double> bias_before = before.rows.inward, bias_now = now.rows.inward;
  if (change.bias_now < 0) {
    for (auto* rows : {&bias_before, &bias_now}) {
      for (double& row : *rows) row = -row;
    }
  }
  const Tosses biases = grown(bias_before, bias_now);
  const bool biased = std::fabs(change.bias_now) > std::fabs(change.bias_before) &&
                      2 * biases.chance() <= rate;  // twice: either sign would have been noticed
  if (change.chance <= rate) {
    change.why =
        fmt::format("the error grew in {} of {} rows that changed", errors.heads, errors.tosses);
  } else if (biased) {
    change.chance = 2 * biases.chance();
    change.why =
        fmt::format("the bias grew in {} of {} rows that changed", biases.heads, biases.tosses);
  }
  change.worse = !change.why.empty();
  change.better = !change.worse && errors.chance_of_tails() <= rate;
  if (change.better) {
    change.why = fmt::format("the error shrank in {} of {} rows that changed",
                             errors.tosses - errors.heads, errors.tosses);
  }
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

/// Early warnings. The second is a plain reading of one number: in its logarithm the margin went
/// more than half of the way that was left to the bound.
void judge_margin(const Cell& before, const Cell& now, double rate, CellChange& change) {
  const std::uint64_t above = beyond(now.rows.margin, before.o.margin);
  const bool many = std::exp2(-static_cast<double>(above)) <= rate;
  const bool far = change.margin_before > 0 &&
                   change.margin_now > std::sqrt(change.margin_before) &&
                   change.margin_now > change.margin_before;
  change.warned = many || far;
  if (far) {
    if (!change.why.empty()) change.why += "; ";
    change.why += fmt::format("the largest margin went from {} to {}",
                              short_number(change.margin_before), short_number(change.margin_now));
  }
  if (many) {
    if (!change.why.empty()) change.why += "; ";
    change.why += fmt::format("{} rows use more of their bound than any row did", above);
  }
}

CellChange change_of(const Cell& before, const Cell& now, std::size_t number, double rate) {
  CellChange change;
  change.cell = number;
  change.rms_before = std::sqrt(before.o.square.mean);
  change.rms_now = std::sqrt(now.o.square.mean);
  change.bias_before = before.o.inward.mean;
  change.bias_now = now.o.inward.mean;
  take_margins(before, now, change);
  change.rows = now.rows.square.size();
  judge_errors(before, now, rate, change);
  judge_margin(before, now, rate, change);
  return change;
}

bool has_figures(const Cell& cell) {
  return cell.o.elements > 0;
}

std::uint64_t count(const MeasurementComparison& comparison, bool CellChange::*what) {
  return static_cast<std::uint64_t>(std::ranges::count_if(comparison.changes, what));
}

std::string growth_text(const Growth& growth) {
  std::string text;
  for (const Grown& grown : growth.grown) {
    text += fmt::format("{}: {} grew from {} to {} (chance {:.0e})\n",
                        grown.name.empty() ? "all cells together" : grown.name, grown.test,
                        short_number(grown.before), short_number(grown.after), grown.chance);
  }
  if (growth.changed > 0) {
    text += fmt::format("all cells together: error x {:.4f}", growth.factor);
    if (std::isfinite(growth.least_factor)) {
      text += fmt::format("; x {:.4f} would have been seen", growth.least_factor);
    }
    text += "\n";
  }
  return text;
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
  const double rate =
      kFalseAlarmRate / kTests / static_cast<double>(std::max<std::size_t>(1, pairs.size()));
  std::vector<ComparedCell> summaries;
  for (const auto& [cell, i] : pairs) {
    comparison.changes.push_back(change_of(*cell, now.cells[i], i, rate));
    summaries.push_back({fmt::format("cell {}", i + 1), cell->o, now.cells[i].o});
  }
  comparison.growth = growth_of(summaries);
  return comparison;
}

int exit_code_of(const MeasurementComparison& comparison) {
  if (comparison.changes.empty()) return 2;
  const bool grew = !comparison.growth.grown.empty();
  return grew || count(comparison, &CellChange::worse) > 0 ? 1 : 0;
}

std::string comparison_text(const MeasurementComparison& comparison, const Measurement& now,
                            int columns) {
  std::string text;
  if (comparison.changes.empty()) {
    return "nothing can be compared: the other measurement has none of these cells\n";
  }
  std::uint64_t same = 0;
  for (const CellChange& change : comparison.changes) {
    same += change.changed == 0 ? 1 : 0;
    if (change.why.empty()) continue;
    const std::string_view word = change.worse ? "worse" : change.warned ? "warning" : "better";
    text += fmt::format("cell {} {}: {}\n", change.cell + 1, word, change.why);
    text += fmt::format("  rms {} -> {}, bias {:+.2g} -> {:+.2g} row ulps, margin {} -> {}",
                        short_number(change.rms_before), short_number(change.rms_now),
                        change.bias_before, change.bias_now, short_number(change.margin_before),
                        short_number(change.margin_now));
    const std::string line = print(now.cells[change.cell].test_case);
    const bool fits =
        text.size() - text.rfind('\n') + line.size() + 2 <= static_cast<std::size_t>(columns);
    text += (fits ? "  " : "\n  ") + line + "\n";
  }
  text += growth_text(comparison.growth);
  text += fmt::format(
      "{} cells compared: {} worse, {} better, {} warned of, {} to the last digit the same",
      comparison.changes.size(), count(comparison, &CellChange::worse),
      count(comparison, &CellChange::better), count(comparison, &CellChange::warned), same);
  if (comparison.only_before + comparison.only_now > 0) {
    text += fmt::format("; {} cells are only in the earlier one, {} only in this one",
                        comparison.only_before, comparison.only_now);
  }
  return text + fmt::format("\nequals are called worse in {:.0e} of all comparisons at most\n",
                            kFalseAlarmRate + comparison.growth.false_alarm);
}

}  // namespace attest
