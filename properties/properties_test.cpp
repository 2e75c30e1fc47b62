// Each property, tested from both sides: it accepts the truth and an honest f32 computation on
// every case tried, and it refuses at least one small mistake that is its business.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "properties/ask.hpp"
#include "properties/domains/domain.hpp"
#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "properties/oracle_subject.hpp"
#include "properties/property.hpp"
#include "properties/testing/counted_subject.hpp"
#include "properties/testing/mistakes.hpp"
#include "properties/testing/tiled_subject.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// Cases per property: the hard ones and so many drawn ones.
constexpr std::uint64_t kDrawn = 40;
/// Drawn cases that cost more are left to campaigns.
constexpr double kWorkMost = 6e4;

bool is_cheap(const Problem& p) {
  return static_cast<double>(p.batch * p.num_heads_q * p.seqlen_q) *
             static_cast<double>((p.seqlen_kv + 1) * (p.head_dim + p.head_dim_v)) <=
         kWorkMost;
}

void expect_all_hold(const Subject& subject) {
  for (const Property& property : catalogue()) {
    int held = 0;
    const std::uint64_t last = hard_cases(property.name).size() + kDrawn;
    for (std::uint64_t index = 0; index < last; ++index) {
      const Case c = draw_case(property.name, 11, index);
      if (!is_cheap(c.problem) && property.name != "variance_scaling") continue;
      const Verdict verdict = property.check(subject, c.problem, make_values(c));
      EXPECT_NE(verdict.outcome, Outcome::violated) << property.name << ": " << print(c) << "\n  "
                                                    << verdict.why << " margin " << verdict.margin;
      EXPECT_NE(verdict.outcome, Outcome::faulted) << property.name << ": " << verdict.why;
      EXPECT_NE(verdict.outcome, Outcome::declined) << property.name << ": " << verdict.why;
      held += verdict.outcome == Outcome::holds ? 1 : 0;
      if (property.name == "variance_scaling" && index >= 5) break;  // costly, and all alike
    }
    EXPECT_GE(held, 5) << property.name;
  }
}

TEST(Properties, NeverRefuseTheTruth) {
  expect_all_hold(counted(oracle_subject()));
}

TEST(Properties, LeaveRoomForHonestRounding) {
  expect_all_hold(counted(tiled_subject(16)));
}

const Property& property_named(const std::string& name) {
  for (const Property& property : catalogue()) {
    if (property.name == name) return property;
  }
  ADD_FAILURE() << "no property " << name;
  return catalogue().front();
}

/// Whether some cheap case, a hard one or one of the first drawn, makes `property` refuse
/// `subject`.
bool refuses(const Property& property, const Subject& subject) {
  constexpr std::uint64_t kFirstDrawn = 10;
  const std::uint64_t last = hard_cases(property.name).size() + kFirstDrawn;
  for (std::uint64_t index = 0; index < last; ++index) {
    const Case c = draw_case(property.name, 5, index);
    if (!is_cheap(c.problem) && property.name != "variance_scaling") continue;
    const Verdict verdict = property.check(subject, c.problem, make_values(c));
    if (verdict.outcome != Outcome::violated) continue;
    EXPECT_FALSE(verdict.why.empty());
    return true;
  }
  return false;
}

TEST(Properties, EachRefusesItsMistakes) {
  std::vector<std::string> proven;
  for (const Mistake& mistake : mistakes()) {
    for (const std::string& name : mistake.seen_by) {
      EXPECT_TRUE(refuses(property_named(name), mistake.subject()))
          << mistake.name << " / " << name;
      proven.push_back(name);
    }
  }
  for (const Property& property : catalogue()) {
    EXPECT_NE(std::find(proven.begin(), proven.end(), property.name), proven.end())
        << property.name << " has refused nothing yet";
  }
}

// Leaked poison: a subject that reads behind the keys, and lets what it finds touch the output.
TEST(Properties, CausalitySeesPoison) {
  Subject subject = oracle_subject();
  intercept<Attend>(subject, [](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    if (poison == Poison::small) reply.o.set(0, reply.o.at(0) * 1.5 + 1);
    return reply;
  });
  const Case c = parse_case("q=1x1x2x4 kv=1x3x4 spare=2");
  const Verdict verdict = property_named("causality").check(subject, c.problem, make_values(c));
  EXPECT_EQ(verdict.outcome, Outcome::violated);
  EXPECT_NE(verdict.why.find("poison"), std::string::npos) << verdict.why;
}

TEST(Properties, WhatCannotBeExecutedIsNoVerdict) {
  Subject subject = oracle_subject();
  subject.description.counts = true;
  subject.call = [](const Request&, Poison) {
    Reply reply;
    reply.fault = Fault{std::string(kUnsupported), "the emulator does not execute 'fly'"};
    return reply;
  };
  for (const Property& property : catalogue()) {
    const Case c = draw_case(property.name, 1, 0);  // a hard case: there is something to ask
    try {
      property.check(subject, c.problem, make_values(c));
      ADD_FAILURE() << property.name;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "the emulator does not execute 'fly'");
    }
  }
}

TEST(Properties, FaultsAndRefusalsAreNotVerdictsOnNumbers) {
  Subject faulty = oracle_subject(), choosy = oracle_subject(), misshapen = oracle_subject();
  for (Subject* subject : {&faulty, &choosy, &misshapen}) subject->description.counts = true;
  faulty.call = [](const Request&, Poison) {
    Reply reply;
    reply.fault = Fault{"memcheck", "read behind k"};
    return reply;
  };
  choosy.declines = [](Operation, const Problem&) { return std::string("not today"); };
  misshapen.call = [](const Request&, Poison) { return Reply{}; };
  for (const Property& property : catalogue()) {
    const Case c = draw_case(property.name, 1, 0);  // a hard case: there is something to ask
    const Values values = make_values(c);
    const Verdict fault = property.check(faulty, c.problem, values);
    EXPECT_EQ(fault.outcome, Outcome::faulted) << property.name;
    EXPECT_NE(fault.why.find("read behind k"), std::string::npos) << fault.why;
    const Verdict decline = property.check(choosy, c.problem, values);
    EXPECT_EQ(decline.outcome, Outcome::declined) << property.name;
    EXPECT_NE(decline.why.find("not today"), std::string::npos) << decline.why;
    EXPECT_EQ(property.check(misshapen, c.problem, values).outcome, Outcome::faulted)
        << property.name;
    EXPECT_EQ(property.check(Subject{}, c.problem, values).outcome, Outcome::declined)
        << property.name;
  }
}

// A subject that promises nothing may change its last bits; one that leaks may not.
TEST(Properties, WithoutAPromiseOfBitsTheBoundDecides) {
  Subject wobbling = tiled_subject(16);
  wobbling.description.deterministic = false;
  const auto runs = std::make_shared<int>(0);
  intercept<Attend>(wobbling, [runs](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    reply.o.set_bits(0, reply.o.bits(0) ^ static_cast<std::uint32_t>((*runs)++ % 2));
    return reply;
  });
  const Case c = parse_case("q=1x1x4x8 kv=1x9x4 causal fill=normal");
  const Values values = make_values(c);
  EXPECT_EQ(property_named("causality").check(wobbling, c.problem, values).outcome, Outcome::holds);
  EXPECT_EQ(property_named("rerun").check(wobbling, c.problem, values).outcome, Outcome::declined);
  wobbling.description.deterministic = true;
  EXPECT_EQ(property_named("causality").check(wobbling, c.problem, values).outcome,
            Outcome::violated);
}

TEST(Properties, CostsOfASubjectThatCountsNothingAreDeclined) {
  for (const char* name : {"no_score_matrix", "work_grows_with_scores", "cached_work"}) {
    const Case c = draw_case(name, 1, 0);
    const Verdict verdict = property_named(name).check(oracle_subject(), c.problem, make_values(c));
    EXPECT_EQ(verdict.outcome, Outcome::declined) << name;
    EXPECT_NE(verdict.why.find("counts nothing"), std::string::npos) << verdict.why;
  }
}

TEST(Properties, ConditionsThatDoNotApplyAreVacuous) {
  const auto outcome = [](const std::string& property, const std::string& line) {
    const Case c = parse_case(line);
    return property_named(property).check(oracle_subject(), c.problem, make_values(c)).outcome;
  };
  EXPECT_EQ(outcome("variance_scaling", "q=1x1x9x4 kv=1x2x2 fill=normal"), Outcome::vacuous);
  EXPECT_EQ(outcome("effective_scale", "q=1x1x9x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("cached_equals_recomputed", "q=1x1x3x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("batch_independence", "q=1x1x3x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("recovered_weights", "q=1x1x3x4 kv=1x0x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("oracle_agreement", "q=1x1x3x4 kv=1x3x2 q_len=0"), Outcome::vacuous);
  EXPECT_EQ(outcome("copied_pages", "q=1x1x3x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("quantised_path", "q=1x1x3x4 kv=1x3x2 cache=i8"), Outcome::vacuous);
  // What a cache with scales is not asked about, and what it is.
  const std::string scaled = " cache=i8 scales=token page=4";
  EXPECT_EQ(outcome("effective_scale", "q=1x1x3x4 kv=1x2x2" + scaled), Outcome::vacuous);
  EXPECT_EQ(outcome("recovered_weights", "q=1x1x3x4 kv=1x2x2" + scaled), Outcome::vacuous);
  EXPECT_EQ(outcome("projection_agreement", "q=1x1x3x4 kv=1x2x2" + scaled), Outcome::vacuous);
  EXPECT_EQ(outcome("cached_equals_recomputed", "q=1x1x3x4 kv=1x3x2 causal" + scaled),
            Outcome::vacuous);
  for (const char* name : {"oracle_agreement", "row_sums", "no_score_matrix", "convexity"}) {
    const Case c = parse_case("q=1x1x33x4 kv=1x40x2" + scaled);
    EXPECT_EQ(
        property_named(name).check(counted(oracle_subject()), c.problem, make_values(c)).outcome,
        Outcome::holds)
        << name;
  }
  for (const char* name : {"work_grows_with_scores", "cached_work"}) {
    const Case c = parse_case("q=1x1x1x4 kv=1x128x2" + scaled);
    EXPECT_EQ(
        property_named(name).check(counted(oracle_subject()), c.problem, make_values(c)).outcome,
        Outcome::vacuous)
        << name;
  }
}

}  // namespace
}  // namespace attest
