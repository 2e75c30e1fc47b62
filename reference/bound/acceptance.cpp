// The truth and the bounds brought together. README, section Acceptance.
#include "reference/bound/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/order_free.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

double Accepted::low(std::size_t at) const {
  return rounded(format, centre[at] - radius[at]);
}

double Accepted::high(std::size_t at) const {
  return rounded(format, centre[at] + radius[at]);
}

bool Accepted::accepts(double got, std::size_t at) const {
  if (radius[at] == kInfinity) return true;
  if (std::isnan(centre[at])) return std::isnan(got);
  return low(at) <= got && got <= high(at);  // false for NaN, also in the radius
}

double Accepted::error_of(double got, std::size_t at) const {
  if (radius[at] == kInfinity) return 0;
  const double distance = std::fabs(got - centre[at]);
  if (!std::isfinite(centre[at]) || !std::isfinite(got)) return accepts(got, at) ? 0 : kInfinity;
  // Half of the gap to the neighbour on the centre's side, which below a power of two is smaller.
  const double beside =
      got > centre[at] ? std::nextafter(got, -kInfinity) : std::nextafter(got, kInfinity);
  return std::max(0.0, distance - std::min(ulp(format, got), ulp(format, beside)) / 2);
}

Acceptance acceptance(const Problem& problem, const Values& values, const PrecisionPath& path,
                      Strength) {
  const Truth truth = exact_attention(problem, values);
  const Bounds bounds = order_free_bounds(problem, values, path);
  return {{problem.output, truth.o, bounds.o_before},
          {Format::f32, truth.lse, bounds.lse},
          std::vector<Strength>(truth.lse.size(), Strength::order_free)};
}

}  // namespace attest
