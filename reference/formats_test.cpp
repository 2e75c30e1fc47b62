// Every 8- and 16-bit pattern, and every place where rounding can turn, in every format.
#include "reference/formats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "reference/values.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::uint32_t sign_of(Format format) {
  return 1U << (facts(format).bits - 1);
}

// f32 has too many patterns to visit here: these reach each binade's ends and the subnormals.
std::vector<std::uint32_t> magnitudes(Format format) {
  std::vector<std::uint32_t> all;
  if (format != Format::f32) {
    for (std::uint32_t i = 0; i <= facts(format).max_pattern; ++i) all.push_back(i);
    return all;
  }
  for (std::uint32_t binade = 0; binade < 255; ++binade) {
    for (std::uint32_t low : {0U, 1U, 2U, 0x3fffffU, 0x400000U, 0x555555U, 0x7ffffeU, 0x7fffffU}) {
      all.push_back((binade << 23) | low);
    }
  }
  return all;
}

TEST(Formats, HandWorkedPatterns) {
  struct Row {
    Format format;
    std::uint32_t pattern;
    double number;
  };
  const Row rows[] = {
      {Format::f32, 0x3f800000, 1.0},
      {Format::f32, 0x00000001, std::ldexp(1, -149)},
      {Format::f32, 0xc0490fdb, -0x1.921fb6p1},
      {Format::f16, 0x3c00, 1.0},
      {Format::f16, 0x0001, std::ldexp(1, -24)},
      {Format::f16, 0x0400, std::ldexp(1, -14)},
      {Format::f16, 0x7bff, 65504.0},
      {Format::f16, 0xc248, -3.140625},
      {Format::bf16, 0x3f80, 1.0},
      {Format::bf16, 0x4049, 3.140625},
      {Format::bf16, 0x0001, std::ldexp(1, -133)},
      {Format::e4m3, 0x38, 1.0},
      {Format::e4m3, 0x7e, 448.0},
      {Format::e4m3, 0x01, std::ldexp(1, -9)},
      {Format::e4m3, 0x08, std::ldexp(1, -6)},
      {Format::e5m2, 0x3c, 1.0},
      {Format::e5m2, 0x7b, 57344.0},
      {Format::e5m2, 0x01, std::ldexp(1, -16)},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(decode(row.format, row.pattern), row.number) << std::hex << row.pattern;
    EXPECT_EQ(encode(row.format, row.number), row.pattern) << row.number;
  }
}

TEST(Formats, WholeNumbersOfEightBits) {
  for (int number = -127; number <= 127; ++number) {
    const std::uint32_t pattern = static_cast<std::uint32_t>(number) & 0xFFU;
    EXPECT_EQ(decode(Format::i8, pattern), number);
    EXPECT_EQ(encode(Format::i8, number), pattern);
    EXPECT_EQ(rounded(Format::i8, number + 0.49), number);
    if (number % 2 == 0) {  // both ties go to the even neighbour
      EXPECT_EQ(rounded(Format::i8, number + 0.5), number);
      EXPECT_EQ(rounded(Format::i8, number - 0.5), number);
    }
  }
  EXPECT_EQ(decode(Format::i8, 0x80), -128);  // which encode never gives
  EXPECT_EQ(rounded(Format::i8, 127.5), 127);
  EXPECT_EQ(rounded(Format::i8, -std::numeric_limits<double>::infinity()), -127);
  EXPECT_EQ(encode(Format::i8, std::numeric_limits<double>::quiet_NaN()), 0U);
  EXPECT_EQ(encode_saturating(Format::i8, 1e30), 127U);
  EXPECT_EQ(ulp(Format::i8, 0), 1);
  EXPECT_EQ(ulp(Format::i8, 127), 1);
}

TEST(Formats, EveryPatternSurvivesTheRoundTrip) {
  for (Format format : float_formats()) {
    for (std::uint32_t magnitude : magnitudes(format)) {
      for (std::uint32_t pattern : {magnitude, magnitude | sign_of(format)}) {
        const double number = decode(format, pattern);
        ASSERT_TRUE(std::isfinite(number));
        ASSERT_EQ(std::signbit(number), (pattern & sign_of(format)) != 0);
        ASSERT_EQ(encode(format, number), pattern);
        ASSERT_EQ(encode_saturating(format, number), pattern);
        ASSERT_EQ(rounded(format, number), number);
      }
    }
  }
}

// Between neighbours a < b the midpoint is a double; it must go to the even one, and one double to
// either side must go to the near one. This is where rounding through float would be seen.
TEST(Formats, EveryMidpointGoesToEvenAndItsNeighboursToTheNearer) {
  for (Format format : float_formats()) {
    for (std::uint32_t low : magnitudes(format)) {
      if (low == facts(format).max_pattern) continue;
      const double a = decode(format, low), b = decode(format, low + 1);
      ASSERT_LT(a, b);
      ASSERT_EQ(b - a, ulp(format, a));
      const double middle = a + (b - a) / 2;
      const std::uint32_t even = (low & 1) == 0 ? low : low + 1;
      for (double sign : {1.0, -1.0}) {
        const std::uint32_t bit = sign < 0 ? sign_of(format) : 0;
        ASSERT_EQ(encode(format, sign * middle), even | bit);
        ASSERT_EQ(encode(format, sign * std::nextafter(middle, 0.0)), low | bit);
        ASSERT_EQ(encode(format, sign * std::nextafter(middle, kInfinity)), (low + 1) | bit);
        ASSERT_EQ(encode(format, sign * std::nextafter(a, kInfinity)), low | bit);
        ASSERT_EQ(encode(format, sign * std::nextafter(b, 0.0)), (low + 1) | bit);
      }
    }
  }
}

TEST(Formats, EverySpecialPatternDecodesToASpecial) {
  for (Format format : float_formats()) {
    if (format == Format::f32) continue;
    const std::uint32_t sign = sign_of(format);
    for (std::uint32_t magnitude = facts(format).max_pattern + 1; magnitude < sign; ++magnitude) {
      const bool infinite =
          facts(format).has_infinity && magnitude == facts(format).max_pattern + 1;
      for (std::uint32_t pattern : {magnitude, magnitude | sign}) {
        const double number = decode(format, pattern);
        ASSERT_EQ(std::isinf(number), infinite);
        ASSERT_EQ(std::isnan(number), !infinite);
        if (infinite) {
          ASSERT_EQ(encode(format, number), pattern);
        }
      }
    }
  }
  EXPECT_TRUE(std::isnan(decode(Format::f32, 0x7f800001)));
  EXPECT_EQ(decode(Format::f32, 0xff800000), -kInfinity);
  EXPECT_EQ(encode(Format::f32, kInfinity), 0x7f800000U);
}

TEST(Formats, NotANumberStaysOne) {
  for (Format format : float_formats()) {
    EXPECT_TRUE(std::isnan(rounded(format, kNaN)));
    EXPECT_TRUE(std::isnan(rounded(format, -kNaN)));
    EXPECT_TRUE(std::isnan(decode(format, encode_saturating(format, kNaN))));
  }
}

TEST(Formats, SignedZerosAndWhatIsTooSmall) {
  for (Format format : float_formats()) {
    const double smallest = ulp(format, 0);
    EXPECT_EQ(encode(format, 0.0), 0U);
    EXPECT_EQ(encode(format, -0.0), sign_of(format));
    EXPECT_EQ(encode(format, -smallest / 2), sign_of(format));
    EXPECT_EQ(encode(format, std::nextafter(smallest / 2, 1.0)), 1U);
    EXPECT_EQ(encode(format, std::numeric_limits<double>::denorm_min()), 0U);
    EXPECT_EQ(encode(format, -std::numeric_limits<double>::denorm_min()), sign_of(format));
    EXPECT_EQ(encode(format, std::numeric_limits<double>::min()), 0U);
  }
}

// Overflow begins half a step beyond the largest finite number. Where the last pattern is odd the
// tie goes up (IEEE); in e4m3 it is even, so 464 is still 448.
TEST(Formats, OverflowBeginsHalfAStepBeyondTheLargest) {
  for (Format format : float_formats()) {
    const double largest = facts(format).max_finite;
    const double edge = largest + ulp(format, largest) / 2;
    EXPECT_EQ(decode(format, facts(format).max_pattern), largest);
    EXPECT_EQ(rounded(format, std::nextafter(edge, 0.0)), largest);
    const bool tie_stays = format == Format::e4m3;
    for (double beyond : {tie_stays ? std::nextafter(edge, kInfinity) : edge, 4 * largest,
                          std::numeric_limits<double>::max(), kInfinity}) {
      if (facts(format).has_infinity) {
        EXPECT_EQ(rounded(format, beyond), kInfinity);
        EXPECT_EQ(rounded(format, -beyond), -kInfinity);
      } else {
        EXPECT_TRUE(std::isnan(rounded(format, beyond)));
        EXPECT_TRUE(std::isnan(rounded(format, -beyond)));
      }
      EXPECT_EQ(decode(format, encode_saturating(format, beyond)), largest);
      EXPECT_EQ(decode(format, encode_saturating(format, -beyond)), -largest);
    }
  }
  EXPECT_EQ(rounded(Format::e4m3, 464.0), 448.0);
}

TEST(Formats, F32EncodeIsTheMachinesOwnConversion) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (std::isnan(number)) continue;
    ASSERT_EQ(encode(Format::f32, number),
              std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    const double near = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                   static_cast<int>(random() % 300) - 160);
    ASSERT_EQ(encode(Format::f32, near), std::bit_cast<std::uint32_t>(static_cast<float>(near)));
  }
}

TEST(Formats, FactsAgreeWithEachOther) {
  EXPECT_EQ(unit_roundoff(Format::f32), std::ldexp(1, -24));
  EXPECT_EQ(unit_roundoff(Format::bf16), std::ldexp(1, -8));
  EXPECT_EQ(bytes_of(Format::f32), 4);
  EXPECT_EQ(bytes_of(Format::e5m2), 1);
  for (Format format : float_formats()) {
    EXPECT_EQ(ulp(format, 1.0), 2 * unit_roundoff(format));
    EXPECT_EQ(rounded(format, smallest_normal(format)), smallest_normal(format));
    EXPECT_EQ(ulp(format, 0), smallest_normal(format) * ulp(format, 1.0));
  }
}

TEST(Tensor, StoresInItsFormatAndComparesBitForBit) {
  Tensor tensor(Format::bf16, {2, 3, 4, 5});
  EXPECT_EQ(tensor.count(), 120);
  EXPECT_EQ(tensor.bytes.size(), 240U);
  EXPECT_EQ(tensor.at(119), 0.0);
  tensor.set(1, 2, 3, 4, 1.00390625);  // halfway between 1 and 1 + 2^-7: to even
  EXPECT_EQ(tensor.at(1, 2, 3, 4), 1.0);
  EXPECT_EQ(tensor.at(119), 1.0);
  EXPECT_EQ(tensor.bits(119), 0x3f80U);
  Tensor other = tensor;
  EXPECT_EQ(tensor, other);
  other.set_bits(0, 0x8000);  // minus zero differs from zero
  EXPECT_NE(tensor, other);
  EXPECT_EQ(Tensor(Format::f32, {1, 2, 0, 4}).bytes.size(), 0U);
}

}  // namespace
}  // namespace attest
