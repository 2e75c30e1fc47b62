// The number formats. One generic rounding serves all: a format is (p, emin, largest pattern),
// and counting up through the patterns of one sign counts up through its numbers.
#include "reference/formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace attest {
namespace {

// Sources: IEEE 754-2019 table 3.5 (f32, f16); bfloat16 is f32 cut to 16 bits; OCP 8-bit Floating
// Point Specification 1.0, table 1 (e4m3, e5m2).
constexpr std::array<FormatFacts, 6> kFacts{{
    {32, 24, -126, 0x1.fffffep127, true, 0x7fc00000, 0x7f7fffff},
    {16, 11, -14, 65504.0, true, 0x7e00, 0x7bff},
    {16, 8, -126, 0x1.fep127, true, 0x7fc0, 0x7f7f},
    {8, 4, -6, 448.0, false, 0x7f, 0x7e},
    {8, 3, -14, 57344.0, true, 0x7e, 0x7b},
    {8, 8, 7, 127.0, false, 0, 0x7f},
}};
constexpr std::array<Format, 5> kFloatFormats{Format::f32, Format::f16, Format::bf16, Format::e4m3,
                                              Format::e5m2};

constexpr int kDoubleFractionBits = 52;  // IEEE 754-2019 table 3.5, binary64
constexpr int kDoubleExponentMin = -1022;
constexpr std::uint64_t kDoubleHidden = std::uint64_t{1} << kDoubleFractionBits;

std::uint32_t sign_bit(const FormatFacts& format) {
  return 1U << (format.bits - 1);
}

// The pattern, sign clear, of a finite magnitude rounded to nearest even; it may exceed
// max_pattern, which is how overflow is seen.
std::uint64_t magnitude_pattern(const FormatFacts& format, std::uint64_t magnitude_bits) {
  int exponent = static_cast<int>(magnitude_bits >> kDoubleFractionBits);
  std::uint64_t significand = magnitude_bits & (kDoubleHidden - 1);
  if (exponent == 0) {
    exponent = kDoubleExponentMin;
  } else {
    exponent += kDoubleExponentMin - 1;
    significand |= kDoubleHidden;
  }
  const int binade = exponent > format.exponent_min ? exponent : format.exponent_min;
  const int shift = kDoubleFractionBits + 1 - format.precision + (binade - exponent);
  // A significand has 53 bits: shifted by 54 or more it is below half of the smallest number.
  if (shift > kDoubleFractionBits + 1) return 0;
  const std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const bool up = rest > half || (rest == half && (kept & 1) != 0);
  // `kept` carries the hidden bit into the exponent field; a subnormal has none and lands at 0.
  return (static_cast<std::uint64_t>(binade - format.exponent_min) << (format.precision - 1)) +
         kept + (up ? 1 : 0);
}

}  // namespace

const FormatFacts& facts(Format format) {
  return kFacts[static_cast<std::size_t>(format)];
}

std::span<const Format> float_formats() {
  return kFloatFormats;
}

double decode(Format format, std::uint32_t pattern) {
  if (format == Format::f32) {
    const auto number = static_cast<double>(std::bit_cast<float>(pattern));
    return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
  }
  if (format == Format::i8) return static_cast<std::int8_t>(pattern);
  const FormatFacts& its = facts(format);
  const std::uint32_t magnitude = pattern & (sign_bit(its) - 1);
  if (magnitude > its.max_pattern) {
    if (!its.has_infinity || magnitude != its.max_pattern + 1) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    const double infinity = std::numeric_limits<double>::infinity();
    return (pattern & sign_bit(its)) != 0 ? -infinity : infinity;
  }
  const int field = static_cast<int>(magnitude >> (its.precision - 1));
  const std::uint32_t hidden = 1U << (its.precision - 1);
  const std::uint32_t significand = (magnitude & (hidden - 1)) | (field == 0 ? 0 : hidden);
  const int exponent = its.exponent_min + (field == 0 ? 0 : field - 1) - (its.precision - 1);
  const double scale =
      std::bit_cast<double>(static_cast<std::uint64_t>(exponent - kDoubleExponentMin + 1)
                            << kDoubleFractionBits);  // 2^exponent
  const double number = static_cast<double>(significand) * scale;
  return (pattern & sign_bit(its)) != 0 ? -number : number;
}

std::uint32_t encode(Format format, double number) {
  const FormatFacts& its = facts(format);
  if (std::isnan(number)) return its.nan;
  if (format == Format::i8) {  // std::nearbyint: ties to even, the mode every program starts in
    const double whole = std::nearbyint(std::clamp(number, -its.max_finite, its.max_finite));
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(whole));
  }
  const std::uint32_t sign = std::signbit(number) ? sign_bit(its) : 0;
  const auto beyond = static_cast<std::uint32_t>(its.max_pattern + 1);  // infinity, or e4m3's NaN
  if (std::isinf(number)) return sign | beyond;
  const std::uint64_t pattern =
      magnitude_pattern(its, std::bit_cast<std::uint64_t>(std::fabs(number)));
  if (pattern <= its.max_pattern) return sign | static_cast<std::uint32_t>(pattern);
  return its.has_infinity ? (sign | beyond) : its.nan;
}

std::uint32_t encode_saturating(Format format, double number) {
  if (std::isnan(number)) return facts(format).nan;
  if (format == Format::i8) return encode(format, number);
  const double limit = facts(format).max_finite;
  if (number > limit) return facts(format).max_pattern;
  if (number < -limit) return sign_bit(facts(format)) | facts(format).max_pattern;
  return encode(format, number);
}

double rounded(Format format, double number) {
  return decode(format, encode(format, number));
}

double unit_roundoff(Format format) {
  return std::ldexp(1.0, -facts(format).precision);
}

double ulp(Format format, double number) {
  const FormatFacts& its = facts(format);
  const int exponent = number == 0 ? its.exponent_min : std::ilogb(number);
  const int binade = exponent > its.exponent_min ? exponent : its.exponent_min;
  return std::ldexp(1.0, binade - its.precision + 1);
}

double smallest_normal(Format format) {
  // As a table: bounds ask for it at every product, where ldexp would be most of their work.
  static constexpr auto kNumbers = [] {
    constexpr int kBias = 1023, kFractionBits = 52;  // of double
    std::array<double, std::size(kFacts)> numbers{};
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      numbers[n] = std::bit_cast<double>(static_cast<std::uint64_t>(kFacts[n].exponent_min + kBias)
                                         << kFractionBits);
    }
    return numbers;
  }();
  return kNumbers[static_cast<std::size_t>(format)];
}

}  // namespace attest
