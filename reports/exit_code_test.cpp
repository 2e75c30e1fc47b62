// The exit policy, case by case: what may be called proven, wrong, or undecided.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "fuzz/tally.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/testing/sample_run.hpp"

namespace attest {
namespace {

PropertyTally tally(std::string property, std::uint64_t cases, std::uint64_t vacuous,
                    std::uint64_t declined) {
  PropertyTally tally;
  tally.property = std::move(property);
  tally.cases = cases;
  tally.vacuous = vacuous;
  tally.declined = declined;
  tally.held = cases - vacuous - declined;
  tally.compared = 10 * tally.held;
  return tally;
}

Run good_run() {
  attest::Run run;
  run.tallies = {tally("a", 10, 0, 0), tally("b", 10, 0, 0)};
  run.power["zeros"] = {.refused = 1, .cases = 10};
  return run;
}

TEST(ExitCode, ProvenIsZero) {
  EXPECT_EQ(exit_code_of(good_run()), 0);
  EXPECT_NE(conclusion_of(good_run()).reason.find("20 judged cases, 200 numbers"),
            std::string::npos);
}

TEST(ExitCode, ViolatedOrFaultedIsOneHoweverTheRunEnded) {
  attest::Run run = good_run();
  Finding finding;
  finding.property = "b";
  run.findings.push_back(finding);
  run.interrupted = true;
  run.error = "the disk is full";
  EXPECT_EQ(exit_code_of(run), 1);
  EXPECT_EQ(conclusion_of(run).reason, "interrupted after 20 cases; the subject is wrong: b");
  attest::Run counted = good_run();  // counted, though the finding was not kept
  counted.tallies[0].violated = 1;
  EXPECT_EQ(exit_code_of(counted), 1);
  counted.tallies[0].violated = 0;
  counted.tallies[0].faulted = 1;
  EXPECT_EQ(exit_code_of(counted), 1);
}

TEST(ExitCode, NothingComparedIsTwo) {
  EXPECT_EQ(exit_code_of(attest::Run{}), 2);
  attest::Run run = good_run();
  for (PropertyTally& each : run.tallies) each = tally("a", 3, 0, 3);
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("declined every case"), std::string::npos);
}

TEST(ExitCode, APropertyThatNeverComparedIsTwo) {
  attest::Run run = good_run();
  run.tallies[1] = tally("b", 5, 4, 1);
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("for b"), std::string::npos);
  run.tallies[1] = tally("b", 0, 0, 0);  // the budget ended before it was drawn
  EXPECT_EQ(exit_code_of(run), 2);
}

TEST(ExitCode, HoldingWithoutComparingIsNotHolding) {
  attest::Run run = good_run();
  run.tallies[1].compared = 0;
  EXPECT_EQ(exit_code_of(run), 2);
}

TEST(ExitCode, AnOperationThatIsNotOfferedIsZeroButSaid) {
  attest::Run run = good_run();
  run.offered = {Operation::prefill};
  run.tallies[1] = tally("append_writes_its_slots", 5, 0, 5);
  run.tallies.push_back(tally("cached_equals_recomputed", 5, 0, 5));
  EXPECT_EQ(exit_code_of(run), 0);
  EXPECT_NE(conclusion_of(run).reason.find("; not offered: append; always declined: "
                                           "cached_equals_recomputed"),
            std::string::npos);
}

TEST(ExitCode, AnOperationThatIsOfferedButWasNeverJudgedIsTwo) {
  attest::Run run = good_run();
  run.offered = {Operation::prefill, Operation::append};
  run.tallies[0] = tally("oracle_agreement", 9, 0, 9);
  run.tallies[0].redrawn = 400;
  run.tallies[0].declines = {{"prefill: only head_dim 576", 407}, {"prefill: no pages", 2}};
  run.tallies[1] = tally("append_writes_its_slots", 5, 0, 0);
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_EQ(conclusion_of(run).reason,
            "prefill is offered, but oracle_agreement judged no case of it: 409 draws were "
            "declined, 407 of them because of 'prefill: only head_dim 576'; draw what it accepts "
            "(--where)");
  run.tallies[0] = tally("oracle_agreement", 9, 0, 8);
  EXPECT_EQ(exit_code_of(run), 0);
  run.tallies.erase(run.tallies.begin());  // not asked for by --properties
  EXPECT_EQ(exit_code_of(run), 0);
}

TEST(ExitCode, WhereOnlyAPartIsAskedForTheRestMayStayUnjudged) {
  attest::Run run = good_run();
  run.offered = {Operation::prefill, Operation::append};
  run.tallies[0] = tally("oracle_agreement", 9, 0, 9);
  run.tallies[1] = tally("append_writes_its_slots", 5, 0, 0);
  EXPECT_EQ(exit_code_of(run), 2);
  run.where = "page=16";
  EXPECT_EQ(exit_code_of(run), 0);
  const std::string reason = conclusion_of(run).reason;
  EXPECT_NE(reason.find("judged cases where page=16, "), std::string::npos) << reason;
  EXPECT_NE(reason.find("; nothing is said of other problems"), std::string::npos) << reason;
  EXPECT_NE(reason.find("always declined: oracle_agreement"), std::string::npos) << reason;
  run.tallies[1] = tally("append_writes_its_slots", 5, 0, 5);
  run.tallies.push_back(tally("causality", 5, 0, 0));
  EXPECT_EQ(exit_code_of(run), 2);  // no operation was judged by what is central to it
}

TEST(ExitCode, WhatFailedOnceOnlyIsTheTestbedsTrouble) {
  attest::Run run = good_run();
  run.subject = "mine.so";
  run.unreproduced.push_back({"a", {}, Setting{"sm_80", 0}, "faulted: crashed: returned 98"});
  EXPECT_EQ(exit_code_of(run), 2);
  const std::string reason = conclusion_of(run).reason;
  EXPECT_NE(reason.find("returned 98"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the testbed is in disorder"), std::string::npos) << reason;
  EXPECT_NE(reason.find("replay 'a q=1x1x1x1 kv=1x1x1' --subject mine.so"), std::string::npos)
      << reason;
  run.unreproduced[0].setting.reset();
  EXPECT_NE(conclusion_of(run).reason.find("A race on a GPU comes and goes"), std::string::npos);
  run.tallies[0].violated = 1;
  EXPECT_EQ(exit_code_of(run), 1);
}

TEST(ExitCode, AStratumThatCouldTellNothingIsTwo) {
  attest::Run run = good_run();
  run.sight["prefill"] = {.answered = 60, .unbounded = 0, .blind = 20, .sharp = 40};
  run.sight["prefill, keys 9 to 64"] = {.answered = 15, .unbounded = 0, .blind = 15, .sharp = 0};
  EXPECT_EQ(exit_code_of(run), 0);
  run.sight["prefill, keys 9 to 64"] = {.answered = 16, .unbounded = 0, .blind = 16, .sharp = 0};
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("prefill, keys 9 to 64"), std::string::npos);
  run.sight["prefill, keys 9 to 64"].blind = 15;
  EXPECT_EQ(exit_code_of(run), 0);
  run.sight["prefill"].unbounded = 31;
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("31 of 60"), std::string::npos);
}

TEST(ExitCode, InterruptedOrStoppedIsTwo) {
  attest::Run run = good_run();
  run.interrupted = true;
  EXPECT_EQ(exit_code_of(run), 2);
  run = good_run();
  run.error = "no memory (while checking 'a')";
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("no memory"), std::string::npos);
}

TEST(ExitCode, BlindnessIsTwo) {
  attest::Run run = good_run();
  run.power["drops_one_key"] = {.refused = 0, .cases = 10};
  EXPECT_EQ(exit_code_of(run), 2);
  EXPECT_NE(conclusion_of(run).reason.find("drops_one_key"), std::string::npos);
  run.power["drops_one_key"] = {.refused = 0, .cases = 0};  // never tried: nothing to tell apart
  EXPECT_EQ(exit_code_of(run), 0);
}

TEST(Rendering, QuotesForAShellWhatNeedsIt) {
  EXPECT_EQ(shell_quoted("plugins/a-b_c.so"), "plugins/a-b_c.so");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("$(true)"), "'$(true)'");
}

TEST(Rendering, ReplayLineNamesCheckAndSubject) {
  const attest::Run run = sample_run();
  EXPECT_EQ(replay_line(run, run.findings[0]),
            "./attest replay 'causality q=1x1x1x1 kv=1x2x1 causal align=top_left seed=77' "
            "--subject 'plugins/it'\\''s mine.so' --numerics sm_120 "
            "--checks memcheck,initcheck --schedule 5");
  EXPECT_TRUE(
      replay_line(run, run.findings[1])
          .ends_with(" --numerics sm_90+worst:3 --checks memcheck,initcheck --schedule 77"));
  EXPECT_EQ(replay_line("", "causality", parse_case("q=1x1x1x1 kv=1x2x1")),
            "./attest replay 'causality q=1x1x1x1 kv=1x2x1'");
}

TEST(ExitCode, AnInterruptedRunWithFindingsSaysBothInTheSummary) {
  attest::Run run = good_run();
  run.interrupted = true;
  run.tallies[0].violated = 1;
  EXPECT_NE(summary_of(run).find("interrupted after 20 cases; the subject is wrong: a"),
            std::string::npos);
}

TEST(Tally, KeepsReasonsApartUntilTheyAreTooMany) {
  attest::Run run;
  run.tallies.emplace_back();
  Observation seen;
  seen.verdict.outcome = Outcome::declined;
  count(run, 0, Case{}, seen);
  for (std::size_t n = 1; n < kDeclinesMax + 5; ++n) {
    seen.verdict.why = std::to_string(n);
    count(run, 0, Case{}, seen);
  }
  seen.verdict.why = "1";
  count(run, 0, Case{}, seen);
  const auto& declines = run.tallies[0].declines;
  EXPECT_EQ(declines.size(), kDeclinesMax + 1);
  EXPECT_EQ(declines.at("no reason given"), 1U);
  EXPECT_EQ(declines.at("1"), 2U);
  EXPECT_EQ(declines.at(std::string(kOtherReasons)), 5U);
  EXPECT_EQ(run.tallies[0].declined, kDeclinesMax + 6);
}

TEST(Rendering, WhatWasNeverTriedOrHadIsNamed) {
  attest::Run run;
  run.features = {{"causal", 3}, {"gqa", 0}};
  const auto absent = absent_features(run);
  EXPECT_EQ(std::count(absent.begin(), absent.end(), "causal"), 0);
  EXPECT_EQ(std::count(absent.begin(), absent.end(), "gqa"), 1);
  EXPECT_EQ(std::count(absent.begin(), absent.end(), "window"), 1);
  run.power["answers_zero"] = {.refused = 1, .cases = 1};
  const auto tried = split_power(run).untried;
  EXPECT_EQ(std::count(tried.begin(), tried.end(), "answers_zero"), 0);
  run.power["answers_zero"] = {.refused = 0, .cases = 0};
  const auto untried = split_power(run).untried;
  EXPECT_EQ(untried.size(), tried.size() + 1);
  EXPECT_EQ(std::count(untried.begin(), untried.end(), "answers_zero"), 1);
}

TEST(Rendering, ASubjectsShortNameIsItsFileWithoutFolderAndExtension) {
  attest::Run run;
  EXPECT_EQ(short_name_of_subject(run), "subject");
  run.subject = "../mine.so";
  EXPECT_EQ(short_name_of_subject(run), "mine");
  run.subject = "tiled";
  EXPECT_EQ(short_name_of_subject(run), "tiled");
}

TEST(Rendering, StandingSaysWhatATallyProves) {
  const attest::Run run = sample_run();
  EXPECT_EQ(standing_of(run.tallies[0]), Standing::held);
  EXPECT_EQ(standing_of(run.tallies[1]), Standing::failed);
  EXPECT_EQ(standing_of(run.tallies[2]), Standing::declined);
  EXPECT_EQ(standing_of(run.tallies[3]), Standing::unproven);
}

}  // namespace
}  // namespace attest
