// Right kernels, in every order and on every kind of input, are never refused: this is what guards
// against false alarms. The largest error / bound is printed, not judged: the bound may become
// sharper, never violated.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "reference/bound/tally.hpp"
#include "reference/formats.hpp"
#include "reference/random_problem.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

std::vector<Recipe> right_recipes() {
  using E = Exponential;
  return {
      {.name = "two passes, exp"},
      {.name = "two passes, fma, exp2, reversed",
       .fma = true,
       .reverse = true,
       .exponential = E::base_two},
      {.name = "trees, exp2 of a scaled difference",
       .pairwise = true,
       .reciprocal = true,
       .exponential = E::scaled_difference},
      {.name = "online, block 1, exp", .block = 1},
      {.name = "online, block 1, fma of raw scores",
       .block = 1,
       .fma = true,
       .exponential = E::base_two_fma},
      {.name = "online, block 2, raw scores without fma, reversed",
       .block = 2,
       .reverse = true,
       .reciprocal = true,
       .exponential = E::base_two_fma},
      {.name = "online, block 16, fma, wobbling exp2",
       .block = 16,
       .fma = true,
       .reciprocal = true,
       .exp_error = 0x1p-22,
       .exponential = E::scaled_difference},
      {.name = "online, block 16, scaled query, trees",
       .block = 16,
       .pairwise = true,
       .scaled_query = true,
       .exponential = E::base_two},
      {.name = "online, block 16, subnormals flushed",
       .block = 16,
       .fma = true,
       .flush = true,
       .exponential = E::base_two_fma},
      {.name = "block 4, P in bf16", .block = 4, .fma = true, .p_format = Format::bf16},
      {.name = "block 4, P in f16, reversed",
       .block = 4,
       .reverse = true,
       .exponential = E::base_two_fma,
       .p_format = Format::f16},
      {.name = "block 16, P in e4m3", .block = 16, .p_format = Format::e4m3},
      {.name = "3 splits by LSE", .block = 2, .splits = 3, .fma = true},
      {.name = "5 splits by LSE, exp2, reciprocal",
       .splits = 5,
       .reciprocal = true,
       .exponential = E::base_two},
      {.name = "4 splits by (m, l, acc), wobbling",
       .block = 2,
       .splits = 4,
       .fma = true,
       .combine_by_lse = false,
       .exp_error = 0x1p-20,
       .exponential = E::scaled_difference},
      {.name = "2 splits by LSE, P in bf16, flushed",
       .block = 1,
       .splits = 2,
       .flush = true,
       .exponential = E::base_two_fma,
       .p_format = Format::bf16},
  };
}

using Change = void (*)(const Problem&, Values&, std::mt19937_64&);
struct Extreme {
  const char* name;
  Change change;
};

void scale_tensor(Tensor& tensor, double factor) {
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, tensor.at(i) * factor);
}
void make_positive(Tensor& tensor) {
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, std::fabs(tensor.at(i)));
}

const Extreme kExtremes[] = {
    {"normal", [](const Problem&, Values&, std::mt19937_64&) {}},
    {"large logits", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 40); }},
    {"huge logits", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 1e5); }},
    {"enormous logits",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       if (p.input == Format::f32 || p.input == Format::bf16) scale_tensor(v.q, 1e13);
     }},
    {"one sign", [](const Problem&, Values& v, std::mt19937_64&) { make_positive(v.v); }},
    {"constant V",
     [](const Problem&, Values& v, std::mt19937_64&) {
       for (Index i = 0; i < v.v.count(); ++i) v.v.set(i, 3.25);
     }},
    {"cancelling inner products",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index row = 0; row < v.k.count() / p.depth; ++row) {
         for (Index c = 1; c < p.depth; c += 2) {
           v.k.set(row * p.depth + c, -v.k.at(row * p.depth + c - 1) * (1 + 0x1p-6));
         }
       }
       for (Index i = 0; i < v.q.count(); ++i) v.q.set(i, 100.0);
     }},
    {"cancelling values",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index i = p.v_depth; i < v.v.count(); ++i) v.v.set(i, -v.v.at(i - p.v_depth));
       scale_tensor(v.q, 0.01);
     }},
    {"rising maxima",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index i = 0; i < v.q.count(); ++i) v.q.set(i, 1.0);
       for (Index i = 0; i < v.k.count(); ++i) {
         v.k.set(i, static_cast<double>(i / p.depth % std::max<Index>(1, p.keys)));
       }
     }},
    {"logits far below",
     [](const Problem&, Values& v, std::mt19937_64&) {
       make_positive(v.q);
       make_positive(v.k);
       scale_tensor(v.q, -30);
     }},
    {"huge V",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       const double factor = std::min(0x1p118, facts(p.input).max_finite / 8);
       scale_tensor(v.v, factor);
     }},
    {"subnormal V",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       scale_tensor(v.v, 4 * smallest_normal(p.input) * unit_roundoff(p.input) * 16);
     }},
    {"small V", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.v, 1e-6); }},
    {"subnormal q", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 1e-39); }},
    {"f16 ties",
     [](const Problem&, Values& v, std::mt19937_64& random) {
       for (Index i = 0; i < v.v.count(); ++i) {
         v.v.set(i, static_cast<double>(random() % 3) * 0x1p-11 + 1);
       }
     }},
};

/// Mostly the fills decide how large the logits are; one Problem in four keeps its wild scale.
Problem tame(Problem p, bool wild) {
  if (!wild && std::fabs(p.scale) > 4) p.scale = default_scale(p.depth);
  return p;
}

void print_table(const char* title, const std::map<std::string, Tally>& tallies) {
  std::printf("%-52s %8s %9s %9s %8s %8s %8s\n", title, "rows", "judged", "unjudged", "o", "o f32",
              "lse");
  for (const auto& [name, tally] : tallies) {
    std::printf("%-52s %8lld %9lld %9lld %8.4f %8.4f %8.4f\n", name.c_str(),
                static_cast<long long>(tally.rows), static_cast<long long>(tally.judged),
                static_cast<long long>(tally.unjudged), tally.o_ratio, tally.o_ratio_f32,
                tally.lse_ratio);
  }
}

void never_refused(std::mt19937_64& random, int rounds, Index extent_max, bool features) {
  std::map<std::string, Tally> by_recipe, by_extreme;
  const std::vector<Recipe> recipes = right_recipes();
  for (int round = 0; round < rounds; ++round) {
    Problem p = tame(random_problem(random, extent_max), round % 4 == 0);
    if (!features) {
      p = {.queries = 2,
           .keys = extent_max - static_cast<Index>(random() % 20),
           .depth = 1 + static_cast<Index>(random() % 64),
           .v_depth = 2,
           .input = p.input,
           .output = p.output};
      p.scale = default_scale(p.depth);
    }
    const Extreme& extreme = kExtremes[static_cast<std::size_t>(round) % std::size(kExtremes)];
    Values values = random_values(p, random);
    extreme.change(p, values, random);
    const Truth truth = exact_attention(p, values);
    for (const Recipe& recipe : recipes) {
      Problem asked = p;
      asked.splits = recipe.splits;
      const Bounds bounds = order_free_bounds(asked, values, path_of(recipe));
      const Simulated found = simulate(asked, values, recipe);
      Tally once;
      judge(asked, truth, bounds, found, once);
      ASSERT_LE(once.o_ratio, 1.0) << recipe.name << ", " << extreme.name << ": " << print(asked);
      ASSERT_LE(once.lse_ratio, 1.0) << recipe.name << ", " << extreme.name << ": " << print(asked);
      for (Tally* tally : {&by_recipe[recipe.name], &by_extreme[extreme.name]}) {
        tally->add(once, asked.output == Format::f32);
      }
    }
  }
  print_table("largest error / bound, by recipe", by_recipe);
  print_table("by fill", by_extreme);
  for (const auto& [name, tally] : by_extreme) EXPECT_GT(tally.judged, 0) << name;
}

TEST(OrderFreeBound, NoRightKernelIsRefusedOnAnyProblem) {
  std::mt19937_64 random(11);
  never_refused(random, 1200, 12, true);
}

TEST(OrderFreeBound, NoRightKernelIsRefusedOnLongRows) {
  std::mt19937_64 random(12);
  never_refused(random, 150, 200, false);
}

}  // namespace
}  // namespace attest
