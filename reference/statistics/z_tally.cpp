// Limits and what they would have let pass. README.md, "Tests", has the formulas in this order.
#include "reference/statistics/z_tally.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/statistics/calibration.hpp"
#include "reference/statistics/single_roundings.hpp"
#include "reference/statistics/tails.hpp"

namespace attest {
namespace {

using namespace statistics;

constexpr double kTotalLimit = 6;         // of |Z| and of chi-square's distance, in deviations
constexpr double kManyFalseAlarm = 1e-7;  // of all elements, and of all rows along all directions
constexpr Index kRowsLeast = 16;          // for a deviation taken from the rows themselves
constexpr double kPower = 0.9;

std::size_t index(Bias bias) {
  return static_cast<std::size_t>(bias);
}

/// Of the largest of `count` |z|, at kManyFalseAlarm, if their deviation is kDeviationMost.
double limit_of_many(Index count) {
  return kDeviationMost * normal_limit(kManyFalseAlarm / 2 / static_cast<double>(count));
}

}  // namespace

void ZTally::add(const Problem& problem, const Values& values, const PrecisionPath& path,
                 const Tensor& o, Index tensor_step) {
  if (const auto reason = uncalibrated(problem, values, path)) {
    reason_ = *reason;
    return;
  }
  add(problem, path, o, likely_errors(problem, values, path, tensor_step));
}

void ZTally::add(const Problem& problem, const PrecisionPath& path, const Tensor& o,
                 const LikelyErrors& likely) {
  const double division = division_error(problem, path);
  const double exponential = beyond_rounding(path.exp_error);
  const auto allow = [&](Bias bias, double variance) {
    common_[index(bias)] = std::max(common_[index(bias)], variance);
  };
  allow(Bias::scale, 2 * rounding(1));
  allow(Bias::exponential, exponential * exponential);
  allow(Bias::weights, division * division);
  for (std::size_t row = 0; row < likely.rows.size(); ++row) {
    if (likely.rows[row].keys > 0) add_row(problem, o, likely, row);
  }
}

void ZTally::add_row(const Problem& problem, const Tensor& o, const LikelyErrors& likely,
                     std::size_t row) {
  ++seen_rows_;
  const auto width = static_cast<std::size_t>(problem.head_dim_v);
  double largest = 0, squares = 0, largest_z = 0;
  std::array<double, kDirections> sums{};
  for (std::size_t at = row * width; at < (row + 1) * width; ++at) {
    const double error = o.at(static_cast<Index>(at)) - likely.o[at];
    largest = std::max(largest, std::fabs(likely.o[at]));
    const double z = (error - likely.mean[at]) / std::sqrt(likely.variance[at]);
    squares += z * z;
    largest_z = std::max(largest_z, std::fabs(z));
    for (std::size_t n = 0; n < kDirections; ++n) {
      sums[n] += (likely.negative[at] >> n & 1) != 0 ? -error : error;
    }
  }
  const LikelyRow& model = likely.rows[row];
  if (!std::isfinite(squares) || !calibrated(model, largest, problem.output)) return;
  ++rows_;
  elements_ += problem.head_dim_v;
  largest_ = std::max(largest_, largest_z);
  squares_.push_back(squares / static_cast<double>(width));
  for (std::size_t n = 0; n < kDirections; ++n) {
    const Projected& projected = model.projected[n];
    const double deviation = std::sqrt(projected.variance);
    along_[n].z.push_back((sums[n] - projected.mean) / deviation);
    for (std::size_t bias = 0; bias < kBiases; ++bias) {
      along_[n].response[bias] += projected.response[bias] / deviation;
    }
  }
}

/// Of the sum of a direction's z over the root of their number: 1, and what all rows share.
double ZTally::deviation(const Along& along) const {
  double variance = 1;
  for (std::size_t bias = 0; bias < kBiases; ++bias) {
    variance += common_[bias] * along.response[bias] * along.response[bias] /
                static_cast<double>(along.z.size());
  }
  return std::sqrt(variance);
}

Standardised ZTally::standardised(const Along& along) const {
  Standardised result;
  double sum = 0, squares = 0;
  for (double z : along.z) {
    sum += z;
    squares += z * z;
    result.largest = std::max(result.largest, std::fabs(z));
  }
  const auto count = static_cast<double>(along.z.size());
  result.total = sum / std::sqrt(count) / deviation(along);
  result.mean = sum / count;
  result.deviation = std::sqrt(std::max(0.0, squares / count - result.mean * result.mean));
  return result;
}

void ZTally::find_alarms(ZSummary& z) const {
  const auto test = [&](std::string_view name, double found, double limit) {
    if (found > limit) z.alarms.push_back({std::string(name), found, limit});
  };
  const std::array<const Standardised*, kDirections> directions = {
      &z.inward, &z.offset, &z.scattered, &z.sharper, &z.others};
  const double row_limit = limit_of_many(rows_ * static_cast<Index>(kDirections));
  for (std::size_t n = 0; n < kDirections; ++n) {
    test(kDirectionNames[n], std::fabs(directions[n]->total), kTotalLimit);
  }
  double row_largest = 0;
  for (const Standardised* one : directions) row_largest = std::max(row_largest, one->largest);
  test(kRowTest, row_largest, row_limit);
  test(kElementTest, z.largest, limit_of_many(elements_));
  z.false_alarm = static_cast<double>(kDirections) * 2 * normal_tail(kTotalLimit / kDeviationMost) +
                  2 * kManyFalseAlarm;
  if (rows_ < kRowsLeast) return;
  test(kChiSquareTest, z.chi_square,
       kDeviationMost * kDeviationMost + kTotalLimit * z.chi_square_error);
  z.false_alarm += student_tail(kTotalLimit, static_cast<double>(rows_ - 1));
}

void ZTally::find_power(ZSummary& z) const {
  // Beyond the limit, and by as much again as chance may take away.
  const double reach = kTotalLimit + kDeviationMost * normal_limit(1 - kPower);
  z.least_bias.fill(std::numeric_limits<double>::infinity());
  for (const Along& along : along_) {
    const double unit = std::sqrt(static_cast<double>(rows_)) * deviation(along);
    for (std::size_t bias = 0; bias < kBiases; ++bias) {
      if (along.response[bias] == 0) continue;
      z.least_bias[bias] =
          std::min(z.least_bias[bias], reach * unit / std::fabs(along.response[bias]));
    }
  }
  z.least_growth = std::numeric_limits<double>::infinity();
  // Its standard error grows with it: x - reach x e = limit of a deviation, x = growth^2.
  const double error = z.chi_square_error / z.chi_square;
  const double left = 1 - (kTotalLimit + normal_limit(1 - kPower)) * error;
  if (rows_ >= kRowsLeast && left > 0) {
    z.least_growth = kDeviationMost / std::sqrt(left * z.chi_square);
  }
}

std::optional<ZSummary> ZTally::summary() const {
  if (rows_ == 0) return {};
  ZSummary z;
  z.rows = rows_;
  z.elements = elements_;
  const RowMean square = row_mean(squares_);
  z.chi_square = square.mean;
  z.chi_square_error = square.error;
  z.largest = largest_;
  const auto of = [&](Direction direction) {
    return standardised(along_[static_cast<std::size_t>(direction)]);
  };
  z.inward = of(Direction::inward);
  z.offset = of(Direction::offset);
  z.scattered = of(Direction::scattered);
  z.sharper = of(Direction::sharper);
  z.others = of(Direction::others);
  find_alarms(z);
  find_power(z);
  return z;
}

std::string ZTally::why_not() const {
  if (rows_ > 0) return {};
  if (!reason_.empty()) return reason_;
  if (seen_rows_ == 0) return "no row sees a key and finite numbers";
  return "no row sees 16 keys, of which at least 4 carry it, with weights that differ and are its "
         "own";
}

}  // namespace attest
