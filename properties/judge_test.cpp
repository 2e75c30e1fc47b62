// The judge by hand: what it accepts, refuses, skips and remembers.
#include "properties/judge.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Outcome outcome_of(double got, double truth, double bound) {
  Judge judge;
  judge.within(got, truth, bound, {}, "x");
  return judge.verdict().outcome;
}

TEST(Judge, StartsVacuous) {
  EXPECT_EQ(Judge().verdict().outcome, Outcome::vacuous);
  EXPECT_EQ(Judge().verdict("nothing here").why, "nothing here");
}

TEST(Judge, AcceptsUpToTheBoundAndNotBeyond) {
  EXPECT_EQ(outcome_of(1.5, 1, 0.5), Outcome::holds);
  EXPECT_EQ(outcome_of(0.5, 1, 0.5), Outcome::holds);
  EXPECT_EQ(outcome_of(1.5000001, 1, 0.5), Outcome::violated);
  EXPECT_EQ(outcome_of(0.4999999, 1, 0.5), Outcome::violated);
  EXPECT_EQ(outcome_of(1, 1, 0), Outcome::holds);
  EXPECT_EQ(outcome_of(std::nextafter(1.0, 2), 1, 0), Outcome::violated);
}

TEST(Judge, NanNeverPassesWhereTheTruthIsANumber) {
  EXPECT_EQ(outcome_of(kNan, 1, 0.5), Outcome::violated);
  EXPECT_EQ(outcome_of(kNan, 0, 0), Outcome::violated);
  EXPECT_EQ(outcome_of(kNan, -kInfinity, 0), Outcome::violated);
  EXPECT_EQ(outcome_of(1, 1.5, kNan), Outcome::violated);
  EXPECT_EQ(outcome_of(kInfinity, 1, 1e300), Outcome::violated);
}

TEST(Judge, SpecialTruthsAreMetExactly) {
  EXPECT_EQ(outcome_of(-kInfinity, -kInfinity, 0), Outcome::holds);
  EXPECT_EQ(outcome_of(kInfinity, -kInfinity, 0), Outcome::violated);
  EXPECT_EQ(outcome_of(-1e38, -kInfinity, 1e300), Outcome::violated);
  EXPECT_EQ(outcome_of(kNan, kNan, 0), Outcome::holds);
  EXPECT_EQ(outcome_of(0, kNan, 0), Outcome::violated);
}

TEST(Judge, AnInfiniteBoundIsNotJudged) {
  EXPECT_EQ(outcome_of(kNan, 1, kInfinity), Outcome::vacuous);
}

TEST(Judge, RemembersTheLargestMarginAndWhere) {
  Judge judge;
  judge.within(1.1, 1, 1, {0, 0, 0, 1}, "x");
  judge.within(1.5, 1, 1, {0, 0, 0, 2}, "x");
  judge.within(1.2, 1, 1, {0, 0, 0, 3}, "x");
  const Verdict verdict = judge.verdict();
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  EXPECT_EQ(verdict.compared, 3);
  EXPECT_DOUBLE_EQ(verdict.margin, 0.5);
  EXPECT_EQ(verdict.where, (Where{0, 0, 0, 2}));
}

TEST(Judge, AViolationIsNotForgotten) {
  Judge judge;
  judge.within(3, 1, 1, {0, 0, 0, 1}, "first");
  judge.within(9, 1, 1, {0, 0, 0, 2}, "worst");
  judge.within(1, 1, 1, {0, 0, 0, 3}, "right");
  const Verdict verdict = judge.verdict();
  EXPECT_EQ(verdict.outcome, Outcome::violated);
  EXPECT_EQ(verdict.where, (Where{0, 0, 0, 2}));
  EXPECT_DOUBLE_EQ(verdict.margin, 8);
  EXPECT_NE(verdict.why.find("worst"), std::string::npos);
}

TEST(Judge, BitsAreComparedAsBits) {
  Tensor plus(Format::f32, {1, 1, 1, 1}), minus = plus;
  minus.set_bits(0, 0x80000000U);  // -0 == +0, but not the same bits
  Judge same, other;
  same.same_bits(plus, plus, {}, "x");
  other.same_bits(minus, plus, {}, "x");
  EXPECT_EQ(same.verdict().outcome, Outcome::holds);
  EXPECT_EQ(other.verdict().outcome, Outcome::violated);
  EXPECT_EQ(other.verdict().margin, kInfinity);
}

TEST(Judge, DemandsAreDemands) {
  Judge judge;
  judge.demand(true, 0, {}, "x must be 0");
  EXPECT_EQ(judge.verdict().outcome, Outcome::holds);
  judge.demand(false, 2, {}, "x must be 0");
  EXPECT_EQ(judge.verdict().outcome, Outcome::violated);
  EXPECT_EQ(judge.verdict().why, "x must be 0, not 2");
}

}  // namespace
}  // namespace attest
