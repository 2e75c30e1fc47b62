// Rows whose error is that of f32 operations after the weights: additions, products, divisions.
#include "reference/bound/testing/one_term.hpp"

namespace attest {
namespace {

/// One heavy key, then, or before it, light ones that the sums below one round up and P V down: all
/// of it is what additions lose.
inline Drawn long_sum(Draws& draws, Index keys, bool heavy_last = false) {
  const double light = (1 + draws.between(0.005, 0.02)) * 0x1p-24;
  std::vector<double> logits(static_cast<std::size_t>(keys), std::log(light));
  std::vector<double> v(static_cast<std::size_t>(keys), 0.97);
  (heavy_last ? logits.back() : logits.front()) = 0;
  (heavy_last ? v.back() : v.front()) = 1;
  return row_of(logits, v);
}

/// Two keys that cancel, of weights exact in bf16 and values that are not.
inline Drawn inexact_products(Draws& draws) {
  const double weight = 1 - (2 * std::floor(draws.between(0, 8)) + 1) * 0x1p-8;
  const double v = (1 + draws.between(0, 0.01)) / weight, other = v * (1 + draws.between(0, 0.001));
  return row_of({0, std::log(weight), std::log(weight)}, {0, v, -other});
}

/// The same in e4m3 with scales of their own, which a kernel multiplies into v.
Drawn scaled_products(Draws& draws) {
  const Drawn plain = inexact_products(draws);
  Problem p = plain.problem;
  p.cache = Format::e4m3;
  p.scales = Scales::token;
  Drawn drawn{p, zero_values(p)};
  drawn.values.q.set(0, 1);
  for (Index j = 1; j < 3; ++j) {
    drawn.values.k.set(j, -1);
    drawn.values.v.set(j, j == 1 ? 1.125 : -1.125);
    drawn.values.k_scales->set(j, -plain.values.k.at(j));
    drawn.values.v_scales->set(j, std::fabs(plain.values.v.at(j)) / 1.125);
  }
  return drawn;
}

Drawn long_row(Draws& draws) {
  return long_sum(draws, 48);
}

void add_additions(OneTerms& all) {
  all.push_back({"additions", {}, long_row});
  all.push_back({"additions of lanes", {.partial_row_sums = 48}, long_row});
  all.push_back(
      {"additions of streams", {.kv_block = 1, .interleaved_accumulators = 48}, long_row});
  all.push_back({"additions of parts",
                 {.kv_block = 1, .num_splits = 48, .combine_by_lse = false, .split_size = 1},
                 long_row});
  all.push_back({"additions in some order", {.apart = true}, long_row});
  all.push_back({"additions in some order to a sum",
                 {.kv_block = 1, .reverse = true},
                 [](Draws& draws) { return long_sum(draws, 48, true); }});
  all.push_back({"additions to a sink",
                 {.partial_row_sums = 2, .sink_first = true},
                 [](Draws& draws) {
                   Drawn drawn = long_sum(draws, 2000);
                   for (Index j = 0; j < 2000; ++j) drawn.values.v.set(j, j == 1999 ? 1 : 0);
                   drawn.values.k.set(0, drawn.values.k.at(1));
                   return with_sink(drawn, 0);
                 },
                 2});
}

}  // namespace

void add_terms_of_sums(OneTerms& all) {
  constexpr double kOff = 0x1p-12;
  add_additions(all);
  all.push_back({"products", with({}, Format::bf16), inexact_products, 200});
  all.push_back(
      {"products in some order", with({.apart = true}, Format::bf16), inexact_products, 200});
  all.push_back({"scaled values", with({}, Format::bf16), scaled_products, 400});
  const auto last = [](Draws& draws) { return last_of(draws, 2); };
  all.push_back({"division", {.division_error = kOff}, last});
  all.push_back(
      {"division, twice",
       {.kv_block = 1, .num_splits = 2, .one_sign = true, .division_error = kOff, .split_size = 1},
       last});
  for (const Format format : {Format::f32, Format::bf16}) {
    all.push_back(
        {"divisions of parts",
         with({.kv_block = 1, .num_splits = 2, .division_error = kOff, .split_size = 1}, format),
         [](Draws& draws) {
           return row_of({0, 0}, {1, -1 + draws.between(0, 0.01)});
         }});
  }
}

}  // namespace attest
