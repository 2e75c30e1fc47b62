// Counting heads. README.md, "Growth".
#include "reference/statistics/growth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/statistics/tails.hpp"

namespace attest {
namespace {

using namespace statistics;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPower = 0.9;

/// The least number that `share` of them do not exceed.
double quantile(std::vector<double> numbers, double share) {
  const double rank = std::ceil(share * static_cast<double>(numbers.size())) - 1;
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

/// A shift by `least` turns the change x of a row into a growth when x > -least. In equals x and -x
/// are alike, so that this is so in 1/2 + P(|x| < least) / 2 of the rows. What shift is there
/// already is the median.
double least_shift(const std::vector<double>& changes, int needed) {
  const auto rows = static_cast<int>(changes.size());
  if (needed > rows) return kInfinity;
  std::vector<double> sizes;
  for (double change : changes) sizes.push_back(std::isnan(change) ? -kInfinity : change);
  const double middle = quantile(sizes, 0.5);
  for (double& size : sizes) {
    size = std::fabs(size - middle);
    if (std::isnan(size)) size = kInfinity;  // both infinite
  }
  return quantile(sizes, 2 * share_for(needed, rows, kPower) - 1);
}

}  // namespace

Growth growth_of(const std::vector<double>& changes, double rate) {
  Growth growth;
  growth.rows = static_cast<int>(changes.size());
  for (double change : changes) {
    growth.changed += change != 0 ? 1 : 0;
    growth.grown += change > 0 ? 1 : 0;
  }
  growth.chance = coin_tail(growth.grown, growth.changed);
  growth.chance_shrunk = coin_tail(growth.changed - growth.grown, growth.changed);
  growth.needed = binomial_critical_value(rate, growth.rows);
  growth.least = least_shift(changes, growth.needed);
  return growth;
}

}  // namespace attest
