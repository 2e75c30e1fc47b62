// Drawing again what a subject declines: how much of a budget it saves, where it stops, and that it
// depends on nothing but seed and number.
#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/campaign.hpp"
#include "fuzz/testing/fake_world.hpp"
#include "properties/domains/domain.hpp"

namespace attest {
namespace {

FakeBehaviour accepting(bool (*accepted)(const Problem&)) {
  return {{}, {}, [accepted](const Problem& p) { return !accepted(p); }};
}

TEST(Redraw, WhatIsDeclinedIsDrawnAgain) {
  // One problem in twenty is accepted.
  const FakeBehaviour choosy = accepting([](const Problem& p) { return p.seqlen_q <= 2; });
  CampaignOptions unaimed = cases(300);
  unaimed.properties = {"first", "second"};
  const attest::Run result = run_against(choosy, unaimed);
  EXPECT_EQ(result.cases(), 300U);
  std::uint64_t held = 0, redrawn = 0;
  for (const PropertyTally& tally : result.tallies) {
    EXPECT_EQ(tally.held + tally.declined, tally.cases) << tally.property;
    EXPECT_EQ(tally.declines.at("no reason given"), tally.declined + tally.redrawn);
    held += tally.held;
    redrawn += tally.redrawn;
  }
  EXPECT_GT(held, 275U);  // 1 - 0.95^64 of them are 289
  EXPECT_GT(redrawn, 15 * held);
  EXPECT_LT(redrawn, 25 * held);
  // What draws first is what was always drawn.
  const attest::Run all =
      run_against(accepting([](const Problem& p) { return p.batch > 1; }), cases(300));
  std::uint64_t first_declined = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    first_declined += draw_case("second", 1, i).problem.batch == 1 ? 1 : 0;
  }
  EXPECT_GE(all.tallies[1].redrawn, first_declined);
  EXPECT_EQ(all.tallies[1].held, 100U);
  CampaignOptions alone = cases(120, 1);
  const std::string one_thread = fingerprint(run_against(choosy, alone));
  for (const unsigned threads : {2U, 5U}) {
    alone.threads = threads;
    EXPECT_EQ(fingerprint(run_against(choosy, alone)), one_thread) << threads << " threads";
  }
}

TEST(Redraw, WhatIsNeverAcceptedIsSoonDrawnNoMore) {
  std::string fingerprints[3];
  for (const unsigned threads : {1U, 2U, 5U}) {
    std::uint64_t begun = 0;
    CampaignEvents events;
    events.about_to_run = [&](const PropertyCase&) { ++begun; };
    const attest::Run none =
        run_against(accepting([](const Problem&) { return false; }), cases(300, threads), events);
    EXPECT_EQ(none.cases(), 9U);
    for (const PropertyTally& tally : none.tallies) {
      EXPECT_EQ(tally.declined, 3U);
      EXPECT_EQ(tally.redrawn, 3U * 63);
    }
    if (threads == 1) {
      EXPECT_EQ(begun, 3U * 3 * 64);
    }
    fingerprints[threads / 2] = fingerprint(none);
  }
  EXPECT_EQ(fingerprints[1], fingerprints[0]);
  EXPECT_EQ(fingerprints[2], fingerprints[0]);
}

}  // namespace
}  // namespace attest
