// The testbed on trial, by size: each mutant of mutants/sizes is our kernels but where some extent
// is large, and is killed by the share that one property has of a default gate, at two seeds. Our
// kernels pass the very cases that killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/campaign.hpp"
#include "fuzz/testing/kernels_beside.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kGateCases = 2400;  // as reports/commands/commands.hpp has it

struct SizesMutant {
  std::string name, operation;
};

std::vector<SizesMutant> sizes_mutants() {
  std::vector<SizesMutant> mutants;
  std::ifstream file(folder_beside() / "mutants" / "sizes" / "catalogue.txt");
  for (SizesMutant mutant; file >> mutant.name >> mutant.operation;) mutants.push_back(mutant);
  return mutants;
}

const Property& central_to(std::string_view operation) {
  const auto at = std::ranges::find_if(catalogue(), [&](const Property& property) {
    return property.central_to && name_of(*property.central_to) == operation;
  });
  return *at;
}

class BySize : public testing::TestWithParam<SizesMutant> {};

TEST_P(BySize, IsKilledWithinADefaultGate) {
  const Property& property = central_to(GetParam().operation);
  const auto plugin = folder_beside() / "mutants" / "sizes" / (GetParam().name + ".so");
  for (const std::uint64_t seed : {1, 2}) {
    CampaignOptions options;
    options.seed = seed;
    options.budget_cases = kGateCases / catalogue().size();
    options.properties = {std::string(property.name)};
    options.threads = 1;
    options.shrink_steps = 0;
    const std::atomic<bool> stop = false;
    const attest::Run run = run_campaign([&] { return opened(plugin); }, options, {}, stop);
    EXPECT_EQ(run.error, "");
    ASSERT_FALSE(run.findings.empty()) << property.name << ", seed " << seed;
    // The finding ended the campaign: what came next was not drawn.
    RecordProperty("killed_at_seed_" + std::to_string(seed), static_cast<int>(run.next_index));
    const Case& killer = run.findings.front().found;
    RecordProperty("killer_at_seed_" + std::to_string(seed), print(killer));
    EXPECT_EQ(check_case(our_kernels(), property, killer).outcome, Outcome::holds)
        << "false alarm: " << print(killer);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BySize, testing::ValuesIn(sizes_mutants()),
                         [](const auto& each) { return each.param.name; });

TEST(SizesMutants, AreFiveAtLeastOfEveryFamily) {
  for (const std::string family : {"flash_prefill_", "mma_prefill_", "split_keys_", "mma_decode_",
                                   "cache_append_", "page_copy_", "projection_"}) {
    const auto mutants = sizes_mutants();
    EXPECT_GE(std::ranges::count_if(
                  mutants, [&](const SizesMutant& each) { return each.name.starts_with(family); }),
              5)
        << family;
  }
}

}  // namespace
}  // namespace attest
