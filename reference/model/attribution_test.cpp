// Attribution by hand for one and two keys, and where theory says which stage must dominate.
#include "reference/model/attribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "reference/random_values.hpp"

namespace attest {
namespace {

double sum_of_shares(const Attribution& a) {
  double sum = 0;
  for (const StageError& stage : a.stages) sum += stage.share;
  return sum;
}

TEST(Attribution, OneKeyLeavesTheOutputCastAlone) {
  Problem problem{.output = Format::bf16};
  Values values = zero_values(problem);
  values.v.set(0, 1 + 0x1p-9);  // a quarter of an ulp of bf16 above 1; the weight is exactly 1
  const Attribution a = attribute(problem, values, {.p_format = Format::bf16});
  const double error = 0x1p-9 / (1 + 0x1p-9);
  EXPECT_DOUBLE_EQ(a.of(Stage::output_cast).remains.rms, error);
  EXPECT_DOUBLE_EQ(a.of(Stage::output_cast).remains.mean, -error);  // towards zero
  EXPECT_DOUBLE_EQ(a.of(Stage::output_cast).remains.ulps, 0.25);
  EXPECT_DOUBLE_EQ(a.of(Stage::output_cast).vanishes.rms, error);
  EXPECT_EQ(a.of(Stage::output_cast).share, 1);
  EXPECT_EQ(a.of(Stage::p_cast).remains.rms, 0);
  EXPECT_DOUBLE_EQ(a.total.rms, error);
  EXPECT_EQ(a.elements, 1);
}

TEST(Attribution, TwoKeysErrByTheirSecondWeight) {
  Problem problem{.seqlen_kv = 2, .head_dim_v = 2, .softmax_scale = 1};
  Values values = zero_values(problem);
  values.q.set(0, 1);
  values.k.set(1, -1);
  values.v.set(0, 0, 1, 0, 1);
  values.v.set(0, 0, 1, 1, -4);
  const Attribution a = attribute(problem, values, {.p_format = Format::bf16});
  const double p = std::exp(-1.0), error = rounded(Format::bf16, p) / p - 1;
  EXPECT_NEAR(a.of(Stage::p_cast).remains.rms, std::fabs(error), 0x1p-45);
  EXPECT_NEAR(a.of(Stage::p_cast).remains.mean, error * 2.5 / std::sqrt(8.5), 0x1p-45);
  EXPECT_NEAR(a.o_rms, p / (1 + p) * std::sqrt(8.5), 0x1p-45);
  EXPECT_GT(a.of(Stage::p_cast).share, 1 - 0x1p-20);  // bf16's unit is 2^16 times that of f32
  EXPECT_NEAR(sum_of_shares(a), 1, 0x1p-40);
}

TEST(Attribution, NothingErrsWhereNothingRounds) {
  Problem problem{.seqlen_q = 2, .seqlen_kv = 4, .seqlens_q = {1}};
  Values values = zero_values(problem);
  for (Index j = 0; j < 4; ++j) values.v.set(j, static_cast<double>(j));
  const Attribution a = attribute(problem, values, {.p_format = Format::bf16});
  EXPECT_EQ(a.elements, 1);
  EXPECT_EQ(a.total.rms, 0);
  EXPECT_EQ(sum_of_shares(a), 0);
  EXPECT_EQ(a.o_rms, 1.5);
}

struct Long {
  Problem problem{.seqlen_q = 16, .seqlen_kv = 512, .head_dim = 64, .head_dim_v = 64};
  PrecisionPath path{.p_format = Format::bf16, .tensor_step = 16, .kv_block = 64, .in_order = true};
  Values values;
  explicit Long(bool positive, Format output) {
    std::mt19937_64 random(11);
    problem.input = Format::bf16;
    problem.output = output;
    problem.softmax_scale = 0.125F;
    values = random_values(problem, random);
    if (!positive) return;
    for (Index n = 0; n < values.v.count(); ++n) values.v.set(n, std::fabs(values.v.at(n)));
  }
  Attribution attributed() const {
    const Attribution a = attribute(problem, values, path);
    for (std::size_t n = 0; n < kStageNames.size(); ++n) {
      std::printf("%s %.4g %%  ", kStageNames[n].data(), 100 * a.stages[n].share);
    }
    std::printf("\n");
    return a;
  }
};

TEST(Attribution, PsFormatDominatesWhereNothingElseIsShort) {
  Long problem(false, Format::f32);
  const Attribution a = problem.attributed();
  EXPECT_GT(a.of(Stage::p_cast).share, 0.999);
  EXPECT_LT(a.of(Stage::p_cast).vanishes.rms / a.total.rms, 1.01);
  EXPECT_GT(a.of(Stage::p_cast).vanishes.rms / a.total.rms, 0.99);
  problem.path.p_format = Format::f32;
  const Attribution precise = problem.attributed();
  EXPECT_EQ(precise.of(Stage::p_cast).remains.rms, 0);
  EXPECT_EQ(precise.of(Stage::p_cast).vanishes.rms, 0);
  EXPECT_LT(precise.total.rms, a.total.rms * 0x1p-8);
  // Tensor cores truncate, f32 rounds to nearest: towards zero, and with the larger part.
  EXPECT_GT(precise.of(Stage::pv).share + precise.of(Stage::scores).share, 0.5);
  EXPECT_LT(precise.of(Stage::pv).remains.mean, 0);
}

/// Rounding p errs by sum pi^2 v^2 in the square, rounding o by o^2, both times u^2 times the same.
/// With independent v of mean 0 those are equal on average; with v of one sign o is far larger.
TEST(Attribution, TheOutputDominatesWhereValuesHaveOneSign) {
  const Attribution one_sign = Long(true, Format::bf16).attributed();
  EXPECT_GT(one_sign.of(Stage::output_cast).share, 0.9);
  const Attribution both = Long(false, Format::bf16).attributed();
  EXPECT_GT(both.of(Stage::output_cast).share, 0.4);
  EXPECT_GT(both.of(Stage::p_cast).share, 0.4);
  EXPECT_NEAR(sum_of_shares(both), 1, 0x1p-40);
  for (const Attribution* a : {&one_sign, &both}) {  // squares of independent errors add up
    double squares = 0;
    for (const StageError& stage : a->stages) squares += stage.remains.rms * stage.remains.rms;
    EXPECT_NEAR(a->total.rms * a->total.rms / squares, 1, 0.1);
  }
}

}  // namespace
}  // namespace attest
