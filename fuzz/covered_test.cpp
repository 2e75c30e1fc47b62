// What is counted as drawn, and what stays open.
#include "fuzz/coverage.hpp"

#include <gtest/gtest.h>

#include "reference/text.hpp"

namespace attest {
namespace {

Problem problem(std::string_view line) {
  return parse_case(line).problem;
}

/// Prefill of one width more, of a mask and of causal, but not of both.
Served small() {
  Served served;
  ServedOperation& prefill = served.operations[0];
  prefill.base = problem("q=1x1x2x8 kv=1x5x8");
  prefill.values = {"causal", "head_dim=64", "head_dim=8", "mask"};
  prefill.pairs.kinds = {"causal", "no causal", "mask", "no mask"};
  for (std::size_t n = 0; n < 4; ++n) prefill.pairs.number[prefill.pairs.kinds[n]] = n;
  prefill.pairs.together = {{false, false, false, true},
                            {false, false, true, true},
                            {false, true, false, false},
                            {true, true, false, false}};
  return served;
}

TEST(Coverage, CountsPairsThatWereMetAndNamesThoseThatWereNot) {
  const Served served = small();
  Coverage coverage(served);
  coverage.count(Operation::prefill, problem("q=1x2x2x8 kv=1x5x8"));
  coverage.count(Operation::prefill, problem("q=1x1x9x8 kv=1x3x8 causal"));
  const auto tallies = coverage.tallies();
  ASSERT_EQ(tallies.size(), 1U) << "nothing else is served";
  const CoveredTally& prefill = tallies.at(Operation::prefill);
  EXPECT_EQ(prefill.pairs, 3U);
  EXPECT_EQ(prefill.unmet_pairs, std::vector<std::string>{"no causal with mask"});
  EXPECT_EQ(prefill.values, 4U);
  EXPECT_EQ(prefill.unmet_values, (std::vector<std::string>{"head_dim=64", "mask"}));
  EXPECT_EQ(prefill.ranges.at("seqlen_q").least, 2);
  EXPECT_EQ(prefill.ranges.at("seqlen_q").most, 9);
  EXPECT_EQ(prefill.ranges.at("num_heads_q").most, 2);
  EXPECT_FALSE(prefill.ranges.contains("page_size")) << "a prefill has no pages";
}

TEST(Coverage, WhatIsNotInTheTableOfPairsIsLeftAlone) {
  const Served served = small();
  Coverage coverage(served);
  coverage.count(Operation::prefill, problem("q=1x1x2x8 kv=1x5x8 causal mask bias seed=1"));
  const CoveredTally prefill = coverage.tallies().at(Operation::prefill);
  EXPECT_EQ(prefill.unmet_pairs.size(), 3U) << "that pair is not accepted, so it counts for none";
}

}  // namespace
}  // namespace attest
