// The testbed on trial: every mutant is killed by a bounded campaign, by a property that its first
// comment names, and each named property kills alone. Healthy kernels pass the very cases that
// killed: a kill is no false alarm.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fuzz/campaign.hpp"
#include "fuzz/corpus.hpp"
#include "fuzz/testing/kernels_beside.hpp"
#include "properties/property.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kCasesPerProperty = 400;

class Mutant : public testing::TestWithParam<MutantBeside> {};

TEST_P(Mutant, IsKilledByEachPropertyItNames) {
  const MutantBeside& mutant = GetParam();
  const Subject healthy = our_kernels();
  ASSERT_FALSE(mutant.killed_by.empty());
  for (const std::string& name : mutant.killed_by) {
    const Property& property = property_named(name);
    CampaignOptions options;
    options.budget_cases = kCasesPerProperty;
    options.properties = {name};
    const std::atomic<bool> stop = false;
    const attest::Run run = run_campaign([&] { return opened(mutant.plugin); }, options, {}, stop);
    EXPECT_EQ(run.error, "");
    EXPECT_FALSE(run.findings.empty()) << name << " does not kill it";
    for (const Finding& finding : run.findings) {
      for (const Case& killer : {finding.found, finding.shrunk}) {
        EXPECT_EQ(check_case(healthy, property, killer).outcome, Outcome::holds)
            << "false alarm: " << print(PropertyCase{name, killer});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Mutant, testing::ValuesIn(mutants_beside()),
                         [](const auto& each) { return each.param.name; });

TEST(Mutants, AreAtLeastTenAndEveryCentralPropertyKillsOne) {
  std::set<std::string> killers;
  for (const MutantBeside& mutant : mutants_beside()) {
    killers.insert(mutant.killed_by.begin(), mutant.killed_by.end());
  }
  EXPECT_GE(mutants_beside().size(), 10U);
  for (const char* name : {"oracle_agreement", "row_sums", "causality", "effective_scale",
                           "cached_equals_recomputed"}) {
    EXPECT_TRUE(killers.contains(name)) << name << " kills no mutant";
  }
}

}  // namespace
}  // namespace attest
