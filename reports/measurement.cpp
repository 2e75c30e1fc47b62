// Measuring a cell: one certified truth, around which each bound is asked by itself how much of it
// was used.
#include "reports/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/ask.hpp"
#include "properties/fills.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "reference/formats.hpp"
#include "reference/statistics/z_tally.hpp"
#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double quantile(std::vector<double>& numbers, double share) {
  if (numbers.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(numbers.size())) - 1;
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

/// How much of one bound is used.
class Use {
 public:
  /// Of a number that this bound judges. Special: a number that must be met exactly uses nothing,
  /// or everything and more.
  void add(double got, const Accepted& elements, std::size_t at, const Extent4& where) {
    if (elements.radius[at] == kInfinity) return;
    const double margin = elements.margin_of(got, at);
    if (margins_.empty() || margin > largest_) {
      largest_ = margin;
      where_ = where;
    }
    margins_.push_back(margin);
  }

  BoundUse use() {
    BoundUse use{.elements = margins_.size(), .largest = largest_, .where = where_};
    use.median = quantile(margins_, 0.5);
    return use;
  }

 private:
  std::vector<double> margins_;
  double largest_ = 0;
  Extent4 where_{};
};

/// The same question to every bound: what of it do the numbers of `reply` use, in rows that it
/// judges?
void measure_bound(const Problem& problem, const Reply& reply, const Acceptance& accepted,
                   Strength strength, Cell& cell) {
  Use o, lse;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    const std::size_t row = row_number(problem, b, h, i);
    if (accepted.strength[row] != strength) return;
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      const Index flat = reply.o.offset(b, h, i, c);
      o.add(reply.o.at(flat), accepted.o, static_cast<std::size_t>(flat), {b, h, i, c});
    }
    if (!wants_lse(problem)) return;
    lse.add(reply.lse.at(static_cast<Index>(row)), accepted.lse, row, {b, h, i, 0});
  });
  cell.o_bounds[static_cast<std::size_t>(strength)] = o.use();
  cell.lse_bounds[static_cast<std::size_t>(strength)] = lse.use();
}

struct Margins {
  double o = 0, lse = 0;  // the largest
};

/// What RowFigures keeps of a row of O, and its part of o_to_rms.
void measure_row(const Problem& problem, const Reply& reply, const std::vector<double>& truth,
                 Index first, Cell& cell, std::vector<double>& to_rms) {
  double size = 0, square = 0, inward = 0, count = 0;
  std::vector<double> errors;
  for (Index flat = first; flat < first + problem.head_dim_v; ++flat) {
    const double true_o = truth[static_cast<std::size_t>(flat)], got = reply.o.at(flat);
    if (!std::isfinite(true_o) || !std::isfinite(got)) continue;
    const double error = got - true_o;
    errors.push_back(std::fabs(error));
    size += true_o * true_o;
    square += error * error;
    inward += std::copysign(error, error * true_o);
    ++count;
  }
  const double rms = std::sqrt(size / std::max(1.0, count));
  const double unit = 2 * unit_roundoff(problem.output) * rms;
  const auto over = [](double error, double by) { return error == 0 ? 0 : error / by; };
  cell.rows.square.push_back(over(square, count * unit * unit));
  cell.rows.inward.push_back(over(inward, count * unit));
  for (const double error : errors) to_rms.push_back(over(error, rms));
}

void measure_errors(const Problem& problem, const Values& values, const Reply& reply,
                    const Truth& truth, const Margins& margins, Cell& cell) {
  ErrorTally o, lse;
  o.add(problem, values, reply.o, truth.o, margins.o);
  Problem as_o = problem;
  as_o.head_dim_v = 1;
  as_o.output = Format::f32;
  if (wants_lse(problem)) lse.add(as_o, values, reply.lse, truth.lse, margins.lse);
  cell.o = o.summary();
  cell.lse = lse.summary();
  std::vector<double> to_rms;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    measure_row(problem, reply, truth.o, reply.o.offset(b, h, i, 0), cell, to_rms);
  });
  cell.o_to_rms = {quantile(to_rms, 0.5), quantile(to_rms, 0.9), quantile(to_rms, 0.99),
                   quantile(to_rms, 1)};
}

/// The verdict, and the margin of each row.
Margins judge(const Problem& problem, const Reply& reply, const Acceptance& accepted, Cell& cell) {
  Judge judge;
  Margins largest;
  Use of_lse;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    Use of_row;
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      const Index flat = reply.o.offset(b, h, i, c);
      judge.accepted(reply.o.at(flat), accepted.o, flat, {b, h, i, c}, "o");
      of_row.add(reply.o.at(flat), accepted.o, static_cast<std::size_t>(flat), {b, h, i, c});
    }
    cell.rows.margin.push_back(of_row.use().largest);
    largest.o = std::max(largest.o, cell.rows.margin.back());
    if (!wants_lse(problem)) return;
    const Index row = reply.lse.offset(b, h, i, 0);
    judge.accepted(reply.lse.at(row), accepted.lse, row, {b, h, i, 0}, "lse");
    of_lse.add(reply.lse.at(row), accepted.lse, static_cast<std::size_t>(row), {b, h, i, 0});
  });
  largest.lse = of_lse.use().largest;
  cell.verdict = judge.verdict("no row to judge, or none with a finite bound");
  return largest;
}

/// How likely such errors are, where a model of them is calibrated.
void measure_likelihood(const Problem& problem, const Values& values, const PrecisionPath& path,
                        const Reply& reply, Index tensor_step, Cell& cell) {
  if (path.tensor_step > 0 && tensor_step == 0) {
    cell.o.uncalibrated = "which tensor cores it ran on is not known";
    return;
  }
  ZTally z;
  z.add(problem, values, path, reply.o, path.tensor_step > 0 ? tensor_step : 0);
  cell.o.z = z.summary();
  cell.o.uncalibrated = cell.o.z ? "" : z.why_not();
}

/// The truth, and what is accepted around it.
struct Judged {
  Certified truth;
  Acceptance strongest;
};

/// What is accepted, with the truth's own radius in the interval.
Acceptance accepted_around(const Certified& certified, const Problem& problem, const Values& values,
                           const PrecisionPath& path, Strength at_most = Strength::quantised) {
  Acceptance accepted = acceptance_around(certified.truth, problem, values, path, at_most);
  for (std::size_t i = 0; i < accepted.o.radius.size(); ++i) {
    accepted.o.radius[i] += certified.o_radius[i];
  }
  for (std::size_t i = 0; i < accepted.lse.radius.size(); ++i) {
    accepted.lse.radius[i] += certified.lse_radius[i];
  }
  return accepted;
}

/// The truth to a part of the bound that nobody would notice: Ziv's strategy, one round of it.
Judged judged(const Problem& problem, const Values& values, const PrecisionPath& path) {
  constexpr double kUnnoticed = 0x1p-8;  // of the bound
  Judged judged{certified_attention(problem, values), {}};
  judged.strongest = accepted_around(judged.truth, problem, values, path);
  Demand demand{judged.strongest.o.radius, judged.strongest.lse.radius};
  bool met = true;
  const auto ask = [&met](std::vector<double>& radii, const std::vector<double>& truths) {
    for (std::size_t i = 0; i < radii.size(); ++i) {
      radii[i] *= kUnnoticed;
      met = met && truths[i] <= radii[i];
    }
  };
  ask(demand.o, judged.truth.o_radius);
  ask(demand.lse, judged.truth.lse_radius);
  if (met) return judged;
  judged.truth = certified_attention(problem, values, demand);
  judged.strongest = accepted_around(judged.truth, problem, values, path);
  return judged;
}

}  // namespace

Cell measure_cell(const Subject& subject, Operation operation, const Case& test_case,
                  Index tensor_step) {
  const Problem& problem = test_case.problem;
  Cell cell;
  cell.operation = operation;
  cell.test_case = test_case;
  const Values values = make_values(test_case);
  const Answer answer = ask(subject, operation, problem, values);
  if (answer.instead) {
    cell.verdict = *answer.instead;
    return cell;
  }
  const PrecisionPath path = precision_of(subject, operation, problem);
  const Judged truth = judged(problem, values, path);
  cell.tiers = truth.truth.rows_of_tiers();
  const Margins margins = judge(problem, answer.reply, truth.strongest, cell);
  const auto used = truth.strongest.strength.empty()
                        ? Strength::order_free
                        : *std::ranges::max_element(truth.strongest.strength);
  measure_bound(problem, answer.reply, truth.strongest, used, cell);
  for (int level = 0; level < static_cast<int>(used); ++level) {
    const auto weaker = static_cast<Strength>(level);
    measure_bound(problem, answer.reply,
                  accepted_around(truth.truth, problem, values, path, weaker), weaker, cell);
  }
  measure_errors(problem, values, answer.reply, truth.truth.truth, margins, cell);
  measure_likelihood(problem, values, path, answer.reply, tensor_step, cell);
  cell.stages = attribution_of(problem, values, path, path.tensor_step > 0 ? tensor_step : 0);
  return cell;
}

namespace {

/// The cells that one sentence is about.
struct Counted {
  std::uint64_t cells = 0;
  const Cell* first = nullptr;

  void add(const Cell& cell) {
    if (cells++ == 0) first = &cell;
  }
};

/// The command that measures the cell alone: an alarm is of all its rows, and no property's.
std::string measure_line(const Measurement& measurement, const Cell& cell) {
  std::string line = command_name() + " measure --case ";
  line += shell_quoted(fmt::format("{} {}", name_of(cell.operation), print(cell.test_case)));
  if (!measurement.subject.empty()) line += " --subject " + shell_quoted(measurement.subject);
  EmulationOptions emulation = measurement.emulation;
  emulation.checks = EmulationOptions{}.checks;  // a measurement runs without
  return line + words_of(emulation, false);
}

}  // namespace

MeasurementEnd end_of(const Measurement& measurement) {
  std::uint64_t elements = 0;
  Counted measured, wrong, alarming, declined;
  for (const Cell& cell : measurement.cells) {
    const Outcome outcome = cell.verdict.outcome;
    if (outcome == Outcome::violated || outcome == Outcome::faulted) wrong.add(cell);
    if (cell.o.z && !cell.o.z->alarms.empty()) alarming.add(cell);
    if (outcome == Outcome::declined) declined.add(cell);
    if (cell.o.elements == 0) continue;
    measured.add(cell);
    elements += static_cast<std::uint64_t>(cell.o.elements);
  }
  const std::size_t all = measurement.cells.size();
  if (wrong.cells > 0) {
    const bool decode = wrong.first->operation == Operation::decode;
    return {1,
            fmt::format("the subject is wrong in {} of {} cells, first: {}", wrong.cells, all,
                        one_line(wrong.first->verdict.why)),
            replay_line(measurement.subject, decode ? "decode_agreement" : "oracle_agreement",
                        wrong.first->test_case, measurement.emulation)};
  }
  if (alarming.cells > 0) {
    return {1,
            fmt::format("errors of {} of {} cells lie within their bounds but are not those of a "
                        "kernel that rounds as declared",
                        alarming.cells, all),
            measure_line(measurement, *alarming.first)};
  }
  if (measured.cells == 0) {
    std::string reason = "nothing was measured";
    if (declined.cells > 0) {
      reason += fmt::format(": the subject declined {} of {} cells, first: {}", declined.cells, all,
                            one_line(declined.first->verdict.why));
    }
    return {2, reason, ""};
  }
  std::string reason =
      fmt::format("measured {} numbers of O in {} cells; all lie within their bounds", elements,
                  measured.cells);
  if (declined.cells > 0)
    reason += fmt::format("; the subject declined {} of {}", declined.cells, all);
  return {0, reason, ""};
}

}  // namespace attest
