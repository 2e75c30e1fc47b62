// What the alarms find, what they say they would have found, and that they are silent otherwise.
#include "reference/statistics/z_tally.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/formats.hpp"
#include "reference/model/testing/random_path.hpp"
#include "reference/precision_text.hpp"
#include "reference/statistics/testing/cells.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

using enum Format;
using statistics::Bias;

double least(const ZSummary& z, Bias bias) {
  return z.least_bias[static_cast<std::size_t>(bias)];
}

ZSummary judged(const Problem& p, const Values& values, const PrecisionPath& path,
                const Tensor& o) {
  ZTally tally;
  tally.add(p, values, path, o);
  return tally.summary().value();
}

struct Planted {
  Defect defect;
  Bias bias;
  double size;  // at least
};
// A truncated weight loses between u / 2 and u of itself, half an ulp on average; the largest of a
// block nothing. A truncated output loses half an ulp.
const Planted kPlanted[] = {{Defect::p_truncated, Bias::weights, 0x1p-10},
                            {Defect::output_truncated, Bias::output, 0.5},
                            {Defect::scale_off, Bias::scale, 0x1p-13},
                            {Defect::exp_biased, Bias::exponential, 0x1p-12}};

TEST(ZTally, FindsWhatItSaysItWouldFind) {
  int promised = 0, found = 0;
  for (bool positive : {false, true}) {
    for (Format output : {f32, bf16}) {
      const PrecisionPath path = cell_path(bf16, 16, 64);
      const Problem p = cell_problem(bf16, output, 512, 64);
      const Values values = drawn(p, positive, 4);
      for (const Planted& planted : kPlanted) {
        if (planted.defect == Defect::output_truncated && output == f32) continue;
        const ZSummary z = judged(p, values, path, modelled(p, values, path, planted.defect));
        const double size = planted.size / least(z, planted.bias);
        const std::string name(kDefectNames[static_cast<std::size_t>(planted.defect)]);
        std::printf("%-18s %s, out %s: %6.2f of the least that is seen; %s\n", name.c_str(),
                    positive ? "V>0" : "any", output == f32 ? "f32 " : "bf16", size,
                    alarms_of(z).c_str());
        if (size < 1) continue;
        ++promised;
        EXPECT_NE(alarms_of(z), "") << name;
        found += z.alarms.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(found, promised);
  EXPECT_GE(promised, 10);
}

/// What a correct kernel computes, with a bias of the given size before the output is rounded.
Tensor biased(const Problem& p, const Values& values, const PrecisionPath& path, Bias bias,
              double size) {
  Model model;
  model.exact = only(Stage::output_cast);
  Problem asked = p;
  if (bias == Bias::scale)
    asked.softmax_scale = static_cast<float>(static_cast<double>(p.softmax_scale) * (1 + size));
  std::vector<double> o = model_attention(asked, values, path, model).o;
  for (double& element : o) {
    if (bias == Bias::weights) element *= 1 + size;
    if (bias == Bias::output) element += std::copysign(size * ulp(p.output, element), element);
  }
  return tensor_of(p, o);
}

TEST(ZTally, ABiasOfTheStatedSizeIsFoundNineTimesInTen) {
  const PrecisionPath path = cell_path(bf16, 0, 64);
  const Problem p = cell_problem(bf16, bf16, 64, 64);
  for (Bias bias : {Bias::weights, Bias::output, Bias::scale}) {
    int found = 0, found_half = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Values values = drawn(p, bias != Bias::scale, seed);
      const double size = least(judged(p, values, path, modelled(p, values, path)), bias);
      found += judged(p, values, path, biased(p, values, path, bias, size)).alarms.empty() ? 0 : 1;
      found_half +=
          judged(p, values, path, biased(p, values, path, bias, size / 2)).alarms.empty() ? 0 : 1;
    }
    std::printf("%s: %d of 20 found, %d of half the size\n",
                std::string(statistics::kBiasNames[static_cast<std::size_t>(bias)]).c_str(), found,
                found_half);
    EXPECT_GE(found, 18);
    EXPECT_LE(found_half, 10);  // or the statement is idle
  }
}

// Twice the errors' variance, which is a model with half of it.
TEST(ZTally, AModelWithHalfTheVarianceIsFound) {
  const PrecisionPath path = cell_path(bf16, 0, 64);
  const Problem p = cell_problem(bf16, bf16, 256, 64);
  const Values values = drawn(p, false, 6);
  const Tensor o = modelled(p, values, path);
  LikelyErrors likely = likely_errors(p, values, path);
  ZTally right, wrong;
  right.add(p, path, o, likely);
  for (double& variance : likely.variance) variance /= 2;
  wrong.add(p, path, o, likely);
  EXPECT_EQ(alarms_of(right.summary().value()), "");
  const ZSummary z = wrong.summary().value();
  ASSERT_EQ(z.alarms.size(), 1U) << alarms_of(z);
  EXPECT_EQ(z.alarms[0].test, "chi_square");
  EXPECT_GT(z.chi_square, 1.8);
  EXPECT_LT(right.summary()->least_growth, std::sqrt(2.0));  // as it had said
}

TEST(ZTally, AModelThatForgetsWhatTensorCoresTruncateIsFound) {
  const PrecisionPath path = cell_path(f32, 8, 64);  // no core takes f32: nothing hides the sums
  const Problem p = cell_problem(bf16, f32, 64, 512);
  const Values values = drawn(p, true, 7);
  const Tensor o = modelled(p, values, path);
  LikelyErrors likely = likely_errors(p, values, path);
  ZTally right, wrong;
  right.add(p, path, o, likely);
  for (double& mean : likely.mean) mean = 0;
  for (LikelyRow& row : likely.rows) {
    for (Projected& projected : row.projected) projected.mean = 0;
  }
  wrong.add(p, path, o, likely);
  EXPECT_EQ(alarms_of(right.summary().value()), "");
  EXPECT_LT(wrong.summary().value().inward.total, -6);
  EXPECT_NE(alarms_of(wrong.summary().value()), "");
}

TEST(ZTally, OneWrongElementAndOneWrongRowAreFound) {
  const PrecisionPath path = cell_path(bf16, 0, 64);
  const Problem p = cell_problem(bf16, bf16, 64, 64);
  const Values values = drawn(p, true, 8);
  Tensor o = modelled(p, values, path);
  const Tensor before = o;
  o.set(0, 0, 3, 5, o.at(0, 0, 3, 5) * 1.03);
  EXPECT_EQ(judged(p, values, path, o).alarms.at(0).test, "element");
  o = before;
  for (Index c = 0; c < 64; ++c) o.set(0, 0, 3, c, o.at(0, 0, 3, c) * 1.008);
  const ZSummary z = judged(p, values, path, o);
  EXPECT_TRUE(std::any_of(z.alarms.begin(), z.alarms.end(), [](const ZAlarm& alarm) {
    return alarm.test == "row";
  })) << alarms_of(z);
}

// 120 tensors, 600 Z of which those of one tensor are not independent.
TEST(ZTally, RightKernelsRaiseNoAlarmAndZIsStandardNormal) {
  double squares = 0, largest = 0;
  const int tensors = 120;
  for (std::uint64_t seed = 0; seed < tensors; ++seed) {
    const Format format = seed % 3 == 0 ? f32 : seed % 3 == 1 ? bf16 : f16;
    Problem p = cell_problem(format, format, 24, 40);
    p.head_dim = 32;
    const PrecisionPath path = cell_path(format, format == f32 ? 0 : 8, 16);
    const Values values = drawn(p, seed % 2 == 0, seed);
    const ZSummary z = judged(p, values, path, modelled(p, values, path));
    EXPECT_EQ(alarms_of(z), "") << seed;
    for (const Standardised* one : {&z.inward, &z.offset, &z.scattered, &z.sharper, &z.others}) {
      squares += one->total * one->total / (5 * tensors);
      largest = std::max(largest, std::fabs(one->total));
    }
  }
  std::printf("deviation of Z %.3f, largest %.2f\n", std::sqrt(squares), largest);
  EXPECT_GT(std::sqrt(squares), 0.85);
  EXPECT_LT(std::sqrt(squares), 1.15);
}

// Whatever a path declares, and whatever a kernel does within that: errors at either end of what is
// allowed, in common or not. P of few bits is declined.
TEST(ZTally, NoKernelWithinItsDeclarationRaisesAnAlarm) {
  std::mt19937_64 random(23);
  int judged_count = 0;
  for (int round = 0; round < 700; ++round) {
    Problem p = cell_problem(round % 3 == 0 ? f32 : bf16, round % 2 == 0 ? f32 : bf16, 24, 60);
    p.head_dim = p.head_dim_v = 32;
    p.num_splits = round % 4 == 0 ? 3 : 1;
    const PrecisionPath path = random_path(p, random);
    Model model;
    model.freedom = random_freedom(path, random);
    const Values values = drawn(p, round % 5 == 0, static_cast<std::uint64_t>(round));
    ZTally tally;
    tally.add(p, values, path, tensor_of(p, model_attention(p, values, path, model).o),
              model.freedom.tensor_step);
    const bool modelled =
        path.p_format != e4m3 && path.scores_format == f32 && !path.normalize_before_cast;
    EXPECT_EQ(tally.summary().has_value(), modelled) << tally.why_not();
    if (!tally.summary()) continue;
    ++judged_count;
    EXPECT_EQ(alarms_of(*tally.summary()), "")
        << print(path) << " share " << model.freedom.division_share;
  }
  EXPECT_GT(judged_count, 200);
}

TEST(ZTally, NoProblemRaisesAFalseAlarmAndZIsStandardNormal) {
  std::mt19937_64 random(29);
  Index rows = 0;
  double squares = 0, count = 0;
  for (int round = 0; round < 700; ++round) {
    Problem p = random_problem(random, 48);
    if (std::fabs(p.softmax_scale) > 1) p.softmax_scale = default_scale(p.head_dim);
    const PrecisionPath path = random_path(p, random);
    Model model;
    model.freedom = random_freedom(path, random);
    const Values values = random_values(p, random);
    ZTally tally;
    tally.add(p, values, path, tensor_of(p, model_attention(p, values, path, model).o),
              model.freedom.tensor_step);
    const std::optional<ZSummary> z = tally.summary();
    if (!z) continue;
    rows += z->rows;
    for (const Standardised* one :
         {&z->inward, &z->offset, &z->scattered, &z->sharper, &z->others}) {
      squares += one->total * one->total;
      ++count;
    }
    EXPECT_EQ(alarms_of(*z), "") << print(p) << " path " << print(path);
  }
  std::printf("%lld rows of any Problem, deviation of Z %.3f\n", static_cast<long long>(rows),
              std::sqrt(squares / count));
  EXPECT_GT(rows, 10000);
  EXPECT_GT(std::sqrt(squares / count), 0.85);
  EXPECT_LT(std::sqrt(squares / count), 1.15);
}

// A scale of the cache that joins the weight is rounded alike wherever that weight is 1, in every
// row: known, not random. Without that mean Z is 52.
TEST(ZTally, AScaleThatIsRoundedAlikeInEveryRowIsKnown) {
  Problem p = cell_problem(bf16, bf16, 512, 64);
  p.cache = i8;
  p.scales = Scales::tensor;
  PrecisionPath path = cell_path(bf16, 0, 64);
  path.v_scale_in_p = true;
  const Values values = drawn(p, false, 3);
  const Tensor o = modelled(p, values, path);
  EXPECT_EQ(alarms_of(judged(p, values, path, o)), "");
  LikelyErrors likely = likely_errors(p, values, path);
  for (LikelyRow& row : likely.rows) {
    for (Projected& projected : row.projected) projected.mean = 0;
  }
  ZTally forgetful;
  forgetful.add(p, path, o, likely);
  std::printf("without: %s\n", alarms_of(forgetful.summary().value()).c_str());
  EXPECT_NE(alarms_of(forgetful.summary().value()), "");
}

// Where ALiBi alone makes weights differ, every row has the same, and they are rounded alike.
TEST(ZTally, RowsThatShareTheirWeightsAreDeclined) {
  Problem p = cell_problem(bf16, bf16, 64, 128);
  p.alibi = p.causal = true;
  p.softmax_scale = 1e-6F;
  const Values values = drawn(p, false, 3);
  const PrecisionPath path = cell_path(bf16, 0, 64);
  ZTally tally;
  tally.add(p, values, path, modelled(p, values, path));
  EXPECT_FALSE(tally.summary());
}

// Whose output is the same in every row, and rounded alike.
TEST(ZTally, RowsThatShareTheirOutputAreDeclined) {
  Problem p = cell_problem(f16, bf16, 64, 100);
  Values values = drawn(p, false, 3);
  const PrecisionPath path = cell_path(f16, 8, 64);
  for (Index i = 64; i < values.v.count(); ++i) values.v.set(i, values.v.at(i - 64));
  const Tensor o = modelled(p, values, path);
  ZTally tally;
  tally.add(p, values, path, o);
  EXPECT_FALSE(tally.summary());
  LikelyErrors likely = likely_errors(p, values, path);
  for (LikelyRow& row : likely.rows) row.spread = 1;
  ZTally careless;
  careless.add(p, path, o, likely);
  EXPECT_NE(alarms_of(careless.summary().value()), "");  // a false one
}

TEST(ZTally, SaysHowLikelyAFalseAlarmIs) {
  const PrecisionPath path = cell_path(bf16, 0, 64);
  const Problem p = cell_problem(bf16, bf16, 64, 64);
  const Values values = drawn(p, true, 8);
  const ZSummary z = judged(p, values, path, modelled(p, values, path));
  // Five directions beyond 6 / 1.2 = 5 deviations, 5.7e-7 each; elements and rows 1e-7 each; and
  // chi-square by Student's t of 63 degrees beyond 6, 5.2e-8.
  EXPECT_NEAR(z.false_alarm, 5 * 5.733e-7 + 2e-7 + 5.2e-8, 3e-8);
}

}  // namespace
}  // namespace attest
