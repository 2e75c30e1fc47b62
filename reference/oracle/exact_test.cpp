// The definition against answers worked out by hand, its two precisions against each other, and
// what must not matter.
#include "reference/oracle/exact.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/random_values.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Answers are closed forms evaluated in double: a few roundings away from the nearest double.
void expect_near(double found, double wanted) {
  EXPECT_LE(std::fabs(found - wanted), 8 * 0x1p-52 * std::fabs(wanted))
      << found << " instead of " << wanted;
}

/// q = 1, k = the logits, v = the values; scale 1.
struct Hand {
  Problem problem;
  Values values;
  Hand(Problem asked, std::vector<double> logits, std::vector<double> v) : problem(asked) {
    problem.seqlen_kv = static_cast<Index>(logits.size());
    values = zero_values(problem);
    for (Index i = 0; i < values.q.count(); ++i) values.q.set(i, 1.0);
    for (Index j = 0; j < problem.seqlen_kv; ++j) {
      values.k.set(j, logits[static_cast<std::size_t>(j)]);
      values.v.set(j, v[static_cast<std::size_t>(j)]);
    }
  }
  Truth truth() const { return exact_attention(problem, values); }
};

TEST(ExactAttention, EqualLogitsGiveTheMeanAndLogOfTheCount) {
  const Truth truth = Hand({}, {0, 0, 0, 0}, {1, 2, 3, 6}).truth();
  EXPECT_EQ(truth.o[0], 3.0);
  expect_near(truth.lse[0], std::log(4.0));
}

TEST(ExactAttention, OneKeyIsCopiedAndItsLogitIsTheLse) {
  const Truth truth = Hand({}, {-7.25}, {0.1F}).truth();
  EXPECT_EQ(truth.o[0], static_cast<double>(0.1F));
  EXPECT_EQ(truth.lse[0], -7.25);
  EXPECT_EQ(truth.o_tail[0], 0.0);
}

// Logits that are f32 cannot be ln 2 exactly; the tail of f32(ln 2) is put into the closed form.
TEST(ExactAttention, LogitsLn2AndLn3GiveWeightsTwoAndThreeFifths) {
  const double a = static_cast<float>(std::log(2.0)), b = static_cast<float>(std::log(3.0));
  const Truth truth = Hand({}, {a, b}, {10, 20}).truth();
  const double wa = 2 * std::exp(a - std::log(2.0)), wb = 3 * std::exp(b - std::log(3.0));
  expect_near(truth.o[0], (10 * wa + 20 * wb) / (wa + wb));
  // 10 * 2/5 + 20 * 3/5, as near as f32 logits come: they are half an ulp off at most, 2^-25 below
  // 1 and 2^-24 above, and o moves by 10 w (1 - w) <= 10/4 per unit of their difference.
  EXPECT_LE(std::abs(truth.o[0] - 16.0), 2.5 * (0x1p-25 + 0x1p-24));
  expect_near(truth.lse[0], std::log(wa + wb));
}

TEST(ExactAttention, TheScaleMultipliesTheLogit) {
  const Truth truth = Hand({.softmax_scale = 0.5F}, {2, 0}, {1, 0}).truth();
  expect_near(truth.o[0], 1 / (1 + std::exp(-1.0)));
  expect_near(truth.lse[0], std::log(std::exp(1.0) + 1));
}

TEST(ExactAttention, HugeLogitsNeitherOverflowNorVanish) {
  const Truth high = Hand({}, {1e6, 1e6 + 1}, {0, 1}).truth();
  expect_near(high.o[0], 1 / (1 + std::exp(-1.0)));
  expect_near(high.lse[0], 1e6 + 1 + std::log1p(std::exp(-1.0)));
  const Truth low = Hand({}, {-1000, -1050}, {3, 5}).truth();
  EXPECT_EQ(low.o[0], 3.0);  // 2 e^-50 is far below an ulp of 3, and is not lost
  expect_near(low.o_tail[0], 2 * std::exp(-50.0));
}

TEST(ExactAttention, CausalBottomRightLetsTheLastQuerySeeAll) {
  // Two queries over three keys: query 0 sees keys 0, 1; query 1 sees all. Ramp V = 1, 2, 3.
  const Truth truth = Hand({.seqlen_q = 2, .causal = true}, {0, 0, 0}, {1, 2, 3}).truth();
  EXPECT_EQ(truth.o, (std::vector<double>{1.5, 2.0}));
}

TEST(ExactAttention, CausalTopLeftLetsTheFirstQuerySeeOneKey) {
  const Truth truth =
      Hand({.seqlen_q = 2, .causal = true, .alignment = Alignment::top_left}, {0, 0, 0}, {1, 2, 3})
          .truth();
  EXPECT_EQ(truth.o, (std::vector<double>{1.0, 1.5}));
}

TEST(ExactAttention, MoreQueriesThanKeysLeaveTheFirstRowsEmpty) {
  Problem problem{.seqlen_q = 3, .causal = true};
  const Truth zero = Hand(problem, {0, 0}, {4, 6}).truth();
  EXPECT_EQ(zero.o, (std::vector<double>{0.0, 4.0, 5.0}));
  EXPECT_EQ(zero.lse[0], -kInfinity);
  problem.empty_row = EmptyRow::nan;
  const Truth nan = Hand(problem, {0, 0}, {4, 6}).truth();
  EXPECT_TRUE(std::isnan(nan.o[0]));
  EXPECT_EQ(nan.lse[0], -kInfinity);
  EXPECT_EQ(nan.o[1], 4.0);
}

TEST(ExactAttention, NoKeysAtAll) {
  const Truth truth = Hand({.seqlen_q = 2}, {}, {}).truth();
  EXPECT_EQ(truth.o, (std::vector<double>{0.0, 0.0}));
  EXPECT_EQ(truth.lse, (std::vector<double>{-kInfinity, -kInfinity}));
}

TEST(ExactAttention, WindowBoundsAreInclusive) {
  // Four queries on four keys; one to the left, none to the right.
  Problem problem{.seqlen_q = 4, .window_left = 1, .window_right = 0};
  EXPECT_EQ(Hand(problem, {0, 0, 0, 0}, {1, 2, 4, 8}).truth().o,
            (std::vector<double>{1.0, 1.5, 3.0, 6.0}));
  problem.window_left = kUnbounded;
  problem.window_right = 1;
  EXPECT_EQ(Hand(problem, {0, 0, 0, 0}, {1, 2, 3, 6}).truth().o,
            (std::vector<double>{1.5, 2.0, 3.0, 3.0}));
  problem.window_left = 0;
  problem.causal = true;  // the narrower of the two wins
  EXPECT_EQ(Hand(problem, {0, 0, 0, 0}, {1, 2, 3, 6}).truth().o,
            (std::vector<double>{1.0, 2.0, 3.0, 6.0}));
}

TEST(ExactAttention, AWindowFollowsTheDiagonal) {
  // One query, four keys, bottom right: it stands at key 3. Top left: at key 0.
  Problem problem{.window_left = 1, .window_right = 0};
  EXPECT_EQ(Hand(problem, {0, 0, 0, 0}, {1, 2, 4, 8}).truth().o[0], 6.0);
  problem.alignment = Alignment::top_left;
  EXPECT_EQ(Hand(problem, {0, 0, 0, 0}, {1, 2, 4, 8}).truth().o[0], 1.0);
}

TEST(ExactAttention, ASinkJoinsTheDenominatorOnly) {
  Hand hand({.sinks = true}, {0, 0, 0}, {4, 8, 12});
  EXPECT_EQ(hand.truth().o[0], 6.0);  // 24 / (3 + e^0)
  expect_near(hand.truth().lse[0], std::log(4.0));
  hand.values.sinks->set(0, 2.0);
  expect_near(hand.truth().o[0], 24 / (3 + std::exp(2.0)));
  expect_near(hand.truth().lse[0], std::log(3 + std::exp(2.0)));
  hand.values.sinks->set(0, 200.0);
  expect_near(hand.truth().o[0], 24 / (3 + std::exp(200.0)));
  EXPECT_EQ(hand.truth().lse[0], 200.0);
}

TEST(ExactAttention, ASinkIsTheLseOfAnEmptyRow) {
  Hand hand({.sinks = true}, {}, {});
  hand.values.sinks->set(0, 1.5);
  EXPECT_EQ(hand.truth().lse[0], 1.5);
  EXPECT_EQ(hand.truth().o[0], 0.0);
  hand.problem.lse_base = LogBase::two;
  expect_near(hand.truth().lse[0], 1.5 / std::log(2.0));
}

TEST(ExactAttention, SoftcapActsAfterTheScaleAndBeforeTheBias) {
  Hand hand({.softmax_scale = 0.5F, .softcap = 2.0, .bias = true}, {8, 0}, {1, 0});
  hand.values.bias->set(0, 3.0);
  const double s = 2 * std::tanh(8 * 0.5 / 2) + 3;
  expect_near(hand.truth().o[0], 1 / (1 + std::exp(-s)));
  expect_near(hand.truth().lse[0], s + std::log1p(std::exp(-s)));
}

TEST(ExactAttention, AlibiSubtractsSlopeTimesDistance) {
  // Two queries on three keys, bottom right: query 0 stands at key 1. Slope 1/2, no causal mask.
  Hand hand({.seqlen_q = 2, .alibi = true}, {0, 0, 0}, {1, 0, 0});
  hand.values.alibi_slopes->set(0, 0.5);
  const double a = std::exp(-0.5), b = std::exp(-1.0);
  expect_near(hand.truth().o[0], a / (a + 1 + a));
  expect_near(hand.truth().o[1], b / (b + a + 1));
  hand.problem.alignment = Alignment::top_left;
  expect_near(hand.truth().o[0], 1 / (1 + a + b));
}

TEST(ExactAttention, ABiasOfMinusInfinityHidesTheKey) {
  Hand hand({.bias = true}, {0, 0}, {7, 9});
  hand.values.bias->set(1, -kInfinity);
  hand.values.v.set(1, kNaN);
  EXPECT_EQ(hand.truth().o[0], 7.0);
  EXPECT_EQ(hand.truth().lse[0], 0.0);
  hand.values.bias->set(0, -kInfinity);
  EXPECT_EQ(hand.truth().o[0], 0.0);
  EXPECT_EQ(hand.truth().lse[0], -kInfinity);
}

TEST(ExactAttention, TheMaskHidesKeysPerBatchAndQuery) {
  Hand hand({.seqlen_q = 2, .mask = true}, {0, 0, 0}, {1, 2, 4});
  hand.values.mask->visible = {1, 0, 1, 0, 0, 0};
  EXPECT_EQ(hand.truth().o, (std::vector<double>{2.5, 0.0}));
  EXPECT_EQ(hand.truth().lse[1], -kInfinity);
}

TEST(ExactAttention, LengthsArePerBatchEntryAndMoveTheDiagonal) {
  Problem p{.batch = 2, .seqlen_q = 2, .seqlen_kv = 3, .causal = true};
  p.seqlens_q = {1, 2};
  p.seqlens_kv = {3, 2};
  Values values = zero_values(p);
  for (Index j = 0; j < 6; ++j) values.v.set(j, std::ldexp(1.0, static_cast<int>(j)));
  values.v.set(5, kNaN);  // batch entry 1 has two keys only
  const Truth truth = exact_attention(p, values);
  expect_near(truth.o[0], 7.0 / 3);  // the only query of entry 0 sees keys 1, 2, 4
  EXPECT_EQ(truth.o[1], 0.0);        // behind the query length
  EXPECT_EQ(truth.o[2], 8.0);        // entry 1: diagonal 0, keys 8, 16
  EXPECT_EQ(truth.o[3], 12.0);
}

TEST(ExactAttention, HeadsShareKeysInOrder) {
  // Six query heads on two KV heads: 0, 1, 2 read head 0 and 3, 4, 5 read head 1. d_v = 2.
  Problem p{.num_heads_q = 6, .num_heads_kv = 2, .head_dim_v = 2};
  Values values = zero_values(p);
  for (Index i = 0; i < 4; ++i) values.v.set(i, static_cast<double>(i + 1));
  EXPECT_EQ(exact_attention(p, values).o,
            (std::vector<double>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(ExactAttention, TheInnerProductRunsOverTheDepth) {
  Problem p{.seqlen_kv = 2, .head_dim = 3};
  Values values = zero_values(p);
  for (Index c = 0; c < 3; ++c) {
    values.q.set(c, static_cast<double>(c + 1));  // 1 2 3
    values.k.set(3 + c, static_cast<double>(1));  // key 1: 1 1 1, logit 6; key 0: logit 0
  }
  values.v.set(1, 1.0);
  expect_near(exact_attention(p, values).o[0], 1 / (1 + std::exp(-6.0)));
}

TEST(ExactAttention, LseInBaseTwo) {
  expect_near(Hand({.lse_base = LogBase::two}, {0, 0, 0, 0}, {1, 1, 1, 1}).truth().lse[0], 2.0);
}

TEST(ExactAttention, NotANumberShowsWhereItIsVisibleAndNowhereElse) {
  Problem p{.seqlen_q = 3, .seqlen_kv = 3, .head_dim = 2, .head_dim_v = 2, .causal = true};
  Values values = zero_values(p);
  values.k.set(0, 0, 1, 0, kNaN);  // key 1: seen by queries 1 and 2
  Truth truth = exact_attention(p, values);
  EXPECT_EQ(truth.o[0], 0.0);
  EXPECT_EQ(truth.lse[0], 0.0);
  for (std::size_t element : {2, 3, 4, 5}) EXPECT_TRUE(std::isnan(truth.o[element]));
  EXPECT_TRUE(std::isnan(truth.lse[1]) && std::isnan(truth.lse[2]));
  values = zero_values(p);
  values.v.set(0, 0, 2, 1, kNaN);  // value 2, column 1: seen by query 2 in that column
  truth = exact_attention(p, values);
  for (std::size_t element : {0, 1, 2, 3, 4}) EXPECT_EQ(truth.o[element], 0.0);
  EXPECT_TRUE(std::isnan(truth.o[5]));
  expect_near(truth.lse[2], std::log(3.0));
}

TEST(ExactAttention, InfinitiesFollowTheArithmetic) {
  Hand infinite_value({}, {0, 0}, {kInfinity, 1});
  EXPECT_EQ(infinite_value.truth().o[0], kInfinity);
  Hand infinite_logit({}, {kInfinity, 1}, {1, 1});
  EXPECT_TRUE(std::isnan(infinite_logit.truth().o[0]));  // exp(inf - inf)
  Hand vanishing({}, {-kInfinity, 1}, {5, 3});
  EXPECT_EQ(vanishing.truth().o[0], 3.0);
}

TEST(ExactAttention, FiftyAndHundredDigitsAgree) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 120; ++round) {
    Problem p = random_problem(random, 9);
    if (std::fabs(p.softmax_scale) > 100) p.softmax_scale = 1;
    const Values values = random_values(p, random);
    const Truth fifty = exact_attention(p, values, Digits::fifty);
    const Truth hundred = exact_attention(p, values, Digits::hundred);
    ASSERT_GE(certified_digits(p, values), 45) << print(p);
    for (std::size_t i = 0; i < fifty.o.size(); ++i) {
      if (std::isnan(fifty.o[i])) {
        ASSERT_TRUE(std::isnan(hundred.o[i]));
        continue;
      }
      ASSERT_EQ(fifty.o[i], hundred.o[i]) << print(p);
    }
    ASSERT_EQ(fifty.lse, hundred.lse) << print(p);
  }
}

TEST(CertifiedDigits, CancellationIsMeasuredAgainstWhatCancels) {
  // Weights of 1 and e around it; the terms of each logit cancel exactly, but not in order.
  const Hand hand({}, {0, 1, 0, 1}, {1, 3, -1, -3});
  EXPECT_GE(certified_digits(hand.problem, hand.values), 45);
  EXPECT_LT(std::fabs(hand.truth().o[0]), 1e-45);
  EXPECT_EQ(certified_digits(Hand({}, {}, {}).problem, Hand({}, {}, {}).values), 50);
}

// A window may be as wide as an Index can say: what lies in it is a matter of distance.
TEST(ExactAttention, TheWidestWindowsHideNothing) {
  constexpr Index kWidest = std::numeric_limits<Index>::max();
  for (const Index queries : {1, 5}) {  // with 5 the first four stand before the first key
    Problem p{.seqlen_q = queries, .seqlen_kv = 2, .head_dim = 2, .head_dim_v = 2};
    const Values values = zero_values(p);
    for (Index i = 0; i < queries; ++i) {
      for (Index j = 0; j < p.seqlen_kv; ++j) {
        p.window_left = kWidest;
        p.window_right = kUnbounded;
        EXPECT_TRUE(visible(p, values, 0, i, j)) << i << " " << j;
        p.window_left = kUnbounded;
        p.window_right = kWidest;
        EXPECT_TRUE(visible(p, values, 0, i, j)) << i << " " << j;
      }
    }
  }
}

// Stored numbers times their scales are the k and v of the formula.
TEST(ExactAttention, AScaledCacheIsTheCacheItStandsFor) {
  std::mt19937_64 random(5);
  for (const Scales scales : {Scales::tensor, Scales::head, Scales::token}) {
    Problem stored{.batch = 2, .num_heads_q = 2, .num_heads_kv = 2, .seqlen_q = 2, .seqlen_kv = 3};
    stored.head_dim = stored.head_dim_v = 4;
    Problem plain = stored;
    stored.cache = Format::i8;
    stored.scales = scales;
    const Values quantised = random_values(stored, random);
    Values values = quantised;
    values.k_scales.reset();
    values.v_scales.reset();
    values.k = values.v = Tensor(Format::f32, quantised.k.extent);
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < 2; ++h) {
        for (Index j = 0; j < 3; ++j) {
          // Powers of two, so that the products are f32 numbers.
          const double k = std::ldexp(1.0, std::ilogb(scale_at(quantised.k_scales, b, h, j)));
          const double v = std::ldexp(1.0, std::ilogb(scale_at(quantised.v_scales, b, h, j)));
          for (Index c = 0; c < 4; ++c) {
            values.k.set(b, h, j, c, quantised.k.at(b, h, j, c) * k);
            values.v.set(b, h, j, c, quantised.v.at(b, h, j, c) * v);
          }
        }
      }
    }
    Values exact_powers = quantised;
    for (auto* numbers : {&*exact_powers.k_scales, &*exact_powers.v_scales}) {
      for (Index i = 0; i < numbers->count(); ++i) {
        numbers->set(i, std::ldexp(1.0, std::ilogb(numbers->at(i))));
      }
    }
    const Truth got = exact_attention(stored, exact_powers), want = exact_attention(plain, values);
    EXPECT_EQ(got.o, want.o);
    EXPECT_EQ(got.lse, want.lse);
  }
}

}  // namespace
}  // namespace attest
