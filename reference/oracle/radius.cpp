// The steps and letters are those of notes/0002-certified.md.
#include "reference/oracle/radius.hpp"

#include <cmath>

namespace attest::oracle {
namespace {

// More than exp(-600), below which weights are left out, and than what underflow takes beside the
// smallest v.
constexpr double kVanished = 0x1p-700;

}  // namespace

double gamma(double roundings, double unit) {
  const double product = roundings * unit;
  return product < 0.5 ? product / (1 - product) : HUGE_VAL;
}

double logit_error(const Problem& problem, double unit, double inner, double bias, double alibi) {
  const double scale = std::fabs(static_cast<double>(problem.softmax_scale));
  const double t = scale * inner;
  double error = t * gamma(static_cast<double>(problem.head_dim + 1), unit);
  double size = t + error;
  if (problem.softcap > 0) {
    error += 7 * unit * problem.softcap;
    size = std::fmin(size, problem.softcap);
  }
  error += 3 * unit * (size + error + std::fabs(bias) + std::fabs(alibi));
  return error * kRoom;
}

RowRadius radius_of(const RowSums& sums, const Arithmetic& arithmetic) {
  const double largest = sums.largest_exponent + arithmetic.exponential;
  if (!(largest < 0.5)) return {HUGE_VAL, HUGE_VAL};
  // W3: expm1(A) <= A (1 + A) up to 1.
  const double mean = kRoom * (sums.exponents / sums.weights + arithmetic.exponential);
  const double moved = (mean * (1 + largest) + sums.terms * kVanished) * kRoom;
  if (!(moved < 0.75)) return {HUGE_VAL, HUGE_VAL};
  const double adding = gamma(sums.terms, arithmetic.unit);
  const double o = 2 * moved / (1 - moved) + 2 * adding / (1 - adding) + 2 * arithmetic.unit;
  const double sum = moved / (1 - moved) + adding / (1 - adding);
  return {o * kRoom, sum * kRoom};
}

}  // namespace attest::oracle
