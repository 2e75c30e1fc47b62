// Summaries of errors that were put there by hand.
#include "reference/statistics/summary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/random_values.hpp"

namespace attest {
namespace {

/// Two rows of four columns that see one key.
Problem small() {
  return {.seqlen_q = 2, .seqlen_kv = 1, .head_dim = 1, .head_dim_v = 4, .output = Format::bf16};
}

TEST(Summary, CountsErrorsInUlpsOfTheElementAndOfTheRow) {
  const Problem p = small();
  Tensor o(p.output, {1, 1, 2, 4});
  const std::vector<double> truth = {1, -1, 1, -1, 2, 2, -2, -2};
  // Towards zero by half an ulp of numbers just below 1 or 2, which is a quarter above: 2^-8, 2^-7.
  for (Index at = 0; at < 8; ++at) {
    const double size = at < 4 ? 1 - 0x1p-8 : 2 - 0x1p-7;
    o.set(at, std::copysign(size, truth[static_cast<std::size_t>(at)]));
  }
  ErrorTally tally;
  tally.add(p, zero_values(p), o, truth, 0.25);
  const ErrorSummary found = tally.summary();
  EXPECT_EQ(found.rows, 2);
  EXPECT_EQ(found.elements, 8);
  EXPECT_EQ(found.correct, 0);
  EXPECT_EQ(found.unjudged, 0);
  EXPECT_EQ(found.ulp, (Quantiles{0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(found.relative, (Quantiles{0x1p-8, 0x1p-8, 0x1p-8, 0x1p-8}));
  EXPECT_EQ(found.offset, (RowMean{0, 0}));
  EXPECT_EQ(found.inward, (RowMean{-0.5, 0}));
  EXPECT_EQ(found.square, (RowMean{0.25, 0}));
  EXPECT_EQ(found.margin, 0.25);
}

TEST(Summary, QuantilesAreRanks) {
  Problem p = small();
  p.head_dim_v = 200;
  p.seqlen_q = 1;
  p.output = Format::f32;
  Tensor o(p.output, {1, 1, 1, 200});
  const std::vector<double> truth(200, 1.0);
  for (Index at = 0; at < 200; ++at) o.set(at, 1 + static_cast<double>(at + 1) * 0x1p-23);
  ErrorTally tally;
  tally.add(p, zero_values(p), o, truth, 0);
  EXPECT_EQ(tally.summary().ulp, (Quantiles{100, 180, 198, 200}));
}

TEST(Summary, WhatIsNotFiniteIsCountedAndEntersNothing) {
  const Problem p = small();
  Tensor o(p.output, {1, 1, 2, 4});
  std::vector<double> truth(8, 1.0);
  for (Index at = 0; at < 8; ++at) o.set(at, 1);
  o.set(3, std::numeric_limits<double>::quiet_NaN());
  truth[6] = std::numeric_limits<double>::infinity();
  ErrorTally tally;
  tally.add(p, zero_values(p), o, truth, 0);
  const ErrorSummary found = tally.summary();
  EXPECT_EQ(found.unjudged, 2);
  EXPECT_EQ(found.elements, 6);
  EXPECT_EQ(found.correct, 6);
  EXPECT_EQ(found.square, (RowMean{0, 0}));
}

TEST(Summary, RowsThatNobodyJudgesAreLeftOut) {
  Problem p = small();
  p.mask = true;
  p.seqlens_q = {1};
  Values values = zero_values(p);
  Tensor o(p.output, {1, 1, 2, 4});
  ErrorTally tally;
  const std::vector<double> truth(8, 1.0);
  tally.add(p, values, o, truth, 0);
  EXPECT_EQ(tally.summary().elements, 4);
  values.mask->visible.assign(2, 0);
  ErrorTally blind;
  blind.add(p, values, o, truth, 0);
  EXPECT_EQ(blind.summary().elements, 0);
}

TEST(Summary, StandardErrorsComeFromTheRows) {
  EXPECT_EQ(row_mean({1, 3}), (RowMean{2, 1}));
  EXPECT_EQ(row_mean({5}), (RowMean{5, 0}));
  EXPECT_EQ(row_mean({}), (RowMean{0, 0}));
}

}  // namespace
}  // namespace attest
