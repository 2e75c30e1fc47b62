// The exact dot: sums whose answer is known, where plain double loses everything.
#include "properties/exact_dot.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

TEST(ExactDot, KeepsWhatDoubleLoses) {
  ExactDot dot;
  dot.add(0x1p100, 1);
  dot.add(1, 1);
  dot.add(0x1p-50, 1);
  dot.add(-0x1p100, 1);
  EXPECT_EQ(dot.value(), 1 + 0x1p-50);
  EXPECT_EQ(dot.terms(), 4);
  EXPECT_EQ(dot.absolute(), 0x1p101);  // 1 and 2^-50 are below its last bit
  EXPECT_GE(dot.radius(), 0x1p1);      // and so it says
}

TEST(ExactDot, TheRadiusCoversTheError) {
  // 1/3 of f32 and its square, 1500 times each with opposite signs.
  const double third = static_cast<float>(1.0 / 3);
  ExactDot dot;
  for (int n = 0; n < 3000; ++n) dot.add(third, n % 2 == 0 ? third : -1);
  const double product = 1500 * (third * third), sum = product - 1500 * third;
  const double roundings = 0x1p-53 * (product + std::abs(sum));  // of the line above
  EXPECT_LE(std::abs(dot.value() - sum), dot.radius() + roundings);
  EXPECT_LT(dot.radius(), 1e-20);
}

TEST(ExactDot, OfNothingIsZero) {
  EXPECT_EQ(ExactDot().value(), 0);
  EXPECT_EQ(ExactDot().radius(), 0);
}

}  // namespace
}  // namespace attest
