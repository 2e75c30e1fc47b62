// Growth that was put there, none where there is none, and the stated rates and power.
#include "reference/statistics/growth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace attest {
namespace {

/// What heads and tails are made of must not matter: normal, or with tails so heavy that they have
/// no mean.
double drawn(bool heavy, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0.0, 1.0);
  return heavy ? normal(random) / normal(random) : normal(random);
}

std::vector<double> changes(int rows, double shift, bool heavy, std::mt19937_64& random) {
  std::vector<double> all;
  for (int row = 0; row < rows; ++row) all.push_back(drawn(heavy, random) + shift);
  return all;
}

TEST(Growth, CountsHeads) {
  const Growth growth = growth_of({1, 2, 0, -1, 3, 0.5}, 0.1);
  EXPECT_EQ(growth.rows, 6);
  EXPECT_EQ(growth.changed, 5);
  EXPECT_EQ(growth.grown, 4);
  EXPECT_EQ(growth.chance, 6.0 / 32);
  EXPECT_EQ(growth.chance_shrunk, 31.0 / 32);
  EXPECT_EQ(growth.needed, 6) << "5 of 6 come in 7 of 64, all in 1 of 64";
}

TEST(Growth, FewRowsShowNothingAndSaySo) {
  const Growth growth = growth_of(std::vector<double>(16, 1), 1e-6);
  EXPECT_EQ(growth.chance, 0x1p-16);
  EXPECT_EQ(growth.needed, 17);
  EXPECT_EQ(growth.least, std::numeric_limits<double>::infinity());
  EXPECT_EQ(growth_of(std::vector<double>(20, 1), 1e-6).needed, 20);
  EXPECT_EQ(growth_of({}, 1e-6).chance, 1);
}

TEST(Growth, EqualsAreCalledGrownAsOftenAsIsSaidAtMost) {
  constexpr double kRate = 0.05;
  for (const bool heavy : {false, true}) {
    std::mt19937_64 random(heavy ? 1 : 2);
    int called = 0;
    for (int round = 0; round < 4000; ++round) {
      called += growth_of(changes(60, 0, heavy, random), kRate).chance <= kRate ? 1 : 0;
    }
    EXPECT_LE(called, 4000 * kRate + 60);  // 4.4 standard deviations
    EXPECT_GE(called, 40) << "a test that never fires";
  }
}

TEST(Growth, TheLeastIsSeenNineTimesInTen) {
  constexpr double kRate = 1e-6;
  for (const bool heavy : {false, true}) {
    std::mt19937_64 random(heavy ? 3 : 4);
    int seen = 0, seen_half = 0;
    for (int round = 0; round < 200; ++round) {
      // Of equals: what a user is told. The later run is another one that is worse by that.
      const double least = growth_of(changes(400, 0, heavy, random), kRate).least;
      seen += growth_of(changes(400, least, heavy, random), kRate).chance <= kRate ? 1 : 0;
      // And of a run that is worse already it says the same.
      EXPECT_LT(growth_of(changes(400, 3 * least, heavy, random), kRate).least, 2 * least);
      seen_half += growth_of(changes(400, least / 2, heavy, random), kRate).chance <= kRate ? 1 : 0;
    }
    EXPECT_GE(seen, 160);  // the least of 400 rows is itself drawn
    EXPECT_LE(seen_half, 60);
  }
}

TEST(Growth, WhatIsNoNumberDidNotGrow) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Growth growth = growth_of({nan, infinity, -infinity, infinity}, 0.1);
  EXPECT_EQ(growth.changed, 4);
  EXPECT_EQ(growth.grown, 2);
  EXPECT_EQ(growth.least, infinity);
}

}  // namespace
}  // namespace attest
