// Profiles survive the lines of text they travel in; other lines are refused with their place.
#include "optimized/emulator/profile.hpp"

#include <gtest/gtest.h>

namespace attest::emulator {
namespace {

Profile sample() {
  KernelProfile kernel{.kernel = "f<float, 3>",
                       .launches = 2,
                       .blocks = 7,
                       .blocks_covered = 5,
                       .grid_blocks = 132,
                       .block_threads = 128,
                       .block_shared_bytes = 49152};
  std::uint64_t next = 1;
  for (const TotalColumn& column : total_columns()) kernel.totals.*column.value = next++;
  Totals one;
  one.f32_flops = ~std::uint64_t{0};
  kernel.lines = {{"f.cu:3", kernel.totals}, {"PTX line 7", one}};
  return {kernel, {.kernel = "g", .launches = 1}};
}

TEST(Profile, ReadsBackWhatWasPrinted) {
  std::string problem;
  EXPECT_EQ(parse_profile(print(sample()), problem), sample()) << problem;
  EXPECT_EQ(parse_profile(print(Profile{}), problem), Profile{}) << problem;
}

TEST(Profile, NamesCannotBreakTheLines) {
  Profile odd = sample();
  odd[1].kernel = "a\tb\nkernel";
  std::string problem;
  const auto read = parse_profile(print(odd), problem);
  ASSERT_TRUE(read) << problem;
  EXPECT_EQ((*read)[1].kernel, "a b kernel");
}

TEST(Profile, EveryColumnAddsUp) {
  Totals sum = sample()[0].totals;
  sum += sum;
  std::uint64_t next = 1;
  for (const TotalColumn& column : total_columns())
    EXPECT_EQ(sum.*column.value, 2 * next++) << column.name;
}

TEST(Profile, RefusesOtherText) {
  const std::string good = print(sample());
  const std::string head = good.substr(0, good.find('\n') + 1);
  const auto trouble = [](const std::string& text) {
    std::string problem;
    return parse_profile(text, problem) ? "" : problem;
  };
  EXPECT_EQ(trouble("record\tname\n"),
            "line 1 of the profile has another header than this version writes");
  EXPECT_EQ(trouble(head + "kernel\tf\n"), "line 2 of the profile has 2 fields");
  EXPECT_EQ(trouble(head + good.substr(good.find("line\t"))),
            "line 2 of the profile has a line that does not follow its kernel");
  std::string damaged = good;
  damaged.replace(damaged.rfind("\t0"), 2, "\tx");
  EXPECT_EQ(trouble(damaged), "line 5 of the profile has a field that is no number");
}

}  // namespace
}  // namespace attest::emulator
