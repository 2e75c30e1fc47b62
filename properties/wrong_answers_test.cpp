// Wrong answers: each is seen by the case made for it, by none that it cannot touch, and the right
// answer itself never counts as refused.
#include "properties/wrong_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "properties/fills.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::vector<Power> power_of(const std::string& line) {
  const Case c = parse_case(line);
  const Values values = make_values(c);
  return measure_power(c.problem, values, acceptance(c.problem, values, {}));
}

/// Nothing: it was not tried.
std::optional<bool> refused(const std::string& line, const std::string& wrong_answer) {
  for (const Power& power : power_of(line)) {
    if (power.wrong_answer == wrong_answer) return power.refused;
  }
  return std::nullopt;
}

TEST(WrongAnswers, ATypicalCaseRefusesAll) {
  const std::string line =
      "q=2x6x5x8 kv=3x9x8 causal window=3,inf softcap=2 bias alibi sinks mask fill=normal seed=7";
  std::set<std::string> tried;
  for (const Power& power : power_of(line)) tried.insert(power.wrong_answer);
  for (const std::string_view name : wrong_answer_names()) {
    EXPECT_EQ(tried.count(std::string(name)), 1U) << name;
  }
  // The maximum alone is beyond what unit logits can show.
  for (const Power& power : power_of(line)) {
    const bool about_range =
        power.wrong_answer == "forgets_max" || power.wrong_answer == "starts_max_at_zero";
    EXPECT_EQ(power.refused, !about_range) << power.wrong_answer;
  }
}

TEST(WrongAnswers, ExtremeLogitsShowTheMaximum) {
  const std::string low = "q=1x1x2x8 kv=1x9x8 fill=logits_low";
  const std::string high = "q=1x1x2x8 kv=1x9x8 fill=logits_high";
  EXPECT_EQ(refused(low, "starts_max_at_zero"), true);
  EXPECT_EQ(refused(low, "forgets_max"), true);
  EXPECT_EQ(refused(high, "forgets_max"), true);
  EXPECT_EQ(refused(high, "starts_max_at_zero"), false);
}

TEST(WrongAnswers, WhatCannotDifferIsNotTried) {
  const std::string plain = "q=1x2x3x4 kv=1x5x4";
  for (const char* name : {"leaks_one_key", "next_kv_head", "modulo_kv_head", "next_batch_entry",
                           "causal_sees_one_more", "window_one_wider", "other_alignment",
                           "ignores_mask", "ignores_bias", "ignores_sinks"}) {
    EXPECT_EQ(refused(plain, name), std::nullopt) << name;
  }
  EXPECT_EQ(refused("q=1x2x3x4 kv=2x5x4", "modulo_kv_head"), std::nullopt);
  EXPECT_EQ(refused("q=1x1x3x4 kv=1x3x4 causal", "other_alignment"), std::nullopt);
}

TEST(WrongAnswers, CasesWithoutPowerAreNamed) {
  // Equal values: no weight can be told from another, and LSE alone sees the scale.
  EXPECT_EQ(refused("q=1x1x2x4 kv=1x5x4 fill=constant", "swaps_two_values"), false);
  EXPECT_EQ(refused("q=1x1x2x4 kv=1x5x4 fill=constant", "scale_10_percent_more"), true);
  // q = 0: every scale gives the same.
  EXPECT_EQ(refused("q=1x1x2x4 kv=1x5x4 fill=zero_query", "scale_10_percent_more"), false);
  EXPECT_EQ(refused("q=1x1x2x4 kv=1x5x4 fill=zero_query", "weighs_equally"), false);
  EXPECT_EQ(refused("q=1x1x2x4 kv=1x5x4 fill=zero_query", "drops_one_key"), true);
}

TEST(WrongAnswers, EmptyRowsJudgeNothing) {
  for (const Power& power : power_of("q=1x1x2x4 kv=1x0x4")) {
    EXPECT_FALSE(power.refused) << power.wrong_answer;
  }
}

/// The truth of `answered`, given as the answer to `asked`.
std::optional<Resemblance> resembled(const std::string& asked, const std::string& answered,
                                     double noise = 0) {
  const Case c = parse_case(asked);
  const Problem& p = c.problem;
  const Values values = make_values(c);
  const Problem other = parse_problem(answered);
  Values seen = values;
  if (!other.bias) seen.bias.reset();
  if (!other.alibi) seen.slopes.reset();
  if (!other.sinks) seen.sinks.reset();
  if (!other.mask) seen.mask.reset();
  const Truth truth = exact_attention(other, seen);
  Tensor o(p.output, {p.batch, p.query_heads, p.queries, p.v_depth});
  Tensor lse(Format::f32, {p.batch, p.query_heads, p.queries, 1});
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

}  // namespace
}  // namespace attest
