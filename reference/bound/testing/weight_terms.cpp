// Rows whose error is that of weights: their exponentials, where they are rounded, and the factors
// with which states, parts and the sink meet.
#include "reference/bound/testing/one_term.hpp"

namespace attest {
namespace {

constexpr double kOff = 0x1p-12;  // of exponentials: more than all else, less than half a step of P
constexpr auto kBf16 = Format::bf16;

/// Key `at` of three has a weight that is nearly, from below or above, between two numbers of bf16.
inline Drawn at_border(Draws& draws, std::size_t at, double off) {
  std::vector<double> logits(3, -40), v(3);
  const double border = 0.5 + (2 * std::floor(draws.between(0, 63)) + 1) * 0x1p-9;
  logits[2] = 0;
  logits[at] = std::log(border * (1 + off * draws.between(0.2, 0.9)));
  v[at] = 1;
  return row_of(logits, v);
}

Drawn two_keys(Draws& draws) {
  return seesaw(draws, 2);
}
Drawn two_of_last(Draws& draws) {
  return last_of(draws, 2);
}

/// Every other exponential is too large, the others too small; or all are too large.
Recipe rising() {
  return {.kv_block = 1, .exp_error = kOff};
}
Recipe upwards(Recipe recipe) {
  recipe.one_sign = true;
  return recipe;
}

void add_rescales(OneTerms& all) {
  const auto six = [](Draws& draws) { return seesaw(draws, 6); };
  const auto three = [](Draws& draws) { return last_of(draws, 3); };
  const Recipe up = upwards(rising());
  all.push_back({"exponentials of rescales", rising(), six});
  all.push_back({"exponentials of rescales, P V", with(rising(), kBf16), six});
  all.push_back({"exponentials of rescales, row sum", with(up, kBf16), three});
  all.push_back({"exponentials of rescales, sums cast", with(up, kBf16, true), three});
}

void add_flips(OneTerms& all) {
  const Recipe block{.kv_block = 4, .exp_error = kOff};
  all.push_back(
      {"a flip, up", with(block, kBf16), [](Draws& draws) { return at_border(draws, 0, -kOff); }});
  all.push_back(
      {"a flip, down", with(block, kBf16), [](Draws& draws) { return at_border(draws, 1, kOff); }});
  all.push_back({"a flip in the row sum", with(block, kBf16, true), [](Draws& draws) {
                   Drawn drawn = at_border(draws, 0, -kOff);
                   drawn.values.v.set(0, 0);
                   drawn.values.v.set(2, 1);
                   return drawn;
                 }});
}

/// A factor 2^30 that was subtracted from the reference leaves a larger exponent to be rounded.
void add_shifts(OneTerms& all) {
  const Recipe shifted{
      .kv_block = 4, .p_format = kBf16, .p_scale_log2 = 30, .shifts_reference = true};
  all.push_back({"a flip by a p_scale_log2, up", shifted,
                 [](Draws& draws) { return at_border(draws, 0, -16 * 0x1p-24); }, 100});
  all.push_back({"a flip by a p_scale_log2, down", shifted,
                 [](Draws& draws) { return at_border(draws, 1, 16 * 0x1p-24); }, 100});
}

/// Two keys apart from each other in every way: streams, parts as (m, l, acc), parts by LSE.
void add_meetings(OneTerms& all) {
  Recipe streams = rising(), parts = rising();
  streams.interleaved_accumulators = parts.num_splits = 2;
  parts.split_size = 1;
  Recipe by_lse = parts;
  by_lse.exp_error = 0;
  by_lse.log_error = 0x1p-5;
  parts.combine_by_lse = false;
  const auto add = [&](const std::string& name, const Recipe& recipe, const Recipe& up) {
    all.push_back({name, recipe, two_keys});
    all.push_back({name + ", P V", with(recipe, kBf16), two_keys});
    all.push_back({name + ", row sum", with(up, kBf16), two_of_last});
    all.push_back({name + ", sums cast", with(up, kBf16, true), two_of_last});
  };
  add("streams", streams, upwards(streams));
  add("parts", parts, upwards(parts));
  add("parts by LSE", by_lse, by_lse);
  Recipe shifted = by_lse;
  shifted.log_error = 0x1p-9;  // of a logarithm of about 64 ln 2
  shifted.p_scale_log2 = 64;
  all.push_back({"parts by LSE under a p_scale_log2", shifted, two_keys});
  Recipe undivided = by_lse;
  undivided.undivided_shares = true;
  all.push_back({"undivided shares", undivided, [](Draws& draws) {
                   return row_of({0, draws.between(-0.1, 0)}, {1, 1});
                 }});
}

/// Six states or parts, of which the first meets all others, one after another.
void add_merges(OneTerms& all) {
  const auto six = [](Draws& draws) { return seesaw(draws, 6); };
  const auto last = [](Draws& draws) { return last_of(draws, 6); };
  Recipe streams = rising();
  streams.interleaved_accumulators = 6;
  streams.one_by_one = true;
  const Recipe up = upwards(streams);
  all.push_back({"streams one by one", streams, six});
  all.push_back({"streams one by one, P V", with(streams, kBf16), six});
  all.push_back({"streams one by one, row sum", with(up, kBf16), last});
  all.push_back({"streams one by one, sums cast", with(up, kBf16, true), last});
  const Recipe parts{
      .kv_block = 1, .num_splits = 6, .log_error = 0x1p-7, .split_size = 1, .one_by_one = true};
  const auto light = [](Draws& draws) {
    const double low = draws.between(-8, -7);
    return row_of({low, -30, -30, -30, -30, 0}, {std::exp(-low), 0, 0, 0, 0, -1});
  };
  all.push_back({"parts by LSE one by one", parts, light});
  all.push_back({"parts by LSE one by one, P V", with(parts, kBf16), light});
}

/// With rounded P the sink must lie below all keys. A single part in use meets it by its LSE.
void add_sinks(OneTerms& all) {
  const auto below = [](Draws& draws) {
    return with_sink(row_of({0, draws.between(-1, 0)}, {1, 1}), draws.between(0.5, 1));
  };
  const auto above = [](Draws& draws) {
    return with_sink(row_of({0, draws.between(-0.1, 0)}, {1, 1}), draws.between(-1, -0.5));
  };
  const Recipe part{.kv_block = 1, .num_splits = 2, .log_error = 0x1p-5, .split_size = 8};
  all.push_back({"below a sink", rising(), below});
  all.push_back({"above a sink", with(upwards(rising()), kBf16), above});
  all.push_back({"a part by LSE below a sink", part, below});
  all.push_back({"a part by LSE above a sink", with(part, kBf16), above});
  all.push_back({"a part by LSE above a sink, sums cast", with(part, kBf16, true), above});
  Recipe first = rising();
  first.sink_first = true;
  first.exp_error = 0x1p-6;
  all.push_back({"rescales of a sink", first, [](Draws& draws) {
                   Drawn drawn = seesaw(draws, 6);
                   for (Index j = 0; j < 6; ++j) drawn.values.v.set(j, 1);
                   return with_sink(drawn, draws.between(-10, -9));
                 }});
}

}  // namespace

void add_terms_of_weights(OneTerms& all) {
  add_rescales(all);
  add_flips(all);
  add_shifts(all);
  add_meetings(all);
  add_merges(all);
  add_sinks(all);
}

}  // namespace attest
