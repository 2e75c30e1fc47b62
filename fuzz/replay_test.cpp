// One property or all, and what their verdicts mean together.
#include "fuzz/replay.hpp"

#include <gtest/gtest.h>

#include "fuzz/testing/fake_world.hpp"
#include "properties/fills.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::vector<Replay> replayed(const FakeBehaviour& behaviour, std::string_view property) {
  const Case plain;
  return replay(fake_subject(behaviour), property, plain.problem, make_values(plain), {});
}

TEST(ReplayTest, OneOrAll) {
  const auto one = replayed({}, "second");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].property, "second");
  EXPECT_EQ(replayed({}, "").size(), 3U);
  EXPECT_THROW(replayed({}, "sceond"), Error);
}

TEST(ReplayTest, ExitCodes) {
  EXPECT_EQ(exit_code_of(replayed({}, "")), 0);
  EXPECT_EQ(exit_code_of(replayed({[](auto&&...) { return true; }, {}, {}}, "")), 1);
  EXPECT_EQ(exit_code_of(replayed({{}, [](auto&&) { return std::string("hung"); }, {}}, "")), 1);
  EXPECT_EQ(exit_code_of(replayed({{}, {}, [](auto&&) { return true; }}, "")), 2);
  EXPECT_EQ(exit_code_of({}), 2);
}

TEST(ReplayTest, TheSameBitsHaveTheSameDigest) {
  EXPECT_EQ(replayed({}, "first")[0].seen.o_digest, replayed({}, "third")[0].seen.o_digest);
}

}  // namespace
}  // namespace attest
