// A campaign against subjects that do as they are told: what it counts, keeps, stops at and
// survives.
#include "fuzz/campaign.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "fuzz/setting.hpp"
#include "fuzz/testing/fake_world.hpp"
#include "properties/domains/domain.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

TEST(Campaign, WhatIsNotAskedForIsNeitherRunNorShrunkTo) {
  const FakeBehaviour wrong{
      [](const Problem& p, const Values&) { return p.seqlen_kv > 20; }, {}, {}};
  CampaignOptions options = cases(120, 1);
  options.where = parse_narrowing("causal head_dim=5..9 head_dim_v=3..");
  options.first = {{"first", draw_case("first", 1, 0), {}}};
  options.first[0].test_case.problem.causal = false;
  const attest::Run run = run_against(wrong, options);
  EXPECT_EQ(run.where, "causal head_dim=5..9 head_dim_v=3..");
  EXPECT_EQ(run.tallies[0].declined, 1U);  // the regression case
  ASSERT_EQ(run.findings.size(), 3U);
  for (const Finding& finding : run.findings) {
    for (const Case& made : {finding.found, finding.shrunk}) {
      EXPECT_TRUE(asks_for(options.where, Operation::prefill, made.problem)) << print(made);
    }
    EXPECT_EQ(finding.shrunk.problem.seqlen_kv, 21);
    EXPECT_EQ(finding.shrunk.problem.head_dim, 5);
    EXPECT_EQ(finding.shrunk.problem.head_dim_v, 3);
    // Shown again without a word of what was asked for.
    EXPECT_EQ(
        check_case(fake_subject(wrong), property_named(finding.property), finding.shrunk).outcome,
        Outcome::violated);
  }
  for (const unsigned threads : {2U, 5U}) {
    options.threads = threads;
    EXPECT_EQ(fingerprint(run_against(wrong, options)), fingerprint(run)) << threads;
  }
}

TEST(Campaign, CountsEveryCaseOnce) {
  const attest::Run healthy = run_against({}, cases(300));
  EXPECT_EQ(healthy.cases(), 300U);
  ASSERT_EQ(healthy.tallies.size(), 3U);
  for (const PropertyTally& tally : healthy.tallies) {
    EXPECT_EQ(tally.cases, 100U) << tally.property;
    EXPECT_EQ(tally.held, 100U);
    EXPECT_EQ(tally.compared, 100U);
    EXPECT_GT(tally.margin_max, 0);
    EXPECT_EQ(tally.margin_max, static_cast<double>(tally.margin_case.seed) / 1024);
  }
  EXPECT_TRUE(healthy.findings.empty());
  EXPECT_EQ(healthy.power.at("zeros").cases, 300U);
  EXPECT_EQ(healthy.power.at("zeros").refused, healthy.features.at("causal"));
  EXPECT_FALSE(healthy.interrupted);
  EXPECT_EQ(healthy.error, "");
  EXPECT_EQ(healthy.next_index, 300U);
  EXPECT_EQ(healthy.subject, "fake");
}

TEST(Campaign, DoesNotDependOnTheNumberOfThreads) {
  const FakeBehaviour behaviour{
      [](const Problem& p, const Values&) { return p.causal && p.seqlen_kv >= 30 && p.batch == 3; },
      [](const Problem& p) { return std::string(p.head_dim > 60 ? "memcheck" : ""); },
      [](const Problem& p) { return p.bias && p.seqlen_q % 7 == 0; }};
  for (const std::uint64_t most : {1U, 3U}) {
    CampaignOptions options = cases(500, 1);
    options.findings_per_property = most;
    options.shrink_seconds = 1000;
    const std::string alone = fingerprint(run_against(behaviour, options));
    for (const unsigned threads : {2U, 5U}) {
      options.threads = threads;
      EXPECT_EQ(fingerprint(run_against(behaviour, options)), alone) << threads << " threads";
    }
  }
}

TEST(Campaign, AnotherSeedDrawsOtherCases) {
  CampaignOptions other = cases(60);
  other.seed = 2;
  EXPECT_NE(fingerprint(run_against({}, cases(60))), fingerprint(run_against({}, other)));
}

TEST(Campaign, AFailingPropertyIsShrunkKeptAndClosedWhileOthersGoOn) {
  std::vector<Finding> told;
  CampaignEvents events;
  events.found = [&](const Finding& finding) { told.push_back(finding); };
  const std::atomic<bool> stop = false;
  const attest::Run result = run_campaign(
      [] {
        Subject subject =
            fake_subject({[](const Problem& p, const Values&) { return p.causal; }, {}, {}});
        return subject;
      },
      cases(200), events, stop);
  ASSERT_EQ(result.findings.size(), 3U);
  ASSERT_EQ(told.size(), 3U);
  Case least;
  least.problem.causal = true;
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].shrunk, least);
    EXPECT_EQ(told[i].verdict.outcome, Outcome::violated);
    EXPECT_EQ(result.findings[i].property, told[i].property);
    EXPECT_EQ(result.tallies[i].violated, 1U);
  }
  EXPECT_LT(result.cases(), 200U) << "with every property closed there is nothing to draw";
}

TEST(Campaign, AClosedPropertyLeavesItsShareToTheOthers) {
  CampaignOptions options = cases(90);
  options.first = {{"second", {}}};
  const FakeBehaviour once{[](const Problem& p, const Values&) { return p == Problem{}; }, {}, {}};
  const attest::Run result = run_against(once, options);
  EXPECT_EQ(result.tallies[1].cases, 1U);
  EXPECT_EQ(result.tallies[0].cases, 45U);
  EXPECT_EQ(result.tallies[2].cases, 45U);
  EXPECT_EQ(result.findings.size(), 1U);
}

TEST(Campaign, KnowsWhatIsOfferedAndHowWideThePathsWere) {
  const attest::Run result = run_against({}, cases(300));
  EXPECT_EQ(result.offered, std::vector<Operation>{Operation::prefill});
  EXPECT_EQ(result.judged(), 300U);
}

TEST(Campaign, TwoCasesThatShrinkToOneAreOneFinding) {
  CampaignOptions options = cases(200);
  options.findings_per_property = 4;
  options.properties = {"third"};
  const attest::Run result =
      run_against({[](const Problem& p, const Values&) { return p.causal; }, {}, {}}, options);
  EXPECT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.tallies.size(), 1U);
  EXPECT_EQ(result.tallies[0].violated, 4U);
}

TEST(Campaign, FaultsAreFindingsAndDeclinesAreNot) {
  const attest::Run result =
      run_against({{},
                   [](const Problem& p) { return std::string(p.seqlen_kv > 20 ? "hung" : ""); },
                   [](const Problem& p) { return p.bias; }},
                  cases(60));
  EXPECT_FALSE(result.findings.empty());
  for (const Finding& finding : result.findings) {
    EXPECT_EQ(finding.verdict.outcome, Outcome::faulted);
    EXPECT_EQ(finding.shrunk.problem.seqlen_kv, 21);
    EXPECT_FALSE(finding.shrunk.problem.bias);
  }
}

TEST(Campaign, TheCorpusRunsFirstAndOnTopOfTheBudget) {
  std::vector<PropertyCase> ran;
  CampaignEvents events;
  events.about_to_run = [&](const PropertyCase& check) { ran.push_back(check); };
  CampaignOptions options = cases(3, 1);
  Case known;
  known.problem.seqlen_kv = 7;
  options.first = {{"third", known}, {"first", known}};
  const attest::Run result = run_against({}, options, events);
  ASSERT_EQ(ran.size(), 5U);
  EXPECT_EQ(ran[0], options.first[0]);
  EXPECT_EQ(ran[1], options.first[1]);
  EXPECT_EQ(ran[2], (PropertyCase{"first", draw_case("first", 1, 0)}));
  EXPECT_EQ(result.next_index, 3U);
  options.first_index = 3;
  ran.clear();
  EXPECT_EQ(run_against({}, options, events).next_index, 6U);
  EXPECT_EQ(ran[2], (PropertyCase{"first", draw_case("first", 1, 1)}));
}

TEST(Campaign, StopsWhenAskedAndSaysSo) {
  std::atomic<bool> stop = false;
  CampaignEvents events;
  std::uint64_t begun = 0;
  events.about_to_run = [&](const PropertyCase&) { stop = ++begun >= 25; };
  const attest::Run result = run_campaign([] { return fake_subject({}); }, {}, events, stop);
  EXPECT_TRUE(result.interrupted);
  EXPECT_GE(result.cases(), 24U);
  EXPECT_LE(result.cases(), 27U);
  EXPECT_EQ(result.next_index, result.cases());
}

TEST(Campaign, AFaultThatComesWithTheStopIsNotBelieved) {
  std::atomic<bool> stop = false;
  const auto make = [&] {
    return fake_subject({{},
                         [&](const Problem&) {
                           stop = true;
                           return std::string("crashed");
                         },
                         {}});
  };
  const attest::Run result = run_campaign(make, cases(10), {}, stop);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.next_index, 0U) << "what was lost is drawn again by whoever goes on";
}

/// Wrong about causal cases under the numbers of one architecture.
Subject told_subject() {
  const auto now = std::make_shared<Setting>();
  Subject subject = fake_subject({[now](const Problem& p, const Values&) {
                                    return p.causal && now->numerics.starts_with("sm_120");
                                  },
                                  {},
                                  {}});
  subject.begin_under = [now](const Setting& setting) { *now = setting; };
  return subject;
}

CampaignOptions drawing(std::uint64_t count, unsigned threads) {
  CampaignOptions options = cases(count, threads);
  options.emulation = {std::string(kDrawn), "none", std::nullopt};
  options.findings_per_property = 1000;
  options.shrink_seconds = 1000;
  return options;
}

TEST(Campaign, DrawsASettingForEveryCaseWhateverTheThreads) {
  const std::atomic<bool> stop = false;
  std::set<std::string> lines[3];
  std::string prints[3];
  for (const unsigned threads : {1U, 2U, 5U}) {
    const std::size_t at = threads / 2;
    CampaignEvents events;
    events.about_to_run = [&](const PropertyCase& check) { lines[at].insert(print(check)); };
    const attest::Run result = run_campaign(told_subject, drawing(400, threads), events, stop);
    prints[at] = fingerprint(result);
    EXPECT_EQ(result.cases(), 400U);
    EXPECT_EQ(result.numerics, "emulated: drawn");
    ASSERT_EQ(result.models.size(), 10U);  // five architectures, each alone and at its worst
    std::uint64_t counted = 0;
    for (const auto& [model, cases] : result.models) {
      EXPECT_GT(cases, 15U) << model;
      counted += cases;
    }
    EXPECT_EQ(counted, 400U);
    ASSERT_FALSE(result.findings.empty());
    for (const Finding& finding : result.findings) {
      ASSERT_TRUE(finding.setting);
      EXPECT_TRUE(finding.setting->numerics.starts_with("sm_120")) << finding.setting->numerics;
      const Subject again = told_subject();
      begin_under(again, finding.setting);
      EXPECT_EQ(check_case(again, property_named(finding.property), finding.shrunk).outcome,
                Outcome::violated);
    }
  }
  EXPECT_EQ(prints[1], prints[0]);
  EXPECT_EQ(prints[2], prints[0]);
  EXPECT_EQ(lines[1], lines[0]);
  EXPECT_EQ(lines[2], lines[0]);
}

TEST(Campaign, ASettingIsAFunctionOfSeedAndNumber) {
  const EmulationOptions all = drawing(1, 1).emulation;
  EXPECT_EQ(print(PropertyCase{"", {}, draw_setting(all, 1, 1000)}),
            "q=1x1x1x1 kv=1x1x1 numerics=sm_90+worst:3406153363 schedule=2939313798");
  std::set<std::string> drawn;
  int strictest = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Setting setting = draw_setting(all, 1, number);
    drawn.insert(print(PropertyCase{"", {}, setting}));
    strictest += setting.schedule == 0 ? 1 : 0;
    EmulationOptions half = all;
    half.schedule = 3;
    EXPECT_EQ(draw_setting(half, 1, number), (Setting{setting.numerics, 3}));
    half = all;
    half.numerics = "f32";
    EXPECT_EQ(draw_setting(half, 1, number), (Setting{"f32", setting.schedule}));
  }
  EXPECT_GT(drawn.size(), 140U);
  EXPECT_GT(strictest, 70);
  EXPECT_LT(strictest, 130);
  EXPECT_NE(draw_setting(all, 1, 7), draw_setting(all, 2, 7));
  EXPECT_NE(draw_setting(all, 1, 7), draw_setting(all, 1, 7 + (std::uint64_t{1} << 32)));
}

TEST(Campaign, ALineOfTheCorpusHasTheSettingItNames) {
  const std::atomic<bool> stop = false;
  std::vector<PropertyCase> ran;
  CampaignEvents events;
  events.about_to_run = [&](const PropertyCase& check) { ran.push_back(check); };
  CampaignOptions options = drawing(0, 1);
  options.first = {{"first", {}}, {"second", {}, Setting{"f32+worst:4", 9}}};
  run_campaign(told_subject, options, events, stop);
  options.emulation.schedule = 5;
  run_campaign(told_subject, options, events, stop);
  ASSERT_EQ(ran.size(), 4U);
  EXPECT_EQ(ran[0].setting, (Setting{"sm_80", 0}));
  EXPECT_EQ(ran[1].setting, (Setting{"f32+worst:4", 9}));
  EXPECT_EQ(ran[2].setting, (Setting{"sm_80", 5}));
  EXPECT_EQ(ran[3].setting, (Setting{"f32+worst:4", 5}));
  ran.clear();
  run_campaign([] { return fake_subject({}); }, options, events, stop);
  ASSERT_EQ(ran.size(), 2U);
  EXPECT_EQ(ran[0].setting, std::nullopt) << "where nothing can be told, as on a GPU";
}

TEST(Campaign, KeepsToItsSeconds) {
  CampaignOptions options;
  options.budget_seconds = 0.2;
  double share = 0;
  CampaignEvents events;
  events.progress = [&](const attest::Run&, double done) { share = std::max(share, done); };
  const auto begin = std::chrono::steady_clock::now();
  const attest::Run result =
      run_against({[](const Problem&, const Values&) {
                     std::this_thread::sleep_for(std::chrono::milliseconds(5));
                     return false;
                   },
                   {},
                   {}},
                  options, events);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 0.2);
  EXPECT_LT(took.count(), 5);
  EXPECT_GT(result.cases(), 1U);
  EXPECT_GT(share, 0.3);
  EXPECT_FALSE(result.interrupted);
}

TEST(Campaign, AThrowingCheckEndsItButKeepsWhatWasFound) {
  CampaignOptions options = cases(1000);
  options.first = {{"first", {}}};
  const attest::Run result =
      run_against({[](const Problem& p, const Values&) { return p == Problem{}; },
                   [](const Problem& p) -> std::string {
                     if (p.seqlen_kv == 33) throw Error("the disk is full");
                     return {};
                   },
                   {}},
                  options);
  EXPECT_EQ(result.findings.size(), 1U);
  EXPECT_NE(result.error.find("the disk is full (while checking '"), std::string::npos)
      << result.error;
  EXPECT_LT(result.cases(), 1000U);
}

TEST(Campaign, AListenerThatThrowsEndsItButKeepsWhatWasFound) {
  const FakeBehaviour wrong{[](const Problem& p, const Values&) { return p.causal; }, {}, {}};
  CampaignEvents events;
  events.found = [](const Finding&) { throw Error("the disk is full"); };
  const attest::Run found = run_against(wrong, cases(100), events);
  EXPECT_EQ(found.findings.size(), 1U);
  EXPECT_NE(found.error.find("the disk is full"), std::string::npos);
  events.found = {};
  events.about_to_run = [](const PropertyCase&) { throw Error("no room for a line"); };
  const attest::Run begun = run_against(wrong, cases(100), events);
  EXPECT_NE(begun.error.find("no room for a line"), std::string::npos);
  EXPECT_EQ(begun.cases(), 0U);
}

TEST(Campaign, PassesOnWhyThereIsNoSubject) {
  const std::atomic<bool> stop = false;
  EXPECT_THROW(run_campaign([]() -> Subject { throw Error("no such plugin"); }, {}, {}, stop),
               Error);
  CampaignOptions unknown;
  unknown.properties = {"frist"};
  EXPECT_THROW(run_against({}, unknown), Error);
}

TEST(Campaign, OneSubjectPerThreadAndEventsOneAtATime) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  int made = 0;
  std::atomic<int> inside = 0;
  CampaignEvents events;
  events.about_to_run = [&](const PropertyCase&) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    std::this_thread::yield();
    inside.fetch_sub(1);
  };
  const std::atomic<bool> stop = false;
  run_campaign(
      [&] {
        ++made;
        return fake_subject({[&](const Problem&, const Values&) {
                               const std::lock_guard lock(mutex);
                               threads.insert(std::this_thread::get_id());
                               return false;
                             },
                             {},
                             {}});
      },
      cases(600, 3), events, stop);
  EXPECT_EQ(made, 3);
  EXPECT_LE(threads.size(), 3U);
}

}  // namespace
}  // namespace attest
