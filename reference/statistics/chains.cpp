// Straight loops over lanes without a branch, for the compiler to vectorise.
#include "reference/statistics/chains.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace attest::statistics {
namespace {

constexpr double kUlp = 0x1p-23;         // of f32 in [1, 2)
constexpr double kUniform = 1.0 / 12.0;  // variance of what is uniform on an interval of length 1
constexpr std::size_t kTogether = 64;    // lanes whose state stays in the nearest cache

double towards_zero(double size, double of) {
  return of > 0 ? -size : of < 0 ? size : 0.0;
}

}  // namespace

double binade(double number) {
  constexpr std::uint64_t kExponent = 0x7ff0000000000000;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) & kExponent);
}

double last_bit(double number) {
  if (number == 0 || !std::isfinite(number)) return Chains::kNothing;
  const double ulp = binade(number) * kUlp;
  const auto whole = static_cast<std::int64_t>(std::fabs(number) / ulp);  // below 2^24
  return ulp * static_cast<double>(whole & -whole);
}

void Chains::add(const Factor& factor) {
  const std::size_t lanes = sum.size();
  for (std::size_t n = 0; n < lanes; ++n) {
    sum[n] += factor.number * factor.others[n];
    const double exact =
        std::min(last[n], factor.last * static_cast<double>(factor.others_last[n]));
    const double ulp = binade(sum[n]) * kUlp;
    variance[n] += ulp > exact ? (ulp * ulp + 2 * exact * exact) * kUniform : 0.0;
    last[n] = std::max(exact, ulp);
  }
}

void Chains::step(std::span<const Factor> factors, const TensorCore& core, double least,
                  double least_other) {
  const double kept = std::ldexp(1.0, -core.kept), result = std::ldexp(1.0, 1 - core.precision);
  for (std::size_t first = 0; first < sum.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, sum.size() - first);
    double* const s = sum.data() + first;
    double* const m = mean.data() + first;
    double* const v = variance.data() + first;
    double* const g = last.data() + first;
    std::array<double, kTogether> cut, exact;  // place of the last bit that is kept; that is left
    for (std::size_t n = 0; n < count; ++n) cut[n] = binade(s[n]);
    for (const Factor& factor : factors) {
      const double largest = std::max(binade(factor.number), least);
      const double* const others = factor.others + first;
      for (std::size_t n = 0; n < count; ++n) {
        cut[n] = std::max(cut[n], largest * std::max(binade(others[n]), least_other));
      }
    }
    for (std::size_t n = 0; n < count; ++n) {
      cut[n] *= kept;
      const bool loses = s[n] != 0 && g[n] < cut[n], gone = std::fabs(s[n]) < cut[n];
      m[n] += !loses ? 0.0 : gone ? -s[n] : towards_zero((cut[n] - g[n]) / 2, s[n]);
      v[n] += loses && !gone ? (cut[n] * cut[n] - g[n] * g[n]) * kUniform : 0.0;
      exact[n] = std::max(g[n], cut[n]);
    }
    for (const Factor& factor : factors) {
      const double* const others = factor.others + first;
      const float* const others_last = factor.others_last + first;
      for (std::size_t n = 0; n < count; ++n) {
        const double product = factor.number * others[n];
        const double bit = factor.last * static_cast<double>(others_last[n]);
        const bool loses = bit < cut[n], gone = std::fabs(product) < cut[n];
        m[n] += !loses ? 0.0 : gone ? -product : towards_zero(cut[n] / 2, product);
        v[n] += loses && !gone ? (cut[n] * cut[n] - 4 * bit * bit) * kUniform : 0.0;
        exact[n] = std::min(exact[n], std::max(bit, cut[n]));
        s[n] += product;
      }
    }
    for (std::size_t n = 0; n < count; ++n) {
      const double ulp = binade(s[n]) * result;
      const bool loses = ulp > exact[n];
      m[n] += loses ? towards_zero((ulp - exact[n]) / 2, s[n]) : 0.0;
      v[n] += loses ? (ulp * ulp - exact[n] * exact[n]) * kUniform : 0.0;
      g[n] = std::max(exact[n], ulp);
    }
  }
}

void Chains::scale(double factor) {
  for (std::size_t n = 0; n < sum.size(); ++n) {
    sum[n] *= factor;
    mean[n] *= factor;
    const double ulp = binade(sum[n]) * kUlp;
    variance[n] = variance[n] * factor * factor + ulp * ulp * kUniform;
    last[n] = sum[n] != 0 ? ulp : kNothing;
  }
}

}  // namespace attest::statistics
