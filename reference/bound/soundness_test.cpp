// Right kernels, in every order and on every kind of input, are never refused: this is what guards
// against false alarms. The largest error / bound is printed, not judged: the bound may become
// sharper, never violated.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "reference/bound/testing/hostile_values.hpp"
#include "reference/bound/testing/right_recipes.hpp"
#include "reference/bound/testing/tally.hpp"
#include "reference/formats.hpp"
#include "reference/random_values.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

/// Tensor cores take products of 16- and 8-bit numbers.
bool can_compute(const Recipe& recipe, const Problem& problem) {
  return recipe.tensor_step == 0 ||
         (problem.input != Format::f32 && cache_format(problem) != Format::f32);
}

void print_table(const char* title, const std::map<std::string, Tally>& tallies) {
  std::printf("%-52s %8s %9s %9s %9s %9s %8s %8s %8s %8s\n", title, "rows", "judged", "running",
              "quantised", "unjudged", "o", "o run", "o quant", "lse");
  for (const auto& [name, tally] : tallies) {
    std::printf("%-52s %8lld %9lld %9lld %9lld %9lld %8.4f %8.4f %8.4f %8.4f\n", name.c_str(),
                static_cast<long long>(tally.rows), static_cast<long long>(tally.judged),
                static_cast<long long>(tally.elements[1]),
                static_cast<long long>(tally.elements[2]), static_cast<long long>(tally.unjudged),
                tally.o_ratio[0], tally.o_ratio[1], tally.o_ratio[2], tally.lse_ratio);
  }
}

struct Drawn {
  std::string name;  // of what makes it hard
  Problem problem;
  Values values;
};

void never_refused(std::mt19937_64& random, int rounds, Drawn (*draw)(int, std::mt19937_64&)) {
  std::map<std::string, Tally> by_recipe, by_name;
  Tally all;
  for (int round = 0; round < rounds; ++round) {
    const auto [name, p, values] = draw(round, random);
    const Truth truth = exact_attention(p, values);
    for (const Recipe& recipe : kRightRecipes) {
      if (!can_compute(recipe, p)) continue;
      Problem asked = p;
      asked.num_splits = recipe.num_splits;
      const Simulated found = simulate(asked, values, recipe);
      for (Strength at_most : {Strength::order_free, Strength::running, Strength::quantised}) {
        Tally once;
        judge(asked, acceptance_around(truth, asked, values, path_of(recipe), at_most), found,
              once);
        const auto say = [&] {
          return recipe.name + " by " + std::string(kStrengthNames[static_cast<int>(at_most)]) +
                 ", " + name + ": " + print(asked);
        };
        ASSERT_EQ(once.refused, 0) << say();
        ASSERT_EQ(once.refused_lse, 0) << say();
        by_recipe[recipe.name].add(once);
        by_name[name].add(once);
        all.add(once);
      }
    }
  }
  print_table("largest error / bound, by recipe", by_recipe);
  print_table("by fill", by_name);
  print_table("all", {{"", all}});
  for (const auto& [name, tally] : by_name) EXPECT_GT(tally.judged, 0) << name;
}

Drawn changed(Problem p, int round, std::mt19937_64& random) {
  const auto number = static_cast<std::size_t>(round) % std::size(kHostileChanges);
  const HostileChange& hostile = kHostileChanges[number];
  Drawn drawn{hostile.name, p, random_values(p, random)};
  hostile.change(p, drawn.values, random);
  return drawn;
}

TEST(Soundness, NoRightKernelIsRefusedOnAnyProblem) {
  std::mt19937_64 random(11);
  never_refused(random, 1200, [](int round, std::mt19937_64& generator) {
    Problem p = random_problem(generator, 12);
    // Mostly the fills decide how large the logits are; one Problem in four keeps its wild scale.
    if (round % 4 != 0 && std::fabs(p.softmax_scale) > 4)
      p.softmax_scale = default_scale(p.head_dim);
    return changed(p, round, generator);
  });
}

TEST(Soundness, NoRightKernelIsRefusedOnLongRows) {
  std::mt19937_64 random(12);
  never_refused(random, 150, [](int round, std::mt19937_64& generator) {
    Problem p;
    p.seqlen_q = p.head_dim_v = 2;
    p.seqlen_kv = 200 - static_cast<Index>(generator() % 20);
    p.head_dim = 1 + static_cast<Index>(generator() % 64);
    p.input = static_cast<Format>(generator() % 5);
    if (generator() % 3 == 0) p.cache = static_cast<Format>(generator() % 6);
    if (p.cache && bytes_of(*p.cache) == 1) p.scales = static_cast<Scales>(generator() % 4);
    p.output = static_cast<Format>(generator() % 3);
    p.softmax_scale = default_scale(p.head_dim);
    return changed(p, round, generator);
  });
}

// Each of these makes one term of the bound carry nearly all of the error: logits far from zero
// that differ little, so that what is rounded is large and what it decides is not.
Drawn one_term(int round, std::mt19937_64& random) {
  const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Problem p{
      .seqlen_kv = 2 + static_cast<Index>(random() % 5), .head_dim_v = 2, .input = Format::f32};
  p.softmax_scale = static_cast<float>(0.5 + number());
  const int kind = round % 6;
  p.softcap = kind == 1 ? 500 + 400 * number() : 0;
  p.bias = kind == 2 || kind == 3;
  p.alibi = kind == 3;
  p.sinks = kind == 5;
  Values values = random_values(p, random);
  if (p.alibi) values.alibi_slopes->set(0, 100 + 100 * number());
  if (p.sinks) values.sinks->set(0, 800 * p.softmax_scale + number());
  for (Index i = 0; i < values.q.count(); ++i) values.q.set(i, kind == 2 || kind == 3 ? 0.0 : 32.0);
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    const double far = kind == 4 ? static_cast<double>(j) : 0.0;
    values.k.set(j, kind == 4 ? -0.5 * far : std::round(25 * 1024 + 64 * number()) / 1024);
    if (kind == 2) values.bias->set(j, 1000 + number());
    if (kind == 3) {
      values.bias->set(
          j, number() + values.alibi_slopes->at(0) * static_cast<double>(p.seqlen_kv - 1 - j));
    }
    for (Index c = 0; c < p.head_dim_v && kind == 4; ++c) {
      values.v.set(0, 0, j, c, values.v.at(0, 0, j, c) * std::exp(16 * p.softmax_scale * far));
    }
  }
  static const char* const kNames[] = {"scale",    "softcap", "bias", "bias against alibi",
                                       "far keys", "sink"};
  return {kNames[kind], p, values};
}

TEST(Soundness, NoRightKernelIsRefusedWhereOneTermCarriesTheError) {
  std::mt19937_64 random(14);
  never_refused(random, 1200, one_term);
}

// What is subnormal somewhere on the way and no longer when it is multiplied by a large scale, or
// by a large number that a small scale belongs to: flushing it loses all.
Drawn flushed_term(int round, std::mt19937_64& random) {
  const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const int kind = round % 5;
  const bool cached = kind != 2 && kind != 3;
  Problem p{.seqlen_kv = 3, .head_dim_v = 2, .input = Format::f32};
  if (cached) p.cache = Format::e4m3;
  if (cached) p.scales = random() % 2 == 0 ? Scales::tensor : Scales::head;
  p.softmax_scale = kind == 2 ? 0x1p-127F : kind == 4 ? 0x1p-100F : 1;
  p.softcap = kind == 3 ? 0x1p125 * (1 + number()) : 0;
  Values values = random_values(p, random);
  const double q = kind == 2 ? 0x1p60 : kind == 3 ? 1 : kind == 4 ? 0x1p115 : 1;
  values.q.set(0, q);
  const double far = -std::log(2) * (kind == 0 ? 90 + 36 * number() : 60 + 40 * number());
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    const bool falls = cached && kind != 4;
    values.k.set(j, falls ? (j > 0 ? -1 : 0) : kind == 2 ? 0x1p60 * number() : number());
    if (kind == 4) values.k.set(j, 256 * number());
    for (Index c = 0; c < p.head_dim_v; ++c) {
      const double v = kind == 0 ? (1 + std::floor(4 * number())) * 0x1p-9 : 448;
      if (falls) values.v.set(0, 0, j, c, j > 0 ? v : 0);
    }
  }
  if (cached) values.k_scales->set(0, kind == 4 ? 0x1p-30 : -far);
  if (cached) values.v_scales->set(0, std::exp2((kind == 1 ? -1 : 1) * 58 * number()));
  static const char* const kNames[] = {"large scale of v", "small scale of v", "subnormal scale",
                                       "large softcap", "subnormal product of scales"};
  return {kNames[kind], p, values};
}

TEST(Soundness, NoRightKernelIsRefusedThatFlushesWhatALargeFactorMeets) {
  std::mt19937_64 random(16);
  never_refused(random, 1000, flushed_term);
}

// Long sums of one sign, of which every step truncates a little; and values so small that tensor
// cores align them by an exponent they do not have.
Drawn tensor_term(int round, std::mt19937_64& random) {
  const bool subnormal = round % 2 == 1;
  const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Problem p{
      .seqlen_kv = subnormal ? 4 : 1500, .head_dim = 2, .head_dim_v = 2, .input = Format::f16};
  Values values = random_values(p, random);
  for (Index i = 0; i < values.v.count(); ++i) {
    values.v.set(i, subnormal ? (1 + std::floor(4 * number())) * 0x1p-24 : 1 + number());
  }
  return {subnormal ? "subnormal values" : "a long sum", p, values};
}

TEST(Soundness, NoRightKernelIsRefusedWhereTensorCoresCarryTheError) {
  std::mt19937_64 random(15);
  never_refused(random, 40, tensor_term);
}

}  // namespace
}  // namespace attest
