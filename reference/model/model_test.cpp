// The model by hand where one stage rounds, against the oracle where none does, and against the
// bounds on its declaration where all do.
#include "reference/model/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "reference/bound/acceptance.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/bound/testing/hostile_values.hpp"
#include "reference/model/testing/random_path.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/precision_text.hpp"
#include "reference/random_values.hpp"
#include "reference/testing/random_problem.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Model rounding_only(Stage stage) {
  return {.exact = all_stages() & ~only(stage)};
}

/// The model's stages that are exact err like a kernel whose f32 is double. The order-free bound of
/// an f32 kernel is proportional to u up to terms of u^2, so 2^-29 of it holds for double; it is
/// doubled for those terms.
TEST(Model, IsTheOracleWhenEveryStageIsExact) {
  std::mt19937_64 random(1);
  Index judged = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const Problem problem = random_problem(random, 12);
    const Values values = random_values(problem, random);
    const PrecisionPath path = random_path(problem, random);
    const Modelled got = model_attention(problem, values, path, {.exact = all_stages()});
    const Truth truth = exact_attention(problem, values);
    PrecisionPath f32 = {.v_scale_in_p = path.v_scale_in_p};
    f32.division_error = 0;
    const Bounds bounds = order_free_bounds(problem, values, f32);
    ASSERT_EQ(got.o.size(), truth.o.size());
    ASSERT_EQ(got.lse.size(), truth.lse.size());
    for (std::size_t n = 0; n < truth.o.size(); ++n) {
      if (bounds.o_before[n] == kInfinity) continue;
      ++judged;
      if (std::isnan(truth.o[n])) {
        EXPECT_TRUE(std::isnan(got.o[n]));
      } else {
        EXPECT_LE(std::fabs(got.o[n] - truth.o[n]), 0x1p-28 * bounds.o_before[n]) << print(problem);
      }
    }
    for (std::size_t n = 0; n < truth.lse.size(); ++n) {
      if (bounds.lse[n] == kInfinity || got.lse[n] == truth.lse[n]) continue;
      EXPECT_LE(std::fabs(got.lse[n] - truth.lse[n]), 0x1p-28 * bounds.lse[n]) << print(problem);
    }
  }
  EXPECT_GT(judged, 10000);
}

/// Random problems and paths, on values as hostile as the bound's own tests have them.
struct Drawn {
  Problem problem;
  PrecisionPath path;
  Values values;
  Drawn(std::mt19937_64& random, int turn) {
    problem = random_problem(random, turn % 8 == 0 ? 40 : 12);
    if (turn % 2 == 0) problem.output = Format::f32;  // whose rounding hides nothing
    values = random_values(problem, random);
    if (turn % 3 != 0)
      kHostileChanges[random() % std::size(kHostileChanges)].change(problem, values, random);
    path = random_path(problem, random);
  }
};

TEST(Model, IsNeverRefusedOnItsDeclaration) {
  std::mt19937_64 random(2);
  Index judged = 0;
  std::array<Index, kStrengthNames.size()> rows{};
  for (int turn = 0; turn < 1000; ++turn) {
    const Drawn drawn(random, turn);
    const std::string what = print(drawn.problem) + " | " + print(drawn.path);
    const Model model = {.freedom = random_freedom(drawn.path, random)};
    const Modelled got = model_attention(drawn.problem, drawn.values, drawn.path, model);
    const Truth truth = exact_attention(drawn.problem, drawn.values);
    for (const Strength strength : {Strength::running, Strength::quantised}) {
      const Acceptance accepted =
          acceptance_around(truth, drawn.problem, drawn.values, drawn.path, strength);
      for (const Strength its : accepted.strength) ++rows[static_cast<std::size_t>(its)];
      for (std::size_t n = 0; n < got.o.size(); ++n) {
        if (accepted.o.radius[n] != kInfinity) ++judged;
        ASSERT_TRUE(accepted.o.accepts(got.o[n], n))
            << what << " element " << n << ": " << got.o[n] << " is "
            << accepted.o.error_of(got.o[n], n) / accepted.o.radius[n] << " radii off";
      }
      for (std::size_t n = 0; n < got.lse.size(); ++n) {
        ASSERT_TRUE(accepted.lse.accepts(got.lse[n], n)) << what << " row " << n;
      }
    }
  }
  std::printf("%lld elements\n", static_cast<long long>(judged));
  EXPECT_GT(judged, 1000000);
  for (std::size_t s = 0; s < rows.size(); ++s) EXPECT_GT(rows[s], 10000) << kStrengthNames[s];
}

/// Tensor cores align a subnormal v by the format of the cache, whatever the inputs are.
TEST(Model, IsNotRefusedWhereInputsAndCacheHaveTwoFormats) {
  std::mt19937_64 random(5);
  Index judged = 0;
  for (int turn = 0; turn < 1500; ++turn) {
    Problem problem = random_problem(random, 12);
    problem.input = turn % 2 == 0 ? Format::bf16 : Format::f16;
    problem.cache = turn % 2 == 0 ? Format::f16 : Format::bf16;
    problem.output = Format::f32;
    problem.scales = Scales::none;
    Values values = random_values(problem, random);
    scale_tensor(values.v, std::ldexp(1.0, -12 - turn / 2 % 12));
    if (turn % 5 == 0) scale_tensor(values.k, 0x1p-15);
    PrecisionPath path = random_path(problem, random);
    if (path.tensor_step == 0) continue;
    const Model model = {.freedom = random_freedom(path, random)};
    const Modelled got = model_attention(problem, values, path, model);
    const Truth truth = exact_attention(problem, values);
    for (const Strength strength : {Strength::order_free, Strength::running, Strength::quantised}) {
      const Acceptance accepted = acceptance_around(truth, problem, values, path, strength);
      for (std::size_t n = 0; n < got.o.size(); ++n) {
        if (accepted.o.radius[n] != kInfinity) ++judged;
        ASSERT_TRUE(accepted.o.accepts(got.o[n], n))
            << print(problem) << " | " << print(path) << " element " << n << ": "
            << accepted.o.error_of(got.o[n], n) / accepted.o.radius[n] << " radii off";
      }
    }
  }
  EXPECT_GT(judged, 50000);
}

/// Two ways to the same number: the quantised bound's centre, and the model in which nothing rounds
/// but P. They differ by what double rounds, 2^-29 of what the bound allows f32 for the same.
TEST(Model, RoundsPAsTheQuantisedBoundDoes) {
  std::mt19937_64 random(4);
  Index compared = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const Drawn drawn(random, turn);
    const Problem& problem = drawn.problem;
    const Modelled got =
        model_attention(problem, drawn.values, drawn.path, rounding_only(Stage::p_cast));
    const Truth truth = exact_attention(problem, drawn.values);
    const Acceptance accepted = acceptance_around(truth, problem, drawn.values, drawn.path);
    for (std::size_t n = 0; n < got.o.size(); ++n) {
      // Elsewhere the truth itself is the centre, because another bound is the sharper one there.
      if (!std::isfinite(accepted.o.radius[n]) || !std::isfinite(truth.o[n])) continue;
      if (accepted.o.centre[n] == truth.o[n]) continue;
      ++compared;
      ASSERT_LE(std::fabs(got.o[n] - accepted.o.centre[n]), 0x1p-16 * accepted.o.radius[n])
          << print(problem) << " | " << print(drawn.path) << " element " << n;
    }
  }
  EXPECT_GT(compared, 10000);
}

/// Three keys, one query of one column: logits are k, V is v.
struct Small {
  Problem problem{.seqlen_kv = 3, .softmax_scale = 1};
  Values values;
  Small(std::vector<double> k, std::vector<double> v) {
    values = zero_values(problem);
    values.q.set(0, 1);
    for (Index j = 0; j < 3; ++j) {
      values.k.set(j, k[static_cast<std::size_t>(j)]);
      values.v.set(j, v[static_cast<std::size_t>(j)]);
    }
  }
};

TEST(Model, RoundsPWhereItSays) {
  const Small small({0, -1, -2}, {1, 3, 10});
  const PrecisionPath path = {.p_format = Format::bf16, .kv_block = 64};
  const double p1 = std::exp(-1.0), p2 = std::exp(-2.0), l = 1 + p1 + p2;
  const double q1 = rounded(Format::bf16, p1), q2 = rounded(Format::bf16, p2);
  const auto o = [&](PrecisionPath its) {
    return model_attention(small.problem, small.values, its, rounding_only(Stage::p_cast)).o[0];
  };
  EXPECT_NEAR(o(path), (1 + 3 * q1 + 10 * q2) / l, 0x1p-48);
  PrecisionPath cast_sums = path;
  cast_sums.row_sum_of_rounded_p = true;
  EXPECT_NEAR(o(cast_sums), (1 + 3 * q1 + 10 * q2) / (1 + q1 + q2), 0x1p-48);
}

TEST(Model, TakesReferencesInTheDeclaredOrder) {
  const Small small({0, 3, 1}, {1, 3, 10});
  PrecisionPath path = {.p_format = Format::bf16, .kv_block = 1};
  const auto o = [&] {
    return model_attention(small.problem, small.values, path, rounding_only(Stage::p_cast)).o[0];
  };
  const auto cast = [](double p) { return rounded(Format::bf16, p); };
  const double l = std::exp(-3.0) + 1 + std::exp(-2.0);
  // Rising: the first key is cast as 1 and then made smaller.
  EXPECT_NEAR(o(), (std::exp(-3.0) + 3 + 10 * cast(std::exp(-2.0))) / l, 0x1p-48);
  path.kv_blocks_descending = true;  // the third is cast as 1
  EXPECT_NEAR(o(), (cast(std::exp(-3.0)) + 3 + 10 * std::exp(-2.0)) / l, 0x1p-48);
  path.kv_blocks_descending = false;
  path.rescale_threshold_log2 =
      8;  // 3 nats are less than 8 powers of two: the first key stays the reference
  EXPECT_NEAR(o(), (1 + 3 * cast(std::exp(3.0)) + 10 * cast(std::exp(1.0))) / (l * std::exp(3.0)),
              0x1p-48);
  path.rescale_threshold_log2 = 0;
  path.interleaved_accumulators =
      2;  // the first and the third key share a state, the second has its own
  EXPECT_NEAR(o(), (std::exp(-3.0) + 3 + 10 * std::exp(-2.0)) / l, 0x1p-48);
}

TEST(Model, ShiftsPWhereItIsCast) {
  const Small small({0, -8, -9}, {1, 3, 10});
  PrecisionPath path = {.p_format = Format::e4m3, .kv_block = 64};
  const auto o = [&] {
    return model_attention(small.problem, small.values, path, rounding_only(Stage::p_cast)).o[0];
  };
  const double p1 = std::exp(-8.0), p2 = std::exp(-9.0), l = 1 + p1 + p2;
  EXPECT_NEAR(o(), 1 / l, 0x1p-48);  // both are below half of e4m3's least number
  path.p_scale_log2 = 8;
  const double q1 = rounded(Format::e4m3, 256 * p1) / 256,
               q2 = rounded(Format::e4m3, 256 * p2) / 256;
  EXPECT_GT(q2, 0);
  EXPECT_NEAR(o(), (1 + 3 * q1 + 10 * q2) / l, 0x1p-48);
}

/// What a stage does alone, where all others are exact: the output cast by hand, the others by what
/// they cannot but do: move the result by less than their own unit, and move it.
TEST(Model, EveryStageRoundsAndNoOther) {
  std::mt19937_64 random(3);
  Problem problem{.seqlen_q = 8, .seqlen_kv = 100, .head_dim = 16, .head_dim_v = 8};
  problem.softmax_scale = 0.25F;
  const Values values = random_values(problem, random);
  const PrecisionPath path = {.p_format = Format::bf16, .kv_block = 16};
  const Modelled truth = model_attention(problem, values, path, {.exact = all_stages()});
  for (std::size_t n = 0; n < kStageNames.size(); ++n) {
    const auto stage = static_cast<Stage>(n);
    const Modelled got = model_attention(problem, values, path, rounding_only(stage));
    double largest = 0;
    for (std::size_t at = 0; at < got.o.size(); ++at) {
      if (stage == Stage::output_cast) {
        EXPECT_EQ(got.o[at], rounded(Format::f32, truth.o[at]));
      }
      largest = std::max(largest, std::fabs(got.o[at] - truth.o[at]));
    }
    EXPECT_GT(largest, 0x1p-40) << kStageNames[n];
    EXPECT_LT(largest, stage == Stage::p_cast ? 0x1p-8 : 0x1p-16) << kStageNames[n];
  }
}

}  // namespace
}  // namespace attest
