// What a campaign believes: only what a fresh subject does again is a finding.
#include "fuzz/confirmation.hpp"

#include <gtest/gtest.h>

#include "fuzz/testing/fake_world.hpp"

namespace attest {
namespace {

/// The first `count` subjects that are made are wrong where `wrong` says so, all later ones never.
attest::Run run_when_wrong_at_first(int count, const CampaignOptions& options,
                                    bool (*wrong)(const Problem&), bool (*later)(const Problem&)) {
  int made = 0;
  const std::atomic<bool> stop = false;
  return run_campaign(
      [&] {
        const auto now = made++ < count ? wrong : later;
        return fake_subject({[now](const Problem& p, const Values&) { return now(p); }, {}, {}});
      },
      options, {}, stop);
}

TEST(Confirmation, WhatAFreshSubjectDoesNotDoAgainIsNoFinding) {
  const auto wrong = [](const Problem& p) { return p.causal && p.seqlen_kv > 5; };
  const auto right = [](const Problem&) { return false; };
  const attest::Run result = run_when_wrong_at_first(1, cases(60, 1), wrong, right);
  EXPECT_TRUE(result.findings.empty());
  ASSERT_FALSE(result.unreproduced.empty());
  EXPECT_EQ(result.unreproduced[0].what.substr(0, 8), "violated");
  EXPECT_TRUE(wrong(result.unreproduced[0].test_case.problem));
  for (const PropertyTally& tally : result.tallies) {
    EXPECT_EQ(tally.violated, 0U) << "it is counted as what it was the second time";
    EXPECT_EQ(tally.held, tally.cases);
  }
}

TEST(Confirmation, AShrunkCaseThatDoesNotFailAgainGivesWayToTheDrawnOne) {
  // The thread's own subject, the one that sees it again and the one that shrinks are wrong about
  // all causal cases; later ones only about large ones.
  CampaignOptions options = cases(200, 1);
  options.properties = {"first"};
  const attest::Run result = run_when_wrong_at_first(
      3, options, [](const Problem& p) { return p.causal; },
      [](const Problem& p) { return p.causal && p.head_dim > 1; });
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].shrunk, result.findings[0].found);
  EXPECT_TRUE(result.unreproduced.empty());
  EXPECT_EQ(result.findings[0].version, version());
  EXPECT_NE(result.findings[0].digest, 0U);
}

TEST(Confirmation, AFindingSaysWhatTheDrawnCaseShowed) {
  CampaignOptions options = cases(200, 1);
  options.properties = {"third"};
  const attest::Run result = run_against(
      {[](const Problem& p, const Values&) { return p.seqlen_kv > 7; }, {}, {}}, options);
  ASSERT_EQ(result.findings.size(), 1U);
  const Finding& finding = result.findings[0];
  EXPECT_TRUE(finding.verdict.why.ends_with("; seen with 8 keys and 0")) << finding.verdict.why;
  const std::string drawn =
      "; seen with " + std::to_string(finding.found.problem.seqlen_kv) + " keys";
  EXPECT_NE(finding.found_why.find(drawn), std::string::npos) << finding.found_why;
}

}  // namespace
}  // namespace attest
