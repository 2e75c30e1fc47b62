// The few operations on errors from which the bound is made. Every constant is in constants.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/constants.hpp"
#include "reference/formats.hpp"
#include "reference/subject.hpp"

namespace attest::bound {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;  // ln 2 to double

/// (1 + u)^n - 1: what n roundings can do to a number. Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd ed., lemma 3.1, without its simplification to n u / (1 - n u).
inline double roundings(double n) {
  return std::expm1(n * std::log1p(kU));
}

/// What one step of tensor cores may lose: relative to the largest magnitude in it, and relative to
/// the sum that it leaves.
struct Step {
  double align, truncate;
};
inline Step step_of(Format operand) {
  return bytes_of(operand) == 1 ? Step{kAlignRoundings8 * kU, kTruncateRoundings8 * kU}
                                : Step{kAlignRoundings * kU, kTruncateRoundings * kU};
}
/// The operand of P V that decides how tensor cores add.
inline Format value_operand(const PrecisionPath& path, Format input) {
  return bytes_of(path.p_format) < bytes_of(input) ? path.p_format : input;
}

/// What happens to the terms of a sum of `products` products, none of which is further than `span`
/// places from another: roundings of f32 operations, or of steps of tensor cores. A step without a
/// product that counts changes nothing, so there are no more of them than products.
inline double sum_roundings(const PrecisionPath& path, Format operand, double products,
                            double span) {
  if (path.tensor_step == 0) return products;
  const double unit = bytes_of(operand) == 1 ? kTensorStepRoundings8 : kTensorStepRoundings;
  return unit * std::min(products, std::ceil(span / static_cast<double>(path.tensor_step)) + 1);
}

/// The magnitude by which tensor cores align: subnormal operands count as the smallest normal one.
inline double aligned(Format format, double operand) {
  return operand == 0 ? 0 : std::max(std::fabs(operand), smallest_normal(format));
}

/// The relative error of the exponential as an error of its argument; 1 or more says nothing.
inline double as_exponent(double relative_error) {
  return relative_error < 1 ? -std::log1p(-relative_error) : kInfinity;
}

/// What a subject declares may be anything; less than `least` is not believed, NaN is no promise.
inline double declared(double error, double least) {
  return std::isnan(error) ? kInfinity : std::max(error, least);
}

/// Roundings of the reference that the weights of one block use.
inline double reference_roundings(const PrecisionPath& path) {
  return kReferenceRoundings + (path.p_scale_log2 == 0 ? 0 : kPShiftRoundings);
}

/// In nats: by how much a weight may exceed 1 when it is cast, and what a factor adds to its
/// exponent.
inline double extra_exponent(const PrecisionPath& path) {
  return kLn2 *
         (declared(path.rescale_threshold_log2, 0) + declared(std::fabs(path.p_scale_log2), 0));
}

/// Relative error of ALiBi's term, or of what it moves all logits by.
inline double alibi_error(const PrecisionPath& path) {
  return kAlibiRoundings * kU + declared(path.division_error, kU);
}

/// What one rounding of a score does to it: relative, and where it is subnormal.
inline double score_roundoff(const PrecisionPath& path) {
  return path.scores_format == Format::f32 ? 0 : unit_roundoff(path.scores_format);
}
inline double score_step(const PrecisionPath& path) {
  return path.scores_format == Format::f32 ? 0 : ulp(path.scores_format, 0) / 2;
}

/// What a weight may be when it is cast, but for the exponential's error.
inline double largest_weight(const PrecisionPath& path) {
  return std::exp2(declared(path.rescale_threshold_log2, 0) + path.p_scale_log2);
}

/// What an absolute error among weights or their sums may be relative to a row sum: larger where
/// weights are scaled down, and where a factor that is lost meets weights above 1.
inline double met_in_units(const PrecisionPath& path) {
  return std::exp2(declared(path.rescale_threshold_log2, 0)) /
         std::min(1.0, std::exp2(path.p_scale_log2));
}

/// Where infinite declarations meet zeros no number comes out, and no promise either.
inline double promise(double bound) {
  return std::isnan(bound) ? kInfinity : bound;
}

}  // namespace attest::bound
