// Bounds under attack: seeded hill climbing over the inputs of one row, and over all that a correct
// kernel may choose, for the largest error / radius. It must never exceed 1, or the bound is
// unsound; and it must come near, or the bound is merely loose.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "reference/bound/acceptance.hpp"
#include "reference/formats.hpp"
#include "reference/model/model.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One query over some keys, of one column: what a climb changes, and what it is judged by.
struct Attempt {
  Problem problem;
  PrecisionPath path;
  Values values;
  std::vector<double> exp_shares;  // per key
  Freedom freedom;

  Modelled modelled() const {
    Freedom its = freedom;
    its.exp_share = [this](Index, Index key) { return exp_shares[static_cast<std::size_t>(key)]; };
    return model_attention(problem, values, path, {.freedom = its});
  }
};

struct Score {
  double ratio = 0;  // error / radius, where a bound of the strength in question applies
  bool accepted = true;
};

/// O is climbed; LSE only has to be accepted as well.
Score score(const Attempt& attempt, Strength strength) {
  const Modelled got = attempt.modelled();
  const Acceptance its = acceptance(attempt.problem, attempt.values, attempt.path, strength);
  const bool accepted = its.o.accepts(got.o[0], 0) && its.lse.accepts(got.lse[0], 0);
  const double radius = its.o.radius[0];
  if (radius == kInfinity || radius == 0 || its.strength[0] != strength) return {0, accepted};
  return {its.o.error_of(got.o[0], 0) / radius, accepted};
}

Attempt random_attempt(const Problem& problem, const PrecisionPath& path, std::mt19937_64& random) {
  Attempt attempt{problem, path, random_values(problem, random), {}, {}};
  attempt.exp_shares.assign(static_cast<std::size_t>(problem.seqlen_kv), 0.0);
  return attempt;
}

class Climb {
 public:
  Climb(std::mt19937_64& random, Strength strength) : random_(random), strength_(strength) {}

  /// The best score of one climb. Every attempt on the way is judged.
  double run(Attempt attempt, int steps) {
    double best = 0;
    for (int step = 0; step < steps; ++step) {
      Attempt next = attempt;
      for (std::uint64_t changes = 1 + random_() % 3; changes > 0; --changes) change(next);
      const Score found = score(next, strength_);
      EXPECT_TRUE(found.accepted) << kStrengthNames[static_cast<std::size_t>(strength_)] << ": "
                                  << found.ratio;
      if (!found.accepted) return found.ratio;
      if (found.ratio < best) continue;
      best = found.ratio;
      attempt = std::move(next);
    }
    return best;
  }

 private:
  Index below(Index bound) {
    return static_cast<Index>(random_() % static_cast<std::uint64_t>(bound));
  }
  double sign() { return random_() % 2 == 0 ? 1 : -1; }

  /// Moves a stored number by up to its own size, or by as little as its last bits.
  void nudge(Tensor& tensor, Index at) {
    const double size = std::ldexp(1.0, -static_cast<int>(random_() % 25));
    tensor.set(at, tensor.at(at) * (1 + sign() * size));
  }

  void change(Attempt& attempt) {
    Values& values = attempt.values;
    const Index key = below(attempt.problem.seqlen_kv);
    switch (random_() % 9) {
      case 0:
        return nudge(values.k, key * attempt.problem.head_dim + below(attempt.problem.head_dim));
      case 1:
        return nudge(values.q, below(attempt.problem.head_dim));
      case 2:
        return nudge(values.v, key);
      case 3:
        return values.v.set(key, random_() % 2 == 0 ? 0 : sign());
      case 4:
        return aim(attempt, key);
      case 5:
        attempt.exp_shares[static_cast<std::size_t>(key)] = sign();
        return;
      case 6:  // all against the mean: what is above it is too heavy, or too light
        return align(attempt, sign());
      case 7:
        attempt.freedom.division_share = sign();
        return;
      default:
        attempt.freedom.fused_exponent = random_() % 2 == 0;
        return;
    }
  }

  void align(Attempt& attempt, double direction) {
    const double mean = attempt.modelled().o[0];
    for (std::size_t j = 0; j < attempt.exp_shares.size(); ++j) {
      const double v = attempt.values.v.at(static_cast<Index>(j));
      attempt.exp_shares[j] = v > mean ? direction : -direction;
    }
  }

  /// Moves a key so that its weight, over the largest of the row, falls between two numbers of the
  /// format of P: there it rounds worst, and there the least error decides to which side.
  void aim(Attempt& attempt, Index key) {
    const Problem& problem = attempt.problem;
    const auto dot = [&](Index j) {
      double sum = 0;
      for (Index c = 0; c < problem.head_dim; ++c) {
        sum += attempt.values.q.at(c) * attempt.values.k.at(j * problem.head_dim + c);
      }
      return sum * static_cast<double>(problem.softmax_scale);
    };
    double m = -kInfinity;
    for (Index j = 0; j < problem.seqlen_kv; ++j) m = std::max(m, dot(j));
    const double p = std::exp(dot(key) - m);
    if (p == 1 || p == 0) return;
    const Format format = attempt.path.p_format;
    const double below = std::floor(p / ulp(format, p)) * ulp(format, p);
    const double between = below + ulp(format, p) / 2;
    const double q = attempt.values.q.at(0) * static_cast<double>(problem.softmax_scale);
    if (q == 0) return;
    const Index at = key * problem.head_dim;
    attempt.values.k.set(at, attempt.values.k.at(at) + std::log(between / p) / q);
  }

  std::mt19937_64& random_;
  Strength strength_;
};

struct Target {
  const char* name;
  Problem problem;
  PrecisionPath path;
};

std::vector<Target> targets() {
  constexpr double kU = 0x1p-24;
  const Problem f32{.seqlen_kv = 6, .softmax_scale = 1};
  Problem bf16{.seqlen_kv = 24, .head_dim = 16};
  bf16.input = Format::bf16;
  bf16.softmax_scale = 0.25F;
  Problem split = f32;
  split.seqlen_kv = 12;
  split.num_splits = 3;
  const PrecisionPath simt{.exp_error = 5 * kU,
                           .division_error = 4 * kU,
                           .keys_per_rescale = 4,
                           .kv_block = 4,
                           .in_order = true};
  PrecisionPath cast = simt;
  cast.p_format = Format::bf16;
  PrecisionPath tensor = cast;
  tensor.tensor_step = 16;
  tensor.keys_per_rescale = tensor.kv_block = 16;
  PrecisionPath stale = cast;
  stale.p_format = Format::f16;
  stale.rescale_threshold_log2 = 8;
  stale.kv_blocks_descending = true;
  PrecisionPath shifted = cast;
  shifted.p_format = Format::e4m3;
  shifted.p_scale_log2 = 8;
  PrecisionPath parts = cast;
  parts.split_size = kEvenSplits;
  parts.interleaved_accumulators = 2;
  return {{"f32 P, f32 sums", f32, simt},         {"bf16 P, f32 sums", f32, cast},
          {"bf16 P, tensor cores", bf16, tensor}, {"f16 P, lazy, falling", f32, stale},
          {"e4m3 P, shifted", f32, shifted},      {"bf16 P, 3 parts", split, parts}};
}

TEST(Sharpness, NoClimbLeavesABoundAndSomeComeNear) {
  constexpr int kClimbs = 4, kSteps = 1500;
  for (std::size_t s = 0; s < kStrengthNames.size(); ++s) {
    const auto strength = static_cast<Strength>(s);
    double largest = 0;
    for (const Target& target : targets()) {
      std::mt19937_64 random(17);
      double found = 0;
      for (int climb = 0; climb < kClimbs; ++climb) {
        const Attempt start = random_attempt(target.problem, target.path, random);
        found = std::max(found, Climb(random, strength).run(start, kSteps));
      }
      std::printf("%-12s %-22s %.3f\n", kStrengthNames[s].data(), target.name, found);
      largest = std::max(largest, found);
    }
    EXPECT_GE(largest, 0.5) << kStrengthNames[s];
  }
}

}  // namespace
}  // namespace attest
