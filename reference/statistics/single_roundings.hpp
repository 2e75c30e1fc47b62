// Variances of single roundings, of which everything else is made. README.md, "One rounding".
#pragma once
#include <algorithm>
#include <cmath>

#include "reference/bound/constants.hpp"
#include "reference/formats.hpp"
#include "reference/precision.hpp"

namespace attest::statistics {

/// Of what is uniform on an interval of length 1.
inline constexpr double kUniform = 1.0 / 12;

/// Of a rounding to nearest over (u |x|)^2, averaged over significands m with density 1 / (m ln 2),
/// as those of products are (Benford): (2 / m)^2 / 12 has the mean 1 / (8 ln 2).
inline constexpr double kRounding = 0.18033688011112042;

/// Of a rounding to f32, of a number of which only the size is known.
inline double rounding(double number) {
  const double size = bound::kU * number;
  return kRounding * size * size;
}

/// Of a rounding to `format` at `number`.
inline double rounding(Format format, double number) {
  const double gap = ulp(format, number);
  return gap * gap * kUniform;
}

/// What a declared error has beyond one rounding; 0 where it has not.
inline double beyond_rounding(double error) {
  return error <= bound::kFaithful ? 0 : error;
}

/// The declared error of dividing by the row sum: parts of a split row are divided before they are
/// combined, and once more after.
inline double division_error(const Problem& problem, const PrecisionPath& path) {
  return beyond_rounding(path.division_error) * (problem.num_splits > 1 ? 2 : 1);
}

/// Of an operation with a declared error: of numbers that are within it none vary more than those
/// that are at its ends. Without one it is a rounding.
inline double declared_variance(double error) {
  return error <= bound::kFaithful ? rounding(1) : error * error;
}

}  // namespace attest::statistics
