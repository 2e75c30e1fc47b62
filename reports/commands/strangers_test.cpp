// Kernels in the shapes of other people's: a gate finds nothing wrong with those that are right,
// though each serves little, and each of their three faults. A third of a default gate is enough.
#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "reports/commands/testing/ran.hpp"

namespace attest {
namespace {

std::vector<std::string> strangers() {
  std::vector<std::string> names;
  std::ifstream file(bin() / "strangers" / "catalogue.txt");
  for (std::string name; std::getline(file, name);) names.push_back(name);
  return names;
}

class Stranger : public CommandLine, public testing::WithParamInterface<std::string> {
 protected:
  Ran gate(const std::string& library, const std::string& more = "") const {
    return run(fmt::format("gate --subject '{}' {}",
                           (bin() / "strangers" / (library + ".so")).string(), more));
  }
};

TEST_P(Stranger, IsCalledRightAfterFiveHundredJudgedCases) {
  const Ran ran = gate(GetParam(), "--cases 800");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  std::smatch found;
  const std::string last = ran.last_line();
  ASSERT_TRUE(
      std::regex_search(last, found, std::regex("nothing violated in ([0-9]+) judged cases")))
      << last;
  EXPECT_GE(std::stoi(found[1]), 500) << last;
}

TEST_P(Stranger, IsCalledWrongForEachOfItsFaults) {
  for (int fault = 1; fault <= 3; ++fault) {
    const Ran ran = gate(fmt::format("{}_{}", GetParam(), fault),
                         "--cases 200 --properties oracle_agreement,decode_agreement");
    EXPECT_EQ(ran.exit_code, 1) << "fault " << fault << "\n" << ran.out << ran.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Stranger, testing::ValuesIn(strangers()),
                         [](const auto& each) { return each.param; });

TEST(Strangers, AreEightAtLeast) {
  EXPECT_GE(strangers().size(), 8U);
}

}  // namespace
}  // namespace attest
