// The model's own truth is the oracle's, and what can be worked out by hand comes out.
#include "reference/statistics/likely_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/random_values.hpp"
#include "reference/statistics/testing/cells.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

using statistics::Bias;
using statistics::Direction;

const Projected& along(const LikelyRow& row, Direction direction) {
  return row.projected[static_cast<std::size_t>(direction)];
}

TEST(LikelyErrors, ItsTruthIsTheOracles) {
  std::mt19937_64 random(21);
  int rows = 0;
  for (int round = 0; round < 400; ++round) {
    Problem p = random_problem(random, 9);
    if (std::fabs(p.softmax_scale) > 4) p.softmax_scale = default_scale(p.head_dim);
    const Values values = random_values(p, random);
    const Truth truth = exact_attention(p, values);
    const LikelyErrors likely = likely_errors(p, values, {});
    double largest = 0;
    for (Index i = 0; i < values.v.count(); ++i) {
      largest = std::max(largest, std::fabs(values.v.at(i)));
    }
    if (values.v_scales) {
      for (Index i = 0; i < values.v_scales->count(); ++i) {
        largest = std::max(largest, largest * values.v_scales->at(i));
      }
    }
    for (std::size_t at = 0; at < truth.o.size(); ++at) {
      const LikelyRow& row = likely.rows[at / static_cast<std::size_t>(p.head_dim_v)];
      if (row.keys == 0) continue;
      ++rows;
      // Logits in double are off by a few 2^-53 of themselves: those of 400 Problems stay below
      // 10^5.
      EXPECT_NEAR(likely.o[at], truth.o[at], 1e-9 * largest) << print(p);
      EXPECT_GE(likely.variance[at], 0);
    }
  }
  EXPECT_GT(rows, 10000);
}

/// One query of two keys: weights 1 and exp(-1), values 1 and -1 (first column), 1 (second).
struct TwoKeys {
  Problem p{.seqlen_kv = 2, .head_dim = 1, .head_dim_v = 2};
  Values values = zero_values(p);
  TwoKeys() {
    values.q.set(0, 1);
    values.k.set(1, -1);
    for (Index at = 0; at < 4; ++at) values.v.set(at, at == 2 ? -1 : 1);
  }
};

TEST(LikelyErrors, ACastMovesTheKeysThatAreRounded) {
  const TwoKeys two;
  const LikelyErrors likely = likely_errors(two.p, two.values, {.p_format = Format::bf16});
  const double weight = std::exp(-1), share = weight / (1 + weight);
  // exp(-1) = 1.47 2^-2 has the ulp 2^-9 in bf16; the weight of the first key is exactly 1. All
  // else is 2^-24 or so.
  const double cast = 0x1p-18 / 12 / weight / weight * share * share;
  EXPECT_NEAR(likely.variance[0], cast, 1e-3 * cast);
  EXPECT_NEAR(likely.variance[1], cast, 1e-3 * cast);
  // O is (1 - 2 share, 1): both positive, and an error of the weight moves them apart.
  EXPECT_NEAR(along(likely.rows[0], Direction::inward).variance, 0, 1e-3 * cast);
  EXPECT_EQ(likely.mean[0], 0);
  EXPECT_EQ(likely.rows[0].keys, 2);
  EXPECT_NEAR(likely.rows[0].support, 1 / (share * share + (1 - share) * (1 - share)), 1e-9);
  EXPECT_NEAR(likely.rows[0].distinct, 1, 1e-9);
}

TEST(LikelyErrors, ARowSumOfCastWeightsMovesOnlyDifferences) {
  const TwoKeys two;
  PrecisionPath path{.p_format = Format::bf16};
  path.row_sum_of_rounded_p = true;
  const LikelyErrors likely = likely_errors(two.p, two.values, path);
  const double weight = std::exp(-1), share = weight / (1 + weight);
  const double away = -1 - (1 - 2 * share);
  const double cast = 0x1p-18 / 12 / weight / weight * share * share * away * away;
  EXPECT_NEAR(likely.variance[0], cast, 1e-3 * cast);
  EXPECT_LT(likely.variance[1], 0x1p-45);  // both values are 1
}

TEST(LikelyErrors, OutputsAreRoundedInTheirOwnUlp) {
  TwoKeys two;
  two.p.output = Format::f16;
  const LikelyErrors likely = likely_errors(two.p, two.values, {});
  EXPECT_NEAR(likely.variance[1], 0x1p-20 / 12, 1e-3 * 0x1p-24);  // O is 1
  EXPECT_NEAR(likely.variance[0], 0x1p-24 / 12, 1e-3 * 0x1p-24);  // O is 0.46
}

TEST(LikelyErrors, ResponsesAreDerivatives) {
  std::mt19937_64 random(3);
  const Problem p{
      .seqlen_q = 3, .seqlen_kv = 20, .head_dim = 8, .head_dim_v = 5, .softmax_scale = 0.5F};
  const Values values = random_values(p, random);
  Problem sharper = p;
  sharper.softmax_scale *= 1 + 0x1p-12F;
  const LikelyErrors likely = likely_errors(p, values, {});
  const LikelyErrors moved = likely_errors(sharper, values, {});
  for (std::size_t row = 0; row < 3; ++row) {
    double scale = 0, weights = 0, output = 0;
    for (std::size_t at = row * 5; at < row * 5 + 5; ++at) {
      const auto bit = static_cast<unsigned>(Direction::sharper);
      scale += ((likely.negative[at] >> bit & 1) != 0 ? -1 : 1) * (moved.o[at] - likely.o[at]);
      weights += std::fabs(likely.o[at]);
      output += ulp(Format::f32, likely.o[at]);
    }
    const auto response = [&](Direction direction, Bias bias) {
      return along(likely.rows[row], direction).response[static_cast<std::size_t>(bias)];
    };
    EXPECT_NEAR(response(Direction::sharper, Bias::scale), scale * 0x1p12, 1e-3 * scale * 0x1p12);
    EXPECT_NEAR(response(Direction::inward, Bias::weights), weights, 1e-12);
    EXPECT_NEAR(response(Direction::inward, Bias::output), output, 1e-20);
  }
}

// README.md, "Directions".
TEST(LikelyErrors, ColumnsShareTheErrorOfAWeight) {
  const Problem p = cell_problem(Format::bf16, Format::f32, 32, 1024);
  const LikelyErrors likely = likely_errors(p, drawn(p, true, 1), cell_path(Format::bf16, 16, 64));
  double ratio = 0;
  for (std::size_t row = 0; row < 32; ++row) {
    double independent = 0;
    for (std::size_t c = 0; c < 64; ++c) independent += likely.variance[row * 64 + c];
    ratio += std::sqrt(along(likely.rows[row], Direction::inward).variance / independent) / 32;
  }
  std::printf("a row of V > 0 varies %.2f times as much as if columns were independent\n", ratio);
  EXPECT_GT(ratio, 6);
  EXPECT_LT(ratio, 7);
}

TEST(LikelyErrors, RowsWithoutKeysOrFiniteNumbersAreNotModelled) {
  Problem p{.seqlen_q = 3, .seqlen_kv = 4, .head_dim = 2, .head_dim_v = 2};
  p.mask = true;
  std::mt19937_64 random(4);
  Values values = random_values(p, random);
  values.mask->visible.assign(12, 1);
  for (std::size_t j = 0; j < 4; ++j) values.mask->visible[j] = 0;
  values.q.set(2, std::numeric_limits<double>::infinity());
  const LikelyErrors likely = likely_errors(p, values, {});
  EXPECT_EQ(likely.rows[0].keys, 0);
  EXPECT_EQ(likely.rows[1].keys, 0);
  EXPECT_EQ(likely.rows[2].keys, 4);
  EXPECT_EQ(likely.variance[0], 0);
}

}  // namespace
}  // namespace attest
