// Options survive the line of text they travel in; bad lines are refused with their reason.
#include "optimized/emulator/options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace attest::emulator {
namespace {

TEST(Options, ReadBackWhatWasPrinted) {
  DeviceOptions options;
  options.threads = 3;
  options.checks = {true, false, true};
  options.numerics = {TensorModel::sm_90, 77};
  options.schedule = ~std::uint64_t{0};
  options.instruction_limit = 12;
  options.counters = true;
  std::string problem;
  EXPECT_EQ(parse_options(print(options), problem), options) << problem;
  EXPECT_EQ(parse_options("", problem), DeviceOptions{});
}

TEST(Options, WorstAloneDrawsAnArchitecture) {
  std::string problem;
  const auto model = parse_numerics("worst:9", problem);
  ASSERT_TRUE(model) << problem;
  EXPECT_EQ(model->worst, 9u);
  EXPECT_EQ(parse_numerics(print(*model), problem), model);
  std::set<TensorModel> drawn;
  for (int seed = 0; seed < 20; ++seed) {
    drawn.insert(parse_numerics("worst:" + std::to_string(seed), problem)->tensor);
  }
  EXPECT_EQ(drawn, (std::set{TensorModel::sm_80, TensorModel::sm_89, TensorModel::sm_90,
                             TensorModel::sm_100, TensorModel::sm_120}));
}

TEST(Options, SayWhatIsWrong) {
  for (const char* text :
       {"threads=0", "threads=x", "numerics=sm_81", "numerics=worst:", "chekcs=all",
        "checks=memchek", "schedule=-1", "numerics=", "counters=2", "limit"}) {
    std::string problem;
    EXPECT_FALSE(parse_options(text, problem)) << text;
    EXPECT_FALSE(problem.empty()) << text;
  }
}

TEST(Options, ChecksByName) {
  std::string problem;
  EXPECT_EQ(parse_checks("all", problem), Checks{});
  EXPECT_EQ(parse_checks("none", problem), (Checks{false, false, false}));
  EXPECT_EQ(print(Checks{false, false, false}), "none");
  EXPECT_EQ(print(Checks{false, true, true}), "initcheck,racecheck");
}

}  // namespace
}  // namespace attest::emulator
