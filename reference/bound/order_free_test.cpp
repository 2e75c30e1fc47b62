// What the bound says where it can be said by hand, and that wrong kernels are refused. That right
// ones are not is soundness_test's business.
#include "reference/bound/order_free.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/bound/testing/tally.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refusal {
  Index refused = 0, cases = 0;
};

Refusal refusals(Mistake mistake, Recipe recipe, Problem p) {
  Refusal count;
  std::mt19937_64 random(13);
  for (int round = 0; round < 40; ++round, ++count.cases) {
    const Values values = random_values(p, random);
    recipe.mistake = mistake;
    Tally tally;
    judge(p, acceptance(p, values, path_of(recipe), Strength::order_free),
          simulate(p, values, recipe), tally);
    if (tally.refused > 0) ++count.refused;
  }
  return count;
}

TEST(OrderFreeBound, WrongKernelsAreRefusedEveryTime) {
  const Problem p{.num_heads_q = 2,
                  .seqlen_q = 6,
                  .seqlen_kv = 9,
                  .head_dim = 16,
                  .head_dim_v = 8,
                  .softmax_scale = 0.25F,
                  .causal = true};
  const Recipe recipe{.name = "wrong", .kv_block = 2, .fma = true};
  EXPECT_EQ(refusals(Mistake::none, recipe, p).refused, 0);
  for (Mistake mistake :
       {Mistake::drops_key, Mistake::scale_one_percent, Mistake::leaks_key, Mistake::no_rescale}) {
    const Refusal count = refusals(mistake, recipe, p);
    EXPECT_EQ(count.refused, count.cases) << static_cast<int>(mistake);
  }
}

TEST(OrderFreeBound, WrongKernelsAreRefusedThroughBf16Too) {
  Problem p{.seqlen_q = 6,
            .seqlen_kv = 9,
            .head_dim = 16,
            .head_dim_v = 8,
            .input = Format::bf16,
            .output = Format::bf16,
            .softmax_scale = 0.25F,
            .causal = true};
  const Recipe recipe{.name = "wrong", .kv_block = 2, .p_format = Format::bf16};
  EXPECT_EQ(refusals(Mistake::none, recipe, p).refused, 0);
  for (Mistake mistake : {Mistake::drops_key, Mistake::leaks_key, Mistake::no_rescale}) {
    const Refusal count = refusals(mistake, recipe, p);
    EXPECT_EQ(count.refused, count.cases) << static_cast<int>(mistake);
  }
}

Bounds bounds_of(const Problem& p, const Values& values) {
  return order_free_bounds(p, values, {});
}

TEST(OrderFreeBound, IsAFewRoundingsForOneKey) {
  Problem p;
  Values values = zero_values(p);
  values.v.set(0, 1.0);
  const Bounds bounds = bounds_of(p, values);
  EXPECT_GT(bounds.o[0], 0x1p-24);  // the output alone costs this much
  EXPECT_LT(bounds.o[0], 10 * 0x1p-24);
  EXPECT_LT(bounds.lse[0], 10 * 0x1p-24);
}

TEST(OrderFreeBound, IsZeroWithoutKeysAndInfiniteBehindTheLength) {
  Problem p{.batch = 2, .seqlen_q = 2, .seqlen_kv = 2, .sinks = false};
  p.seqlens_q = {1, 2};
  p.seqlens_kv = {2, 0};
  const Bounds bounds = bounds_of(p, zero_values(p));
  EXPECT_LT(bounds.o[0], 1e-6);
  EXPECT_EQ(bounds.o[1], kInfinity);
  EXPECT_EQ(bounds.lse[1], kInfinity);
  EXPECT_EQ(bounds.o[2], 0.0);
  EXPECT_EQ(bounds.lse[2], 0.0);
  p.sinks = true;
  Values values = zero_values(p);
  values.sinks->set(0, 3.0);
  EXPECT_EQ(bounds_of(p, values).o[2], 0.0);
  EXPECT_GT(bounds_of(p, values).lse[2], 0.0);
  EXPECT_LT(bounds_of(p, values).lse[2], 1e-5);
}

TEST(OrderFreeBound, PromisesNothingWhereAnIntermediateMayOverflow) {
  Problem p{.seqlen_kv = 2, .head_dim = 2, .head_dim_v = 2};
  Values values = zero_values(p);
  values.q.set(0, 0x1p100);
  values.k.set(0, 0x1p27);
  EXPECT_EQ(bounds_of(p, values).o[0], kInfinity);
  EXPECT_EQ(bounds_of(p, values).lse[0], kInfinity);
  values = zero_values(p);
  values.v.set(0, 3e38);  // column 0 alone
  EXPECT_EQ(bounds_of(p, values).o[0], kInfinity);
  EXPECT_LT(bounds_of(p, values).o[1], 1e-30);
  values.v.set(0, std::nan(""));
  EXPECT_EQ(bounds_of(p, values).o[0], kInfinity);
  values.k.set(0, std::nan(""));
  EXPECT_EQ(bounds_of(p, values).o[1], kInfinity);
  Problem narrow{.output = Format::f16};
  values = zero_values(narrow);
  values.v.set(0, 65519.996);  // the last f32 before what f16 rounds to infinity
  EXPECT_EQ(bounds_of(narrow, values).o[0], kInfinity);
  values.v.set(0, 65472.0);
  EXPECT_LE(bounds_of(narrow, values).o[0], 64.0);
}

TEST(OrderFreeBound, PromisesNothingUnderAnInfiniteBiasThatMayMeetNaN) {
  Problem p{.seqlen_kv = 2, .bias = true};
  Values values = zero_values(p);
  values.bias->set(0, -kInfinity);
  EXPECT_LT(bounds_of(p, values).o[0], 1e-5);
  values.k.set(0, std::nan(""));
  EXPECT_EQ(bounds_of(p, values).o[0], kInfinity);
}

TEST(OrderFreeBound, SurvivesAnyDeclaration) {
  std::mt19937_64 random(19);
  const Problem p{.seqlen_kv = 5, .head_dim = 3, .softcap = 2.0, .num_splits = 2};
  const Values values = random_values(p, random);
  const Bounds least = bounds_of(p, values);
  for (double error : {-1.0, 0.0, 0.5, 1.0, 1e300, kInfinity, std::nan("")}) {
    for (double PrecisionPath::*field :
         {&PrecisionPath::exp_error, &PrecisionPath::log_error, &PrecisionPath::tanh_error,
          &PrecisionPath::division_error}) {
      PrecisionPath path;
      path.*field = error;
      path.keys_per_rescale = error > 0 ? std::numeric_limits<Index>::max() : -7;
      const Bounds bounds = order_free_bounds(p, values, path);
      EXPECT_GT(bounds.o[0], 0.0);
      EXPECT_GT(bounds.lse[0], 0.0);
      if (error <= 0) {
        EXPECT_EQ(bounds.o[0], least.o[0]);
      }
    }
  }
}

TEST(OrderFreeBound, GrowsWithWhatIsDeclared) {
  std::mt19937_64 random(17);
  Problem p{.seqlen_kv = 40, .head_dim = 8, .head_dim_v = 1};
  const Values values = random_values(p, random);
  const Bounds least = bounds_of(p, values);
  PrecisionPath path;
  path.exp_error = 0x1p-10;
  EXPECT_GT(order_free_bounds(p, values, path).o[0], 10 * least.o[0]);
  path = {.p_format = Format::bf16};
  EXPECT_GT(order_free_bounds(p, values, path).o[0], 10 * least.o[0]);
  EXPECT_EQ(order_free_bounds(p, values, path).lse[0], least.lse[0]);
  path = {.log_error = 1e-3};
  EXPECT_GT(order_free_bounds(p, values, path).lse[0], 1e-3);
  EXPECT_EQ(order_free_bounds(p, values, path).o[0], least.o[0]);
  path = {.keys_per_rescale = 64};
  EXPECT_LT(order_free_bounds(p, values, path).o[0], least.o[0]);
  p.num_splits = 4;
  EXPECT_GT(bounds_of(p, values).o[0], least.o[0]);
}

}  // namespace
}  // namespace attest
