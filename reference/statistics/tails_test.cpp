// Tails against tables, and limits against tails.
#include "reference/statistics/tails.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest::statistics {
namespace {

TEST(Tails, AreThoseOfTables) {
  EXPECT_NEAR(normal_tail(0), 0.5, 1e-15);
  EXPECT_NEAR(normal_tail(1.959963985), 0.025, 1e-10);
  EXPECT_NEAR(normal_tail(6), 9.8659e-10, 1e-14);
  EXPECT_NEAR(student_tail(2.2281388520, 10), 0.025, 1e-10);
  EXPECT_NEAR(student_tail(1, 1), 0.25, 1e-12);  // Cauchy
  EXPECT_NEAR(coin_tail(3, 3), 0.125, 1e-15);
  EXPECT_NEAR(coin_tail(8, 10), 56.0 / 1024, 1e-15);
  EXPECT_EQ(coin_tail(0, 5), 1);
}

TEST(Tails, LimitsHaveTheirTails) {
  for (double p : {0.4, 1e-3, 1e-12}) {
    EXPECT_NEAR(normal_tail(normal_limit(p)) / p, 1, 1e-9);
    EXPECT_NEAR(student_tail(student_limit(p, 7.5), 7.5) / p, 1, 1e-6);
  }
}

TEST(Tails, CoinsHaveLimitsAndShares) {
  EXPECT_EQ(binomial_critical_value(0.06, 10), 8);  // 56 / 1024, where 7 or more are 176 / 1024
  EXPECT_EQ(binomial_critical_value(0.05, 10), 9);
  EXPECT_EQ(binomial_critical_value(0x1p-16, 16), 16);
  EXPECT_EQ(binomial_critical_value(0x0.ffp-16, 16), 17) << "all heads are not enough";
  EXPECT_EQ(binomial_critical_value(0.5, 0), 1);
  EXPECT_NEAR(share_for(3, 3, 0.125), 0.5, 1e-12);
  EXPECT_NEAR(share_for(8, 10, 56.0 / 1024), 0.5, 1e-12);
  EXPECT_NEAR(share_for(1, 10, 0.9), 1 - std::pow(0.1, 0.1), 1e-12);
}

}  // namespace
}  // namespace attest::statistics
