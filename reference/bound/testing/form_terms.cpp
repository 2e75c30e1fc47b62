// Rows whose error is what a form of real kernels brings, which others do not have: fused rescales,
// merges one after another, shares that stay undivided, a bias that sums begin with, positions
// counted from a key, references that are lazy.
#include "reference/bound/testing/one_term.hpp"

namespace attest {
namespace {

/// Rising logits near 1000, each so that fl(m c) is above m c: what a fused rescale loses adds up.
/// Light keys against heavy ones.
Drawn rounded_up(Draws& draws) {
  constexpr float kLog2e = 0x1.715476p0F;
  constexpr Index kKeys = 256;
  std::vector<double> logits, v;
  double z = 1000 + draws.number();
  for (Index j = 0; j < kKeys; ++j) {
    double best = z, most = -1;
    for (int attempt = 0; attempt < 16; ++attempt) {
      const auto next = static_cast<float>(z + draws.between(0.0005, 0.002));
      const double above = static_cast<double>(next * kLog2e) -
                           static_cast<double>(next) * static_cast<double>(kLog2e);
      if (above > most) {
        most = above;
        best = static_cast<double>(next);
      }
    }
    logits.push_back(z = best);
    v.push_back(2 * j < kKeys ? 1 : -1);
  }
  return row_of(logits, v);
}

/// A key per part, of one value: o is the sum of the shares.
Drawn one_value(Draws& draws) {
  const double largest = draws.between(500, 1000);
  return row_of({largest, largest - draws.number()}, {1, 1});
}

/// A heavy part and a light one, whose values make o near what the light one is worth.
Drawn light_part(Draws& draws) {
  const double low = draws.between(-9, -7);
  return row_of({0, low}, {0, std::exp(-low)});
}

/// Two parts of the same weight and value.
Drawn two_equal(Draws& draws) {
  return row_of({0, 0.01 * draws.number()}, {1, 1});
}

/// A short product beside a small bias.
Drawn cancelling_beside_a_bias(Draws& draws) {
  Problem p{.seqlen_kv = 2, .head_dim = 2, .bias = true};
  Drawn drawn{p, zero_values(p)};
  const double x = 1000 * (1 + draws.number());
  for (Index c = 0; c < 2; ++c) {
    drawn.values.q.set(c, 1);
    drawn.values.k.set(c, c == 0 ? x : -x);
  }
  drawn.values.bias->set(0, draws.between(0, 0x1p-13));
  drawn.values.v.set(0, 1);
  drawn.values.v.set(1, -1);
  return drawn;
}

/// A key per part, each a little above the ones before.
Drawn rising(Draws& draws) {
  std::vector<double> logits, v(16);
  for (int j = 0; j < 16; ++j) logits.push_back(0.01 * (j + draws.number()));
  v.front() = 1;
  v.back() = -1;
  return row_of(logits, v);
}

/// Products that are lost one by one beside a bias, and not among themselves.
Drawn beside_a_bias(Draws& draws) {
  Problem p{.seqlen_kv = 2, .head_dim = 128, .bias = true};
  Drawn drawn{p, zero_values(p)};
  for (Index c = 0; c < p.head_dim; ++c) {
    drawn.values.q.set(c, 1);
    drawn.values.k.set(c, draws.between(0.4, 0.49) * 0x1p-14);  // of the step at 1000
  }
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    drawn.values.bias->set(j, 1000);
    drawn.values.v.set(j, j == 0 ? 1 : -1);
  }
  return drawn;
}

/// Few keys, far from the one that ALiBi counts from.
Drawn far_positions(Draws& draws) {
  Problem p{.seqlen_kv = 2001, .head_dim = 1, .causal = true, .window_left = 3, .alibi = true};
  Drawn drawn{p, zero_values(p)};
  drawn.values.alibi_slopes->set(0, draws.between(0.4, 0.5));
  for (Index j = 0; j < p.seqlen_kv; ++j) drawn.values.v.set(j, j % 2 == 0 ? 1 : -1);
  return drawn;
}

/// A weight above 1 under a lazy reference, on which a rescale is lost that is subnormal.
Drawn lost_rescale(Draws& draws) {
  const double first = draws.between(5, 6);
  return row_of({0, first, 87.4 + draws.between(0, 0.2)}, {0, 0x1p100, 0});
}

}  // namespace

/// Weights that are divided before they are cast, each by a quotient of its own.
void add_divided_shares(OneTerms& all) {
  constexpr double kOff = 0x1p-12;
  const Recipe divided{.division_error = kOff, .normalize_before_cast = true};
  all.push_back({"divisions of shares", divided, [](Draws& draws) {
                   return row_of({0, 0}, {1, -1 + draws.between(0, 0.01)});
                 }});
  all.push_back({"a flip by a division", with(divided, Format::bf16),
                 [](Draws& draws) {
                   const double border = 0.5 + (2 * std::floor(draws.between(0, 63)) + 1) * 0x1p-9;
                   const double share = border * (1 + kOff * draws.between(0.2, 0.9));
                   return row_of({0, std::log(share / (1 - share))}, {0, 1});
                 },
                 100});
  Recipe sums{.exp_error = kOff, .p_format = Format::bf16, .normalize_before_cast = true};
  all.push_back({"a flip by a row sum", sums,
                 [](Draws& draws) {
                   const double border = 0.5 + (2 * std::floor(draws.between(0, 63)) + 1) * 0x1p-9;
                   const double share = border * (1 + kOff * draws.between(0.1, 0.4));
                   return row_of({std::log((1 - share) / share), 0}, {0, 1});
                 },
                 100});
  all.push_back({"shares below what f16 holds normally",
                 {.p_format = Format::f16, .normalize_before_cast = true},
                 [](Draws& draws) {
                   return row_of({0, -draws.between(12, 16)}, {0, 1});
                 }});
}

/// A logit between two numbers of bf16.
void add_rounded_scores(OneTerms& all) {
  all.push_back({"a rounded score", {.scores_format = Format::bf16}, [](Draws& draws) {
                   const double off = 0.5 * ulp(Format::bf16, 1.5) * draws.between(0.8, 0.99);
                   return row_of({1.5, 1.5 + off}, {1, -1});
                 }});
  all.push_back({"a score rounded twice", {.scores_format = Format::bf16}, [](Draws& draws) {
                   const double off = 0.5 * ulp(Format::bf16, 1.5) * draws.between(0.8, 0.99);
                   Drawn drawn = row_of({1.5, 1.5 + off}, {1, -1});
                   drawn.problem.softmax_scale = 0.7F;
                   return drawn;
                 }});
}

void add_terms_of_forms(OneTerms& all) {
  add_divided_shares(all);
  add_rounded_scores(all);
  const Recipe fused{
      .kv_block = 1, .fma = true, .exponential = Exponential::base_two_fma, .fused_rescale = true};
  all.push_back({"fused rescales", fused, rounded_up, 3});
  all.push_back({"fused rescales, P in bf16", with(fused, Format::bf16), rounded_up, 3});
  const Recipe shares{.num_splits = 2, .undivided_shares = true};
  all.push_back({"undivided shares", shares, one_value});
  all.push_back(
      {"undivided shares of declared parts",
       {.kv_block = 1, .num_splits = 2, .split_size = kEvenSplits, .undivided_shares = true},
       one_value});
  all.push_back({"undivided shares by wrong logarithms, P in bf16",
                 {.kv_block = 1,
                  .num_splits = 2,
                  .log_error = 0x1p-5,
                  .p_format = Format::bf16,
                  .split_size = 1,
                  .undivided_shares = true},
                 light_part});
  all.push_back({"undivided shares by wrong exponentials",
                 {.kv_block = 1,
                  .num_splits = 2,
                  .exp_error = 0x1p-12,
                  .one_sign = true,
                  .split_size = 1,
                  .undivided_shares = true},
                 two_equal});
  all.push_back(
      {"a small bias first", {.scaled_query = true, .bias_first = true}, cancelling_beside_a_bias});
  all.push_back({"parts one by one in any order",
                 {.kv_block = 64,
                  .num_splits = 16,
                  .combine_by_lse = false,
                  .exp_error = 0x1p-14,
                  .one_sign = true,
                  .exponential = Exponential::scaled_difference,
                  .one_by_one = true},
                 rising});
  all.push_back({"states one by one",
                 {.kv_block = 1,
                  .exp_error = 0x1p-14,
                  .one_sign = true,
                  .exponential = Exponential::scaled_difference,
                  .interleaved_accumulators = 16,
                  .one_by_one = true},
                 rising});
  all.push_back({"a bias first", {.scaled_query = true, .bias_first = true}, beside_a_bias});
  all.push_back(
      {"positions from the first key", {.alibi_from = AlibiFrom::first_key}, far_positions});
  all.push_back({"a lost rescale of a lazy reference",
                 {.kv_block = 1, .flush = true, .rescale_threshold_log2 = 20},
                 lost_rescale});
}

}  // namespace attest
