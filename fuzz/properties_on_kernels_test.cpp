// Every property of the catalogue on our own kernels, executed by the emulator: no finding, and
// something judged by each. The regression corpus is held to the same.
#include <gtest/gtest.h>

#include "fuzz/campaign.hpp"
#include "fuzz/corpus.hpp"
#include "fuzz/testing/kernels_beside.hpp"
#include "properties/property.hpp"

namespace attest {
namespace {

class OnKernels : public testing::TestWithParam<std::string> {};

void holds(const CampaignOptions& options) {
  const std::atomic<bool> stop = false;
  const attest::Run run = run_campaign(our_kernels, options, {}, stop);
  for (const Finding& finding : run.findings) {
    ADD_FAILURE() << print(PropertyCase{finding.property, finding.shrunk}) << ": "
                  << finding.verdict.why;
  }
  EXPECT_EQ(run.error, "");
  for (const PropertyTally& tally : run.tallies) {
    EXPECT_GT(tally.compared, 0U) << tally.property << " compared nothing";
    EXPECT_LE(tally.margin_max, 1) << tally.property;
  }
}

TEST_P(OnKernels, Holds) {
  CampaignOptions options;
  options.seed = 20;
  options.budget_cases = 60;
  options.properties = {GetParam()};
  holds(options);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Property& property : catalogue()) names.emplace_back(property.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, OnKernels, testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

TEST(CorpusOnKernels, EveryLineHolds) {
  const std::atomic<bool> stop = false;
  CampaignOptions options;
  options.first = read_corpus(folder_beside() / "corpus");
  options.budget_cases = 0;
  ASSERT_FALSE(options.first.empty());
  const attest::Run run = run_campaign(our_kernels, options, {}, stop);
  std::uint64_t held = 0;
  for (const PropertyTally& tally : run.tallies) held += tally.held;
  EXPECT_EQ(held, options.first.size()) << "a line that is vacuous or declined guards nothing";
  for (const Finding& finding : run.findings) {
    ADD_FAILURE() << print(PropertyCase{finding.property, finding.found}) << ": "
                  << finding.verdict.why;
  }
  EXPECT_EQ(run.error, "");
}

}  // namespace
}  // namespace attest
