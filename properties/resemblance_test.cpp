// Resemblance: each mistake is taken for itself, and neither noise nor a number or two for any;
// what was accepted has a say too.
#include "properties/resemblance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "properties/fills.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// The truth of what was asked, to be spoilt.
struct Answered {
  Case asked;
  Values values;
  Tensor o, lse;

  explicit Answered(const std::string& line) : asked(parse_case(line)), values(make_values(asked)) {
    const Problem& p = asked.problem;
    o = Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
    lse = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
    const Truth truth = exact_attention(p, values);
    for (Index n = 0; n < o.count(); ++n) o.set(n, truth.o[static_cast<std::size_t>(n)]);
    for (Index n = 0; n < lse.count(); ++n) lse.set(n, truth.lse[static_cast<std::size_t>(n)]);
  }
  std::optional<Resemblance> found(const PrecisionPath& path = {}) const {
    const Problem& p = asked.problem;
    return resemblance(p, values, path, acceptance(p, values, path), {&o, &lse});
  }
};

/// The truth of `answered`, given as the answer to `asked`.
std::optional<Resemblance> resembled(const std::string& asked, const std::string& answered,
                                     double noise = 0) {
  const Case c = parse_case(asked);
  const Problem& p = c.problem;
  const Values values = make_values(c);
  const Problem other = parse_problem(answered);
  Values seen = values;
  if (!other.bias) seen.bias.reset();
  if (!other.alibi) seen.alibi_slopes.reset();
  if (!other.sinks) seen.sinks.reset();
  if (!other.mask) seen.mask.reset();
  const Truth truth = exact_attention(other, seen);
  Tensor o(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  Tensor lse(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
  for (Index n = 0; n < o.count(); ++n) {
    o.set(n, truth.o[static_cast<std::size_t>(n)] + (n % 3 == 0 ? noise : -noise / 2));
  }
  for (Index n = 0; n < lse.count(); ++n) lse.set(n, truth.lse[static_cast<std::size_t>(n)]);
  return resemblance(p, values, {}, acceptance(p, values, {}), {&o, &lse});
}

TEST(Resemblance, EachMistakeIsTakenForItself) {
  const char* const mistakes[][3] = {
      {"q=2x4x5x8 kv=2x9x8", "q=2x4x5x8 kv=2x9x8 kv_len=8,8", "drops_one_key"},
      {"q=2x4x5x8 kv=2x9x8 causal", "q=2x4x5x8 kv=2x9x8 window=inf,1",
       "leaks_one_key"},  // as causal_sees_one_more, which comes later
      {"q=2x4x5x8 kv=2x9x8 causal", "q=2x4x5x8 kv=2x9x8 causal align=top_left", "other_alignment"},
      {"q=2x4x5x8 kv=2x9x8 window=2,0", "q=2x4x5x8 kv=2x9x8 window=3,0", "window_one_wider"},
      {"q=2x4x5x8 kv=2x9x8 window=2,0", "q=2x4x5x8 kv=2x9x8 window=1,0", "window_one_narrower"},
      {"q=2x4x5x8 kv=2x9x8 softcap=2", "q=2x4x5x8 kv=2x9x8", "ignores_softcap"},
      {"q=2x4x5x8 kv=2x9x8 bias", "q=2x4x5x8 kv=2x9x8", "ignores_bias"},
      {"q=2x4x5x8 kv=2x9x8 alibi", "q=2x4x5x8 kv=2x9x8", "ignores_alibi"},
      {"q=2x4x5x8 kv=2x9x8 sinks", "q=2x4x5x8 kv=2x9x8", "ignores_sinks"},
      {"q=2x4x5x8 kv=2x9x8 mask", "q=2x4x5x8 kv=2x9x8", "ignores_mask"},
      {"q=2x4x5x8 kv=2x9x8", "q=2x4x5x8 kv=2x9x8 lse=two", "other_lse_base"},
      {"q=2x4x5x8 kv=2x9x8 scale=1", "q=2x4x5x8 kv=2x9x8 scale=1.01", "scale_1_percent_more"},
      {"q=2x4x5x8 kv=2x9x8 scale=1", "q=2x4x5x8 kv=2x9x8 scale=0.9", "scale_10_percent_less"},
      {"q=2x4x5x8 kv=2x9x8", "q=2x4x5x8 kv=2x9x8 scale=0", "weighs_equally"},
  };
  for (const auto& [asked, answered, name] : mistakes) {
    const auto found = resembled(asked, answered);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->wrong_answer, name);
    EXPECT_EQ(found->explained, found->refused) << name;
    EXPECT_GT(found->refused, 0) << name;
    EXPECT_FALSE(meaning_of_wrong_answer(found->wrong_answer).empty());
  }
}

TEST(Resemblance, NeitherTheTruthNorNoiseIsAMistake) {
  const std::string line = "q=2x4x5x8 kv=2x9x8 causal";
  EXPECT_FALSE(resembled(line, line));
  EXPECT_FALSE(resembled(line, line, 0.25));
}

/// What a mistake gives in rows of the heads that it happens in.
void commit(Answered& it, std::string_view name, const std::vector<Index>& heads) {
  const Problem& p = it.asked.problem;
  WrongRows rows(p, it.values);
  for (const WrongAnswer& mistake : wrong_answers()) {
    if (mistake.name != name) continue;
    Slip slip{.asked = p};
    mistake.apply(slip);
    for_each_row(p, [&](Index b, Index h, Index i) {
      if (std::find(heads.begin(), heads.end(), h) == heads.end()) return;
      const WeighedRow row = rows.weigh(slip, b, h, i);
      const std::vector<double> o = rows.o_of(slip, row);
      it.lse.set(b, h, i, 0, row.lse);
      for (Index c = 0; c < p.head_dim_v; ++c) it.o.set(b, h, i, c, o[static_cast<std::size_t>(c)]);
    });
  }
}

TEST(Resemblance, AcceptedHeadsChooseBetweenTwoThatExplainTheRest) {
  // Of four heads that share two, h mod 2 is right for the first and the last, and for the others
  // the same as the next one.
  Answered it("q=1x4x5x8 kv=2x9x8");
  commit(it, "modulo_kv_head", {0, 1, 2, 3});
  const auto found = it.found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wrong_answer, "modulo_kv_head");
  EXPECT_TRUE(found->all());
}

TEST(Resemblance, WhatAcceptedRowsContradictIsSaidToBeSo) {
  Answered it("q=1x4x5x8 kv=1x9x8");
  commit(it, "drops_one_key", {2});
  const auto found = it.found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wrong_answer, "drops_one_key");
  EXPECT_EQ(found->explained, found->refused);
  EXPECT_GT(found->against, 0);
  EXPECT_FALSE(found->all());
}

TEST(Resemblance, OneNumberIsNoEvidence) {
  // The only number, 10 % of the logit too large, in a format and by a path in which that is just
  // outside of what is accepted: so would many another number be.
  Answered it("q=1x1x1x1 kv=1x2x1 in=bf16 out=bf16 scale=1");
  commit(it, "scale_10_percent_more", {0});
  const Given o_alone{&it.o, nullptr};
  PrecisionPath path{.p_format = Format::bf16, .exp_error = 0.5};
  Acceptance accepted;
  do {
    path.exp_error /= 2;
    accepted = acceptance(it.asked.problem, it.values, path);
  } while (accepted.o.accepts(it.o.at(0), 0) && path.exp_error > 0x1p-40);
  ASSERT_FALSE(accepted.o.accepts(it.o.at(0), 0));
  EXPECT_FALSE(resemblance(it.asked.problem, it.values, path, accepted, o_alone));
  // Many of them are: the same mistake over rows.
  Answered many("q=1x1x64x1 kv=1x2x1 in=bf16 out=bf16 scale=1");
  commit(many, "scale_10_percent_more", {0});
  const auto found = resemblance(
      many.asked.problem, many.values, {.p_format = Format::bf16},
      acceptance(many.asked.problem, many.values, {.p_format = Format::bf16}), {&many.o, nullptr});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wrong_answer, "scale_10_percent_more");
}

}  // namespace
}  // namespace attest
