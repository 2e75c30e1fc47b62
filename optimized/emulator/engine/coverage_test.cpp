// Inputs that take other branches leave other marks: the counters that libFuzzer reads.
#include "optimized/emulator/engine/coverage.hpp"

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/coverage_program.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Coverage : public testing::Test {
 protected:
  void SetUp() override {
    choose("avx512");
    DeviceOptions options;
    options.counters = true;
    Device::instance().configure(options);
  }

  /// The counters that one launch leaves.
  Bytes marks_of(const Bytes& input) {
    const auto counters = coverage_counters();
    std::fill(counters.begin(), counters.end(), std::uint8_t{0});
    Buffer<std::uint8_t> bytes(8);
    std::copy(input.begin(), input.end(), bytes.begin());
    program.run("nested", {}, bytes.data());
    Device::instance().reset_findings();
    return {counters.begin(), counters.end()};
  }

  TestProgram program{kNestedTrap};
};

TEST_F(Coverage, CountersDifferWhereTheBranchesDo) {
  const Bytes key(std::begin(kNestedKey), std::end(kNestedKey));
  std::vector<Bytes> marks;
  for (std::size_t right = 0; right <= key.size(); ++right) {
    Bytes input(key.begin(), key.begin() + std::ptrdiff_t(right));
    input.resize(key.size(), 0);
    marks.push_back(marks_of(input));
  }
  // With one more byte right, exactly one more block is entered; the one at the end, which all but
  // the trapping input reach, is counted as often as before.
  for (std::size_t right = 1; right < key.size(); ++right) {
    std::size_t fresh = 0, other = 0;
    for (std::size_t i = 0; i < marks[right].size(); ++i) {
      fresh += marks[right][i] == 1 && marks[right - 1][i] == 0;
      other += marks[right][i] < marks[right - 1][i] || marks[right][i] > marks[right - 1][i] + 1;
    }
    EXPECT_EQ(fresh, 1u) << right;
    EXPECT_EQ(other, 0u) << right;
  }
  EXPECT_NE(marks[key.size()], marks[key.size() - 1]);
  EXPECT_EQ(marks_of(Bytes{1, 2, 3}), marks_of(Bytes{3, 2, 1}));
}

TEST_F(Coverage, CountersStayAtTheirLargest) {
  TestProgram loop(R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry loop(.param .u32 n) {
  .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.param.u32 %r1, [n];
AGAIN:
  sub.s32 %r1, %r1, 1;
  setp.ne.s32 %p1, %r1, 0;
@%p1 bra AGAIN;
  ret;
})");
  const auto counters = coverage_counters();
  std::fill(counters.begin(), counters.end(), std::uint8_t{0});
  EXPECT_EQ(loop.trouble("loop", {}, 7), "");
  EXPECT_EQ(std::count(counters.begin(), counters.end(), 7), 1);
  EXPECT_EQ(loop.trouble("loop", {}, 1000), "");
  EXPECT_EQ(std::count(counters.begin(), counters.end(), 255), 1);
}

}  // namespace
}  // namespace attest::emulator
