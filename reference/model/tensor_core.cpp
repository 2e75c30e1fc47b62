// One group after another, in integers. The header names the sources.
#include "reference/model/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr int kNothing = -(1 << 28);  // the exponent of 0: below any other, also when added to it
constexpr int kSpecial = 1 << 20;     // of infinities and NaN
constexpr int kLeast = -126;          // of normal f32

/// Special: subnormal doubles never come here.
int exponent_of(double number) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(number) >> 52 & 0x7ff) - 1023;
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// total * 2^unit, truncated to the precision of an accumulator.
double cut(std::int64_t total, int unit, int precision) {
  const auto magnitude = static_cast<std::uint64_t>(total < 0 ? -total : total);
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  const int dropped = std::max(exponent, kLeast) - (precision - 1) - unit;
  if (dropped >= 64) return 0;
  const std::uint64_t kept = dropped > 0 ? magnitude >> dropped << dropped : magnitude;
  const double result = std::ldexp(static_cast<double>(kept), unit);
  const double bounded = result < 0x1p128 ? result : std::numeric_limits<double>::infinity();
  return total < 0 ? -bounded : bounded;
}

double sum_of_specials(double sum, const double* a, const double* b, const int* a_exponent,
                       const int* b_exponent, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) {
    if (a_exponent[n] != kNothing && b_exponent[n] != kNothing) sum += a[n] * b[n];
  }
  return sum;
}

double add_group(const TensorCore& core, double sum, const double* a, const double* b,
                 const int* a_exponent, const int* b_exponent, std::size_t count) {
  int largest = sum == 0 ? kNothing : std::max(exponent_of(sum), kLeast);
  int top = 0;
  for (std::size_t n = 0; n < count; ++n) {
    largest = std::max(largest, a_exponent[n] + b_exponent[n]);
    top = std::max(top, std::max(a_exponent[n], b_exponent[n]));
  }
  if (top >= kSpecial || !std::isfinite(sum)) {
    return sum_of_specials(sum, a, b, a_exponent, b_exponent, count);
  }
  if (largest <= kNothing / 2) return 0;
  largest = std::max(largest, core.floor);
  const double scale = power_of_two(core.kept - largest);
  auto total = static_cast<std::int64_t>(sum * scale);  // a conversion truncates
  for (std::size_t n = 0; n < count; ++n) total += static_cast<std::int32_t>(a[n] * b[n] * scale);
  return total == 0 ? 0 : cut(total, largest - core.kept, core.precision);
}

}  // namespace

void Operands::resize(std::size_t count) {
  value.assign(count, 0.0);
  exponent.assign(count, kNothing);
}

void Operands::set(std::size_t at, double number, Format format) {
  value[at] = number;
  exponent[at] = number == 0 ? kNothing
                 : !std::isfinite(number)
                     ? kSpecial
                     : std::max(exponent_of(number), facts(format).exponent_min);
}

TensorCore tensor_core(Index step, Format a, Format b) {
  if (bytes_of(a) == 1 && bytes_of(b) == 1) {
    return {step, 13, 14, step > 16 ? -133 : -132};
  }
  if (step <= 4) return {step, 23, 24, -std::numeric_limits<std::int16_t>::max()};
  if (step <= 8) return {step, 24, 24, -132};
  return {step, 25, 24, -133};
}

double tensor_sum(const TensorCore& core, double sum, const Operands& a, std::size_t a_first,
                  const Operands& b, std::size_t b_first, std::size_t count) {
  const auto step = static_cast<std::size_t>(core.step);
  for (std::size_t n = 0; n < count; n += step) {
    sum = add_group(core, sum, a.value.data() + a_first + n, b.value.data() + b_first + n,
                    a.exponent.data() + a_first + n, b.exponent.data() + b_first + n,
                    std::min(step, count - n));
  }
  return sum;
}

}  // namespace attest
