// Shrinking is judged by what is left: exactly the fields that a fake subject's fault depends on.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "fuzz/campaign.hpp"
#include "fuzz/shrink.hpp"
#include "fuzz/testing/fake_world.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Predicate = std::function<bool(const Problem&)>;

Case big_case() {
  Case big;
  Problem& p = big.problem;
  p.batch = 3;
  p.num_heads_kv = 3;
  p.num_heads_q = 12;
  p.seqlen_q = 57;
  p.seqlen_kv = 93;
  p.head_dim = 80;
  p.head_dim_v = 48;
  p.softmax_scale = default_scale(80);
  p.input = Format::bf16;
  p.output = Format::f16;
  p.softcap = 30;
  p.causal = p.bias = p.alibi = p.sinks = p.mask = true;
  p.alignment = Alignment::top_left;
  p.window_left = 20;
  p.window_right = 5;
  p.seqlens_q = {57, 3, 0};
  p.seqlens_kv = {9, 93, 40};
  p.empty_row = EmptyRow::nan;
  p.lse_base = LogBase::two;
  p.layout = Layout::bthd;
  p.spare_slots = 7;
  p.num_splits = 4;
  p.chunk = 5;
  big.fill = "needle";
  big.seed = 777;
  return big;
}

Finding shrunk_from(const Case& start, const Predicate& wrong) {
  const Subject subject =
      fake_subject({[wrong](const Problem& p, const Values&) { return wrong(p); }, {}, {}});
  const Property& property = property_named("first");
  CampaignOptions options;
  options.shrink_seconds = 1000;
  return shrink(subject, property, start, check_case(subject, property, start), options);
}

TEST(Shrink, WhatIsLeftIsExplainedOnceAndAsItWasFound) {
  const Subject subject =
      fake_subject({[](const Problem& p, const Values&) { return p.seqlen_kv >= 4; }, {}, {}});
  const Property& explained = property_named("third");
  const Verdict found = check_case(subject, explained, big_case());
  const Finding finding = shrink(subject, explained, big_case(), found, {});
  EXPECT_EQ(finding.shrunk.problem.seqlen_kv, 4);
  EXPECT_TRUE(finding.verdict.why.ends_with("; seen with 4 keys and 0")) << finding.verdict.why;
  EXPECT_EQ(finding.verdict.why.find("seen"), finding.verdict.why.rfind("seen"));
  Verdict held;
  held.outcome = Outcome::holds;
  explain(subject, explained, {}, {}, held);
  EXPECT_EQ(held.why, "");
}

TEST(Shrink, LeavesTheDefaultWhenEverythingIsWrong) {
  const Finding finding = shrunk_from(big_case(), [](const Problem&) { return true; });
  EXPECT_EQ(print(finding.shrunk), print(Case{}));
  EXPECT_EQ(finding.found, big_case());
  EXPECT_EQ(finding.property, "first");
  EXPECT_EQ(finding.verdict.outcome, Outcome::violated);
  EXPECT_LE(finding.shrink_steps, 20U) << "the big leaps should come first";
}

TEST(Shrink, KeepsExactlyCausalAndSeventeenKeys) {
  Case least;
  least.problem.causal = true;
  least.problem.seqlen_kv = 17;
  const Finding finding =
      shrunk_from(big_case(), [](const Problem& p) { return p.causal && p.seqlen_kv >= 17; });
  EXPECT_EQ(print(finding.shrunk), print(least));
}

TEST(Shrink, KeepsWhatOneFieldNeeds) {
  struct Row {
    const char* name;
    Predicate wrong;
    std::function<void(Problem&)> least;
  };
  const std::vector<Row> rows{
      {"batch", [](const Problem& p) { return p.batch >= 2; }, [](Problem& p) { p.batch = 2; }},
      {"group", [](const Problem& p) { return p.num_heads_q / p.num_heads_kv >= 3; },
       [](Problem& p) { p.num_heads_q = 3; }},
      {"gqa",
       [](const Problem& p) { return p.num_heads_kv >= 2 && p.num_heads_q > p.num_heads_kv; },
       [](Problem& p) {
         p.num_heads_kv = 2;
         p.num_heads_q = 4;
       }},
      {"window", [](const Problem& p) { return p.window_left >= 3; },
       [](Problem& p) { p.window_left = 3; }},
      {"diagonal", [](const Problem& p) { return p.seqlen_kv - p.seqlen_q == 36; },
       [](Problem& p) {
         p.seqlen_q = 1;
         p.seqlen_kv = 37;
       }},
      {"softcap", [](const Problem& p) { return p.softcap > 0; },
       [](Problem& p) { p.softcap = 1; }},
      {"lengths",
       [](const Problem& p) {
         return std::ranges::any_of(p.seqlens_kv, [&](Index n) { return n < p.seqlen_kv; });
       },
       [](Problem& p) { p.seqlens_kv = {0}; }},
      {"format", [](const Problem& p) { return p.output == Format::f16; },
       [](Problem& p) { p.output = Format::f16; }},
      {"splits", [](const Problem& p) { return p.num_splits > p.seqlen_kv; },
       [](Problem& p) { p.num_splits = 2; }},
  };
  for (const Row& row : rows) {
    Case least;
    row.least(least.problem);
    EXPECT_TRUE(invalidity(least.problem).empty()) << row.name << invalidity(least.problem);
    Case start = big_case();
    if (std::string(row.name) == "splits") start.problem.num_splits = 100;
    const Finding finding = shrunk_from(start, row.wrong);
    EXPECT_EQ(print(finding.shrunk), print(least)) << row.name;
  }
}

TEST(Shrink, EveryAnswerIsLegalAndStillFails) {
  for (Index residue = 0; residue < 7; ++residue) {
    const Predicate wrong = [residue](const Problem& p) {
      return (p.seqlen_kv + p.seqlen_q * 3 + p.head_dim) % 7 == residue;
    };
    Case start = big_case();
    while (!wrong(start.problem)) ++start.problem.seqlen_kv;
    start.problem.seqlens_kv.clear();
    const Finding finding = shrunk_from(start, wrong);
    EXPECT_EQ(invalidity(finding.shrunk.problem), "");
    EXPECT_TRUE(wrong(finding.shrunk.problem));
  }
}

TEST(Shrink, ScaleFollowsTheDepthOnlyWhenItWasTheDefault) {
  Case start;
  start.problem.head_dim = 64;
  start.problem.softmax_scale = default_scale(64);
  const Finding follows = shrunk_from(
      start, [](const Problem& p) { return p.softmax_scale == default_scale(p.head_dim); });
  EXPECT_EQ(follows.shrunk, Case{});
  start.problem.softmax_scale = 3;
  const Finding own = shrunk_from(start, [](const Problem& p) { return p.softmax_scale == 3; });
  EXPECT_EQ(own.shrunk.problem.softmax_scale, 3);
  EXPECT_EQ(own.shrunk.problem.head_dim, 1);
}

TEST(Shrink, DoesNotCrossFromOneKindOfFaultToAnother) {
  const Subject subject = fake_subject({{},
                                        [](const Problem& p) -> std::string {
                                          if (p.seqlen_kv >= 10) return "memcheck";
                                          return p.seqlen_kv >= 5 ? "hung" : "";
                                        },
                                        {}});
  const Property& property = property_named("second");
  const Case start = big_case();
  const Verdict verdict = check_case(subject, property, start);
  ASSERT_EQ(verdict.outcome, Outcome::faulted);
  EXPECT_EQ(shrink(subject, property, start, verdict, {}).shrunk.problem.seqlen_kv, 10);
}

TEST(Shrink, DoesNotCrossFromAnErrorBeyondAnyOrderToASmallerOne) {
  // Of a ring the fake world's bound that knows no order refuses the answer, else only another.
  const Subject subject =
      fake_subject({[](const Problem&, const Values&) { return true; }, {}, {}});
  const Property& property = property_named("first");
  const Case start = parse_case("q=1x1x1x4 kv=1x9x4 causal window=2,inf ring=3");
  const Observation seen = observe(subject, property, start);
  EXPECT_EQ(kind_of(seen), "violated: order_free");
  EXPECT_GT(shrink(subject, property, start, seen.verdict, {}).shrunk.problem.ring, 0);
  Observation sharper = seen;
  sharper.verdict.refused_by = "quantised";
  EXPECT_EQ(kind_of(sharper), "violated: by order");
}

TEST(Shrink, StopsAtItsNumberOfStepsAndWhenAsked) {
  const Subject subject = fake_subject(
      {[](const Problem& p, const Values&) { return p.seqlen_kv >= 30 && p.causal && p.bias; },
       {},
       {}});
  const Property& property = property_named("first");
  CampaignOptions options;
  options.shrink_steps = 7;
  const Observation seen = observe(subject, property, big_case());
  int announced = 0;
  ShrinkEvents events;
  const PropertyCase check{std::string(property.name), big_case(), Setting{"sm_90", 7}};
  events.about_to_run = [&](const PropertyCase& step) {
    ++announced;
    EXPECT_EQ(step.setting, check.setting);
  };
  const Finding bounded = shrink_observed(subject, check, seen, options, events);
  EXPECT_EQ(bounded.shrink_steps, 7U);
  EXPECT_EQ(announced, 7);
  EXPECT_EQ(bounded.setting, check.setting);
  events.stop = [] { return true; };
  EXPECT_EQ(shrink_observed(subject, check, seen, options, events).shrunk, big_case());
  options.shrink_seconds = 0;
  events.stop = {};
  EXPECT_EQ(shrink_observed(subject, check, seen, options, events).shrink_steps, 0U);
}

}  // namespace
}  // namespace attest
