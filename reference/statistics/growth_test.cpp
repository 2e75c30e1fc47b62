// Growth that was put there, none where there is none, and the stated power.
#include "reference/statistics/growth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace attest {
namespace {

/// A cell of 64 rows whose errors are normal: `size` in row ulps, of which `bias` is in common.
ErrorSummary drawn(double size, double bias, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0.0, 1.0);
  std::vector<double> squares, inward;
  for (int row = 0; row < 64; ++row) {
    double square = 0, sum = 0;
    for (int c = 0; c < 32; ++c) {
      const double error = size * normal(random) + bias;
      square += error * error / 32;
      sum += error / 32;
    }
    squares.push_back(square);
    inward.push_back(sum);
  }
  ErrorSummary summary;
  summary.rows = 64;
  summary.square = row_mean(squares);
  summary.inward = row_mean(inward);
  return summary;
}

/// `count` cells of different sizes; afterwards larger by `factor`, each by its own chance as well.
std::vector<ComparedCell> cells(int count, double factor, std::mt19937_64& random) {
  std::vector<ComparedCell> compared;
  for (int n = 0; n < count; ++n) {
    const double size = std::exp2(n % 5);
    compared.push_back({"cell", drawn(size, 0, random), drawn(size * factor, 0, random)});
  }
  return compared;
}

TEST(Growth, EqualsRaiseNoAlarm) {
  std::mt19937_64 random(1);
  double factors = 0;
  for (int round = 0; round < 60; ++round) {
    const Growth growth = growth_of(cells(24, 1, random));
    EXPECT_TRUE(growth.grown.empty());
    EXPECT_EQ(growth.cells, 24);
    EXPECT_EQ(growth.changed, 24);
    factors += std::log(growth.factor) / growth.factor_error;
  }
  EXPECT_LT(std::fabs(factors / std::sqrt(60)), 4);  // Student's t of 23 degrees, summed
}

TEST(Growth, TheSameIsTheSame) {
  std::mt19937_64 random(2);
  std::vector<ComparedCell> same = cells(5, 1, random);
  for (ComparedCell& cell : same) cell.after = cell.before;
  const Growth growth = growth_of(same);
  EXPECT_EQ(growth.changed, 0);
  EXPECT_EQ(growth.factor, 1);
  EXPECT_TRUE(growth.grown.empty());
}

TEST(Growth, OneWorseCellIsNamed) {
  std::mt19937_64 random(3);
  std::vector<ComparedCell> compared = cells(24, 1, random);
  compared[7] = {"worse", drawn(4, 0, random), drawn(5.2, 0, random)};
  compared[9] = {"biased", drawn(4, 0, random), drawn(4, -1, random)};
  const Growth growth = growth_of(compared);
  ASSERT_EQ(growth.grown.size(), 2U);
  EXPECT_EQ(growth.grown[0].name, "worse");
  EXPECT_EQ(growth.grown[0].test, "size");
  EXPECT_NEAR(growth.grown[0].after / growth.grown[0].before, 1.3, 0.1);
  EXPECT_EQ(growth.grown[1].name, "biased");
  EXPECT_EQ(growth.grown[1].test, "bias");
}

TEST(Growth, WhatGrewALittleEverywhereShowsTogether) {
  std::mt19937_64 random(4);
  const Growth growth = growth_of(cells(40, 1.04, random));
  ASSERT_FALSE(growth.grown.empty());
  for (const Grown& grown : growth.grown) EXPECT_EQ(grown.name, "");  // of no cell alone
  EXPECT_NEAR(growth.factor, 1.04, 0.02);
}

TEST(Growth, TheStatedFactorIsSeenNineTimesInTen) {
  int seen = 0, seen_half = 0;
  for (int round = 0; round < 20; ++round) {
    std::mt19937_64 random(static_cast<std::uint64_t>(100 + round));
    const double least = growth_of(cells(24, 1, random)).least_factor;
    seen += growth_of(cells(24, least, random)).grown.empty() ? 0 : 1;
    seen_half += growth_of(cells(24, std::sqrt(least), random)).grown.empty() ? 0 : 1;
  }
  EXPECT_GE(seen, 16);  // of which a kernel's own least_factor is itself drawn
  EXPECT_LE(seen_half, 10);
}

TEST(Growth, WhatShrankDidNotGrow) {
  std::mt19937_64 random(5);
  EXPECT_TRUE(growth_of(cells(24, 0.7, random)).grown.empty());
}

TEST(Growth, AnExactCellThatIsNoLongerHasGrown) {
  std::mt19937_64 random(6);
  ErrorSummary exact;
  exact.rows = 64;
  const Growth growth = growth_of({{"was exact", exact, drawn(1, 0, random)}});
  ASSERT_FALSE(growth.grown.empty());
  EXPECT_EQ(growth.grown[0].name, "was exact");
  EXPECT_EQ(growth_of({{"one row", {}, {}}}).cells, 0);
}

}  // namespace
}  // namespace attest
