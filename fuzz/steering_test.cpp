// What ran steers what is drawn: which cells are aimed at, that an aimed case comes to its cell,
// and that no case that would have been drawn otherwise is lost.
#include "fuzz/steering.hpp"

#include <gtest/gtest.h>

#include <set>

#include "fuzz/plan.hpp"
#include "fuzz/testing/fake_world.hpp"
#include "properties/domains/domain.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

const Property& central() {
  return property_named("third");
}

/// A run that has seen one case of decode, on tensor cores.
Run seen_once(Sight sight) {
  attest::Run run;
  Property decode = central();
  decode.central_to = Operation::decode;
  Observation seen;
  seen.verdict.outcome = Outcome::holds;
  seen.verdict.sight = sight;
  seen.kernels = {"mma_decode"};
  count_sight(run, decode, parse_case("q=1x4x1x8 kv=1x5x8 in=f16 out=f16"), seen);
  return run;
}

TEST(Steering, CountsCellsAndStrata) {
  const attest::Run run = seen_once(Sight::sharp);
  ASSERT_EQ(run.cells.size(), 1U);
  EXPECT_EQ(run.cells.begin()->first, "decode mma_decode in=f16");
  EXPECT_EQ(run.cells.begin()->second.sharp, 1U);
  EXPECT_EQ(run.sight.at("decode").sharp, 1U);
  EXPECT_EQ(run.sight.at("decode, keys 1 to 8").answered, 1U);
  EXPECT_EQ(seen_once(Sight::blind).sight.at("decode, in=f16 cache=f16").blind, 1U);
  EXPECT_TRUE(seen_once(Sight::unknown).sight.empty()) << "where one key is seen, none could tell";
}

TEST(Steering, WhatNobodyReachedIsAimedAtFirstAndGivenUpAfterThreeMisses) {
  const attest::Run run = seen_once(Sight::sharp);
  std::map<std::string, std::uint64_t> spent;
  std::set<std::string> cells;
  for (const Aim& aim : aims_of(run, Operation::decode, spent, 1000)) cells.insert(aim.cell);
  EXPECT_TRUE(cells.contains("decode mma_decode in=bf16 cache=e4m3, whole tiles"));
  EXPECT_TRUE(cells.contains("decode mma_decode in=f16 cache=i8"));
  EXPECT_EQ(aims_of(run, Operation::decode, spent, 1000).back().cell, "decode mma_decode in=f16")
      << "the only one that has a sharp case";
  for (const std::string& cell : cells) spent[cell] = 3;
  const auto left = aims_of(run, Operation::decode, spent, 1000);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].cell, "decode mma_decode in=f16");
  EXPECT_TRUE(aims_of(run, Operation::prefill, spent, 1000).empty()) << "no kernel of it ran";
}

TEST(Steering, AnAimedCaseIsLegalPlainAndOfTheFormats) {
  const auto aims = aims_of(seen_once(Sight::blind), Operation::decode, {}, 1000);
  std::uint64_t index = 0;
  for (const Aim& aim : aims) {
    for (int n = 0; n < 20; ++n) {
      const Case drawn = draw_case("third", 1, index++);
      const Case made = aimed(drawn, aim);
      const Problem& p = made.problem;
      EXPECT_EQ(invalidity(p), "") << print(made);
      if (made == drawn) continue;
      EXPECT_EQ(p.input, aim.input);
      EXPECT_EQ(cache_format(p), aim.cache);
      EXPECT_EQ(p.seqlen_kv % kTileKeys == 0, aim.whole_tiles) << print(made);
      EXPECT_EQ(p.head_dim, 8);
      EXPECT_EQ(made.fill, "normal");
      EXPECT_FALSE(p.bias);
      Observation seen;
      seen.kernels = {"mma_decode"};
      EXPECT_EQ(cell_of(Operation::decode, made, seen), aim.cell);
    }
  }
}

TEST(Steering, AnAimedCaseKeepsExtentsThatWereDrawnLarge) {
  const auto aims = aims_of(seen_once(Sight::blind), Operation::decode, {}, 1000);
  const auto kept = [&](std::string_view line, std::uint64_t seed) {
    Case drawn = parse_case(line);
    drawn.seed = seed;
    return aimed(drawn, aims.front()).problem;
  };
  for (const std::uint64_t seed : {0, 1}) {
    EXPECT_EQ(kept("q=33x1x1x4 kv=1x5x4", seed).batch, 33);
    EXPECT_EQ(kept("q=1x16x1x4 kv=8x5x4", seed).num_heads_kv, 8);
    EXPECT_EQ(kept("q=1x128x1x4 kv=1x5x4", seed).num_heads_q, 128);
    EXPECT_EQ(kept("q=1x1x2x576 kv=1x5x512", seed).head_dim, 576);
    EXPECT_EQ(kept("q=1x1x2x576 kv=1x5x512", seed).head_dim_v, 512);
    EXPECT_EQ(kept("q=1x1x1x4 kv=1x5x4 page=512 order=1", seed).page_size, 512);
    EXPECT_NEAR(static_cast<double>(kept("q=1x1x1x4 kv=1x40000x4", seed).seqlen_kv), 40000,
                kTileKeys);
  }
}

TEST(Plan, LosesNoIndexAndUsesNoneTwice) {
  Plan plan({&central(), &property_named("first")}, 0);
  std::set<std::uint64_t> plain, aimed, others;
  for (std::uint64_t index = 0; index < 800; ++index) {
    const std::uint64_t at = plan.draw_index(index);
    if (index % 2 == 1) {
      EXPECT_EQ(at, index / 2) << "nothing is aimed where no operation is judged";
    } else {
      EXPECT_TRUE((at < 1000 ? plain : aimed).insert(at).second);
    }
  }
  EXPECT_EQ(plain.size(), *plain.rbegin() + 1);
  EXPECT_GT(aimed.size(), 2 * plain.size());
}

TEST(Plan, AimsByWhatWasCountedTwoRoundsBefore) {
  Plan plan({&central()}, 0);
  attest::Run run;
  EXPECT_TRUE(plan.knows(15));
  EXPECT_FALSE(plan.knows(16));
  Observation seen;
  seen.verdict.outcome = Outcome::holds;
  count_sight(run, central(), parse_case("q=1x1x2x8 kv=1x5x8"), seen);
  for (std::uint64_t index = 1; index <= 24; ++index) plan.counted(index, run);
  EXPECT_TRUE(plan.knows(39));
  EXPECT_FALSE(plan.knows(40));
  EXPECT_EQ(plan.aim(31), nullptr) << "hard cases come first";
  EXPECT_EQ(plan.aim(32), nullptr) << "one of four is drawn as ever";
  EXPECT_FALSE(plan.pair(32));
  EXPECT_EQ(plan.aim(33), nullptr) << "and one is planned";
  EXPECT_TRUE(plan.pair(33));
  ASSERT_NE(plan.aim(34), nullptr);
  EXPECT_FALSE(plan.pair(34));
  EXPECT_NE(plan.aim(34)->cell, plan.aim(35)->cell);
  EXPECT_NE(plan.aim(35)->cell, plan.aim(38)->cell);
  EXPECT_EQ(*plan.pair(37), *plan.pair(33) + 1) << "one pair after the other";
}

TEST(Steering, GivesEveryFormatItsSharpCases) {
  CampaignOptions options = cases(160);
  options.properties = {"third"};
  const attest::Run run = run_against({}, options);
  for (const char* cell : {"prefill in=bf16", "prefill in=e5m2, whole tiles", "prefill in=f16"}) {
    ASSERT_TRUE(run.cells.contains(cell)) << cell;
    EXPECT_GE(run.cells.at(cell).sharp, 2U) << cell;
  }
}

}  // namespace
}  // namespace attest
