// Moved caches: the exact answers on keys and values moved as far as they may be never leave the
// bound, and come near it.
#include "reference/bound/moved_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "reference/bound/constants.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/random_values.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

/// Every element of `tensor` by `size` times a power of two, either way; by how much joins
/// `errors`.
void move(Tensor& tensor, double size, std::mt19937_64& random, std::vector<double>& errors) {
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    const double step = std::ldexp(size, -static_cast<int>(random() % 4));
    const double before = tensor.at(flat);
    tensor.set(flat, before + (random() % 2 == 0 ? step : -step));
    errors.push_back(std::fabs(tensor.at(flat) - before));  // exact: what f32 made of it
  }
}

Problem plain_problem(std::mt19937_64& random) {
  Problem p = random_problem(random, 9);
  p.input = p.output = Format::f32;
  p.cache = std::nullopt;
  p.scales = Scales::none;
  p.ring = 0;
  p.softmax_scale = default_scale(p.head_dim);
  return p;
}

TEST(MovedCache, NothingMovesFurther) {
  std::mt19937_64 random(31);
  Index compared = 0;
  double nearest_o = 0, nearest_lse = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Problem p = plain_problem(random);
    const Values values = random_values(p, random);
    Values others = values;
    CacheError error;
    const double size = std::exp2(-static_cast<double>(random() % 12));
    move(others.k, size, random, error.k);
    move(others.v, random() % 2 == 0 ? size : 0, random, error.v);
    const Bounds bounds = moved_cache_bounds(p, values, error);
    const Truth meant = exact_attention(p, values), moved = exact_attention(p, others);
    const auto judge = [&](double a, double b, double bound, double& nearest) {
      if (!std::isfinite(bound) || (std::isnan(a) && std::isnan(b)) || a == b) return;
      ++compared;
      EXPECT_LE(std::fabs(a - b), bound);
      if (bound > 0) nearest = std::max(nearest, std::fabs(a - b) / bound);
    };
    for (std::size_t n = 0; n < meant.o.size(); ++n) {
      judge(meant.o[n], moved.o[n], bounds.o[n], nearest_o);
    }
    for (std::size_t n = 0; n < meant.lse.size(); ++n) {
      judge(meant.lse[n], moved.lse[n], bounds.lse[n], nearest_lse);
    }
  }
  EXPECT_GT(compared, 10'000);
  EXPECT_GT(nearest_o, 0.5);
  EXPECT_GT(nearest_lse, 0.5);
}

// By hand: q = 1, two keys at 0, values 0 and 1; one logit may move.
TEST(MovedCache, TwoKeysByHand) {
  constexpr double kEnlarged = 1 + bound::kEvaluation;
  Problem p;
  p.seqlen_kv = 2;
  Values values = zero_values(p);
  values.q.set(0, 1);
  values.v.set(1, 1);
  const Bounds bounds = moved_cache_bounds(p, values, {{0, std::log(2.5)}, {0, 0}});
  // Theta = 3/2 for the second key, whose share is 1/2: S is 3/4, so the hull it is.
  EXPECT_DOUBLE_EQ(bounds.o[0], kEnlarged);
  EXPECT_DOUBLE_EQ(bounds.lse[0], std::log(2.5) * kEnlarged);
  const Bounds near = moved_cache_bounds(p, values, {{0, std::log(1.5)}, {0, 0.125}});
  // Theta = 1/2, S = 1/4, |v - o| = 1/2: 1/8 over 3/4, and the value's own 1/8.
  EXPECT_DOUBLE_EQ(near.o[0], (1.0 / 6 + 0.125) * kEnlarged);
}

}  // namespace
}  // namespace attest
