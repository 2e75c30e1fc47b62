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
  return measure_power(c.problem, values, {}, acceptance(c.problem, values, {}));
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

/// By O or LSE alone, of a kernel of `path`.
Trials trials_of(const std::string& line, const PrecisionPath& path, bool with_o, bool with_lse) {
  const Case c = parse_case(line);
  const Values values = make_values(c);
  const Tensor given;  // only whether it is there is looked at
  return try_wrong_answers(c.problem, values, path, acceptance(c.problem, values, path),
                           {with_o ? &given : nullptr, with_lse ? &given : nullptr});
}

Fate fate_of(const Trials& trials, std::string_view wrong_answer) {
  for (const Trial& trial : trials.tried) {
    if (trial.wrong_answer == wrong_answer) return trial.fate;
  }
  ADD_FAILURE() << wrong_answer << " was not tried";
  return Fate::same;
}

TEST(Trials, OnlyWhatWasGivenTells) {
  const std::string line = "q=1x2x3x8 kv=2x9x8";
  const Trials both = trials_of(line, {}, true, true);
  const Trials o = trials_of(line, {}, true, false);
  const Trials lse = trials_of(line, {}, false, true);
  for (const char* name : {"drops_one_key", "scale_10_percent_more", "next_kv_head"}) {
    for (const Trials* trials : {&both, &o, &lse}) {
      EXPECT_EQ(fate_of(*trials, name), Fate::refused) << name;
    }
  }
  EXPECT_EQ(fate_of(both, "other_lse_base"), Fate::refused);
  EXPECT_EQ(fate_of(o, "other_lse_base"), Fate::same);
  EXPECT_EQ(fate_of(lse, "other_lse_base"), Fate::refused);
  EXPECT_EQ(fate_of(o, "swaps_two_values"), Fate::refused);
  EXPECT_EQ(fate_of(lse, "swaps_two_values"), Fate::same);
  EXPECT_EQ(fate_of(lse, "answers_zero"), Fate::same);
  for (const Trials* trials : {&both, &o, &lse}) EXPECT_FALSE(blind(*trials));
}

TEST(Trials, APathThatPromisesLittleIsBlind) {
  for (const bool with_lse : {false, true}) {
    const Trials trials = trials_of("q=1x1x3x8 kv=1x9x8", {.exp_error = 0.5}, true, with_lse);
    EXPECT_EQ(trials.zeros, Fate::accepted);
    EXPECT_TRUE(zeros_pass(trials));
    EXPECT_EQ(fate_of(trials, "drops_one_key"), Fate::accepted);
  }
  EXPECT_TRUE(blind(trials_of("q=1x1x3x8 kv=1x9x8", {.exp_error = 0.5}, false, true)));
  // Values of one sign: zeros alone are refused, and they say nothing of the weights.
  const Trials trials =
      trials_of("q=1x1x3x8 kv=1x9x8 fill=one_signed", {.exp_error = 0.2}, true, false);
  EXPECT_FALSE(trials.o.refused);
  EXPECT_TRUE(trials.o.blind());
}

TEST(Trials, LossesOfPrecisionMustBeSeenWhereThePathRulesThemOut) {
  // A few keys in f32 show them; a thousand with a rescale at every key do not.
  const Trials few = trials_of("q=1x1x3x8 kv=1x9x8", {}, true, true);
  for (const char* loss : {"rounds_p_to_bf16", "o_1_in_128_small", "scale_1_in_1024_more"}) {
    EXPECT_EQ(fate_of(few, loss), Fate::refused) << loss;
  }
  EXPECT_TRUE(few.unseen_losses().empty());
  const Trials many = trials_of("q=1x1x3x8 kv=1x2000x8", {.exp_error = 0x1p-22}, true, true);
  EXPECT_FALSE(many.unseen_losses().empty());
  EXPECT_TRUE(blind(many));
  // A path that loses as much itself promises nothing of the kind.
  const Trials cast = trials_of("q=1x1x3x8 kv=1x2000x8", {.p_format = Format::bf16}, true, true);
  EXPECT_TRUE(cast.unseen_losses().empty());
  for (const Power& power : power_of("q=1x1x3x8 kv=1x9x8 in=bf16 out=bf16")) {
    EXPECT_NE(power.wrong_answer, "o_1_in_128_small");
  }
}

TEST(Trials, OneKeyAndNoKeyAndNoValuesAreWhatTheyAre) {
  // O is the value, exactly: no error of the weights matters, and nothing but zeros is another O.
  const Trials one = trials_of("q=1x1x3x8 kv=1x1x8", {.exp_error = 0.5}, true, false);
  EXPECT_EQ(one.zeros, Fate::refused);
  EXPECT_EQ(fate_of(one, "scale_10_percent_more"), Fate::same);
  EXPECT_FALSE(blind(one));
  const Trials none = trials_of("q=1x1x2x4 kv=1x0x4", {}, true, true);
  EXPECT_FALSE(none.sees_keys);
  EXPECT_TRUE(none.tried.empty());
  EXPECT_FALSE(blind(none));
  const Trials equal = trials_of("q=1x1x2x4 kv=1x5x4 fill=constant", {}, true, false);
  EXPECT_EQ(fate_of(equal, "swaps_two_values"), Fate::same);
  EXPECT_FALSE(blind(equal));
  // V is zero, and so is O: zeros are right, and show nothing.
  Case c = parse_case("q=1x1x2x4 kv=1x5x4");
  Values values = make_values(c);
  values.v = Tensor(values.v.format, values.v.extent);
  const Trials zero = try_wrong_answers(c.problem, values, {}, acceptance(c.problem, values, {}),
                                        {&values.v, nullptr});
  EXPECT_EQ(zero.zeros, Fate::same);
  EXPECT_TRUE(zeros_pass(zero));
}

}  // namespace
}  // namespace attest
