// Acceptance by hand: what rounds to a number, at ties, below powers of two and where nothing is a
// number.
#include "reference/bound/acceptance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Accepted one(double centre, double radius, Format format = Format::bf16) {
  return {format, {centre}, {radius}};
}

TEST(Acceptance, WhatRoundsToTheNumberIsAccepted) {
  const Accepted near = one(1.001, 0.0001);  // bf16 steps by 2^-7 here: all of it rounds to 1
  EXPECT_TRUE(near.accepts(1, 0));
  EXPECT_FALSE(near.accepts(1 + 0x1p-7, 0));
  EXPECT_FALSE(near.accepts(1 - 0x1p-8, 0));
  EXPECT_EQ(near.error_of(1, 0), 0);
  const Accepted wide = one(1 + 0x1p-8, 0x1p-12);  // on the border of two cells
  EXPECT_TRUE(wide.accepts(1, 0));
  EXPECT_TRUE(wide.accepts(1 + 0x1p-7, 0));
  EXPECT_FALSE(wide.accepts(1 + 0x1p-6, 0));
}

TEST(Acceptance, TheErrorIsTheLeastThatExplainsTheNumber) {
  const Accepted some = one(1.001, 0.01);
  EXPECT_NEAR(some.error_of(1 + 0x1p-7, 0), 1 + 0x1p-8 - 1.001, 1e-15);
  EXPECT_NEAR(some.error_of(1 - 0x1p-8, 0), 1.001 - (1 - 0x1p-9), 1e-15);
  EXPECT_TRUE(some.accepts(1 + 0x1p-7, 0));
}

TEST(Acceptance, BelowAPowerOfTwoCellsAreNarrow) {
  // The cell of 1 ends 2^-9 below it, the cell of 1 - 2^-8 begins there.
  EXPECT_EQ(one(1 - 0x1p-9 - 0x1p-20, 0x1p-22).low(0), 1 - 0x1p-8);
  EXPECT_DOUBLE_EQ(one(1 - 0x1p-9 - 0x1p-20, 0x1p-22).error_of(1, 0), 0x1p-20);
}

TEST(Acceptance, SpecialCentresMustBeMet) {
  EXPECT_TRUE(one(kNan, 0).accepts(kNan, 0));
  EXPECT_FALSE(one(kNan, 0).accepts(0, 0));
  EXPECT_TRUE(one(-kInfinity, 0).accepts(-kInfinity, 0));
  EXPECT_FALSE(one(-kInfinity, 0).accepts(-1e38, 0));
  EXPECT_EQ(one(-kInfinity, 0).error_of(-1e38, 0), kInfinity);
  EXPECT_FALSE(one(1, 0.5).accepts(kNan, 0));
  EXPECT_EQ(one(1, 0.5).error_of(kNan, 0), kInfinity);
  EXPECT_FALSE(one(1, kNan).accepts(1, 0));
}

TEST(Acceptance, NothingIsPromisedWhereTheRadiusIsInfinite) {
  EXPECT_TRUE(one(1, kInfinity).accepts(kNan, 0));
  EXPECT_EQ(one(1, kInfinity).error_of(kNan, 0), 0);
}

TEST(Acceptance, AnExactRowAcceptsOneNumber) {
  EXPECT_TRUE(one(0, 0).accepts(-0.0, 0));
  EXPECT_FALSE(one(0, 0).accepts(0x1p-133, 0));
  EXPECT_EQ(one(0, 0).error_of(0, 0), 0);
}

}  // namespace
}  // namespace attest
