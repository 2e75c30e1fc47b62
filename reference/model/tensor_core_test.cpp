// Tensor core sums by hand, one architecture after another, and against the same rule written down
// a second time with numbers instead of bits.
#include "reference/model/tensor_core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "reference/formats.hpp"
#include "reference/operand_formats.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Operands operands(const std::vector<double>& numbers, Format format) {
  Operands result;
  result.resize(numbers.size());
  for (std::size_t n = 0; n < numbers.size(); ++n) result.set(n, numbers[n], format);
  return result;
}

double sum_of(Index step, Format format, double sum, const std::vector<double>& a,
              const std::vector<double>& b) {
  return tensor_sum(tensor_core(step, format, format), sum, operands(a, format), 0,
                    operands(b, format), 0, a.size());
}

TEST(TensorCore, KeepsTheBitsOfItsArchitecture) {
  const auto with_ones = [](Index step, double product, std::size_t count) {
    return sum_of(step, Format::bf16, 1, std::vector<double>(count, product),
                  std::vector<double>(count, 1.0));
  };
  EXPECT_EQ(with_ones(4, 0x1p-23, 1), 1 + 0x1p-23);
  EXPECT_EQ(with_ones(4, 0x1p-24, 4), 1);  // V100 cuts each of them off
  EXPECT_EQ(with_ones(8, 0x1p-24, 4), 1 + 0x1p-22);
  EXPECT_EQ(with_ones(8, 0x1p-25, 4), 1);
  EXPECT_EQ(with_ones(16, 0x1p-25, 4), 1 + 0x1p-23);
  EXPECT_EQ(with_ones(16, 0x1p-25, 3), 1);  // the sum is truncated, not rounded
  EXPECT_EQ(with_ones(16, 0x1p-26, 16), 1);
  EXPECT_EQ(with_ones(8, 0x1p-24, 16), 1 + 0x1p-20);  // two groups of 8
}

TEST(TensorCore, EightBitOperandsKeepFourteenBits) {
  const auto with_one = [](double product) {
    return sum_of(32, Format::e5m2, 1, {product}, {1.0});
  };
  EXPECT_EQ(with_one(0x1p-13), 1 + 0x1p-13);
  EXPECT_EQ(with_one(0x1p-14), 1);
  EXPECT_EQ(operand_format(Format::e4m3, Format::bf16), Format::bf16);
  EXPECT_EQ(operand_format(Format::e4m3, Format::e5m2), Format::e4m3);
  EXPECT_EQ(operand_format(Format::i8, Format::bf16), Format::bf16);
  EXPECT_EQ(operand_format(Format::e4m3, Format::i8), Format::f16);
}

TEST(TensorCore, TruncatesTowardsZero) {
  EXPECT_EQ(sum_of(16, Format::bf16, -1, {-0x1p-25, -0x1p-25, -0x1p-25}, {1, 1, 1}), -1);
  EXPECT_EQ(sum_of(16, Format::bf16, 1, {-0x1p-25}, {1}), 1 - 0x1p-24);
}

TEST(TensorCore, AlignsSubnormalNumbersByTheSmallestNormalOne) {
  // 2^-24 is subnormal in f16 and counts as 2^-14: what is below 2^-14 2^-25 is lost.
  EXPECT_EQ(sum_of(16, Format::f16, 0x1p-45, {0x1p-24}, {1}), 0x1p-24);
  EXPECT_EQ(sum_of(16, Format::f16, 0x1p-39, {0x1p-24}, {1}), 0x1p-24 + 0x1p-39);
  EXPECT_EQ(sum_of(16, Format::bf16, 0x1p-45, {0x1p-24}, {1}), 0x1p-24 + 0x1p-45);
}

TEST(TensorCore, SpecialNumbers) {
  EXPECT_FALSE(std::signbit(sum_of(16, Format::bf16, -0.0, {-0.0, 1}, {1, 0})));
  EXPECT_EQ(sum_of(16, Format::bf16, 0, {0x1p64}, {0x1p64}), kInfinity);
  EXPECT_EQ(sum_of(16, Format::bf16, 1, {-kInfinity}, {2}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of(16, Format::bf16, kInfinity, {-kInfinity}, {2})));
  EXPECT_EQ(sum_of(16, Format::bf16, 1, {0.0}, {std::nan("")}), 1);
}

/// The sources' rule in numbers: every addend truncated to a multiple of 2^(largest - F), and the
/// sum to the accumulator's bits.
double second_opinion(double c, const std::vector<double>& a, const std::vector<double>& b,
                      Format format, int kept, int floor) {
  const auto exponent = [](double number, Format its) {
    return std::max(std::ilogb(number), facts(its).exponent_min);
  };
  int largest = floor;
  bool none = c == 0;
  if (c != 0) largest = std::max(largest, exponent(c, Format::f32));
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (a[n] * b[n] == 0) continue;
    none = false;
    largest = std::max(largest, exponent(a[n], format) + exponent(b[n], format));
  }
  if (none) return 0;
  const double unit = std::ldexp(1.0, largest - kept);
  double sum = std::trunc(c / unit) * unit;
  for (std::size_t n = 0; n < a.size(); ++n) sum += std::trunc(a[n] * b[n] / unit) * unit;
  if (sum == 0) return 0;
  const double last = std::ldexp(1.0, std::max(std::ilogb(sum), -126) - 23);
  return std::trunc(sum / last) * last;
}

TEST(TensorCore, AgreesWithTheRuleInNumbers) {
  std::mt19937_64 random(5);
  struct {
    Index step;
    int kept, floor;
  } const cores[] = {{4, 23, -100000}, {8, 24, -132}, {16, 25, -133}};
  int compared = 0;
  for (const Format format : {Format::f16, Format::bf16}) {
    for (int turn = 0; turn < 30000; ++turn) {
      const auto& core = cores[random() % 3];
      const auto drawn = [&] {  // any magnitude, subnormal ones and 0 too
        const auto pattern = static_cast<std::uint32_t>(random() & 0xffff);
        const double number = decode(format, pattern);
        return std::isfinite(number) ? number : 0.0;
      };
      std::vector<double> a, b;
      for (Index n = 0; n < core.step; ++n) {
        a.push_back(drawn());
        b.push_back(drawn());
      }
      if (random() % 2 == 0) {  // magnitudes near one another, so that sums carry and cancel
        for (double& x : a) x = rounded(format, std::ldexp(std::frexp(x, &compared), 2));
        for (double& x : b) x = rounded(format, std::ldexp(std::frexp(x, &compared), -3));
      }
      const double c = random() % 4 == 0 ? 0 : rounded(Format::f32, a[0] * b[0] * 1.7);
      if (!std::isfinite(c)) continue;
      const double sum = second_opinion(c, a, b, format, core.kept, core.floor);
      if (std::fabs(sum) >= 0x1p128) continue;
      ASSERT_EQ(sum_of(core.step, format, c, a, b), sum) << turn;
    }
  }
}

}  // namespace
}  // namespace attest
