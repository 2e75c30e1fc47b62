// Rows whose error is that of logits: inner products that cancel after tensor cores have cut their
// small terms, or that round up at every addition.
#include "reference/bound/testing/one_term.hpp"

namespace attest {
namespace {

constexpr auto kBf16 = Format::bf16;
constexpr Index kHeadDim = 24;  // three steps of eight products

/// What a logit loses where six small products meet one of 2^9, of a step that keeps 24 bits
/// behind it: all of them, a little less than a unit each.
constexpr double kUnit = 0x1p-15;
constexpr double kLost = 6 * 0.995 * kUnit;

/// f16 rows for q = 2^-2.
Drawn cancelling(Index keys) {
  Problem p{.seqlen_kv = keys, .head_dim = kHeadDim, .input = Format::f16, .softmax_scale = 1};
  Drawn drawn{p, zero_values(p)};
  for (Index c = 0; c < kHeadDim; ++c) drawn.values.q.set(c, 0.25);
  return drawn;
}

/// A logit that is computed well, to 22 bits.
void set_plain(Drawn& drawn, Index key, double logit) {
  Tensor& k = drawn.values.k;
  k.set(key * kHeadDim, 4 * logit);
  k.set(key * kHeadDim + 1, 4 * logit - k.at(key * kHeadDim));
}

/// kLost, computed as 0.
void set_cancelling(Drawn& drawn, Index key) {
  Tensor& k = drawn.values.k;
  const Index at = key * kHeadDim;
  k.set(at, 2048);
  k.set(at + 7, -2048);
  for (Index c = 1; c < 7; ++c) k.set(at + c, 4 * 0.995 * kUnit);
}

/// Three steps lose a unit of each small product, and two of them one more of an odd sum.
void set_cancelling_late(Drawn& drawn, Index key) {
  Tensor& k = drawn.values.k;
  const Index at = key * kHeadDim;
  for (Index c = 0; c < kHeadDim; ++c) k.set(at + c, 4 * (c < 15 ? 1.99 : 0.995) * kUnit);
  k.set(at, 2048);
  k.set(at + 16, -2048);
}

void set_values(Drawn& drawn, const std::vector<double>& v) {
  for (std::size_t j = 0; j < v.size(); ++j) drawn.values.v.set(static_cast<Index>(j), v[j]);
}

/// Key 0 cancels, key 1 does not; or the other way round.
Drawn pair(Draws& draws, bool second, double difference, const std::vector<double>& v) {
  Drawn drawn = cancelling(2);
  set_cancelling(drawn, second ? 1 : 0);
  set_plain(drawn, second ? 0 : 1, difference * (1 + draws.number()));
  set_values(drawn, v);
  return drawn;
}

/// The middle between two numbers of bf16 below 1, off by a part of what is lost.
double border(Draws& draws, double off) {
  return (0.5 + (2 * std::floor(draws.between(0, 63)) + 1) * 0x1p-9) *
         (1 + off * draws.between(0.2, 0.6) * kLost);
}

const Recipe kStep{.kv_block = 1, .tensor_step = 8};

void add_tensor_logits(OneTerms& all) {
  all.push_back({"a cut logit", kStep, [](Draws& draws) {
                   return pair(draws, false, 0.001, {1, -1});
                 }});
  all.push_back({"a cut logit, small products later", kStep, [](Draws& draws) {
                   Drawn drawn = pair(draws, false, 0.001, {1, -1});
                   set_cancelling_late(drawn, 0);
                   return drawn;
                 }});
  Recipe block = with(kStep, kBf16);
  block.kv_block = 8;
  all.push_back({"a flip by a logit", block, [](Draws& draws) {
                   Drawn drawn = cancelling(2);
                   set_cancelling(drawn, 0);
                   set_plain(drawn, 1, -std::log(border(draws, -1)));
                   set_values(drawn, {1, 0});
                   return drawn;
                 }});
  all.push_back({"a flip by a reference", block, [](Draws& draws) {
                   Drawn drawn = cancelling(2);
                   set_cancelling(drawn, 0);
                   set_plain(drawn, 1, kLost + std::log(border(draws, -1)));
                   set_values(drawn, {0, 1});
                   return drawn;
                 }});
  all.push_back({"a reference in the row sum", block, [](Draws& draws) {
                   Drawn drawn = cancelling(8);
                   set_cancelling(drawn, 0);
                   for (Index j = 1; j < 8; ++j) set_plain(drawn, j, -0.01 * (1 + draws.number()));
                   set_values(drawn, {0, 0, 0, 0, 0, 0, 0, 1});
                   return drawn;
                 }});
}

/// Factors between references that are off.
void add_factors(OneTerms& all) {
  const Recipe cast = with(kStep, kBf16, true);
  all.push_back({"an old reference, sums cast", cast, [](Draws& draws) {
                   return pair(draws, false, 0.01, {0, 1});
                 }});
  all.push_back({"a last reference, sums cast", cast, [](Draws& draws) {
                   return pair(draws, true, -0.01, {0, 1});
                 }});
  all.push_back({"an old reference, P V", with(kStep, kBf16), [](Draws& draws) {
                   return pair(draws, false, 0.01, {1, -1});
                 }});
}

/// Every addition rounds up by half a unit.
void add_chains(OneTerms& all) {
  all.push_back({"additions of a logit", {}, [](Draws& draws) {
                   Problem p{.seqlen_kv = 2, .head_dim = 64, .input = kBf16, .softmax_scale = 1};
                   Drawn drawn{p, zero_values(p)};
                   for (Index c = 0; c < 64; ++c) {
                     drawn.values.q.set(c, 1);
                     drawn.values.k.set(c, c == 0 ? 1 : (1 + 0x1p-7) * 0x1p-24);
                   }
                   drawn.values.k.set(64, 1 + std::floor(draws.between(0, 4)) * 0x1p-7);
                   set_values(drawn, {1, -1});
                   return drawn;
                 }});
}

}  // namespace

void add_terms_of_logits(OneTerms& all) {
  add_tensor_logits(all);
  add_factors(all);
  add_chains(all);
}

}  // namespace attest
