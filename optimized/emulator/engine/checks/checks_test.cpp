// Mistakes that initcheck and racecheck are there to find, each named with its line, its thread and
// the other side.
#include <cstdint>
#include <numeric>

#include "optimized/emulator/engine/testing/on_every_set.hpp"

namespace attest::emulator {
namespace {

class Mistakes : public OnEverySet {};
INSTANTIATE_TEST_SUITE_P(All, Mistakes, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& i) { return std::string(i.param); });

TEST_P(Mistakes, ReadsBeforeTheBarrier) {
  Buffer<int> in(64), out(64);
  expect("racecheck",
         {line_of("reads_before_barrier"), "reads 4 bytes of shared memory at offset",
          "wrote at " + line_of("writes_without_barrier")},
         "reads_before_barrier", {{1}, {64}}, in.data(), out.data());
}
TEST_P(Mistakes, OverwritesBeforeTheBarrier) {
  Buffer<int> in(64), out(64);
  std::iota(in.begin(), in.end(), 0);
  expect("racecheck",
         {line_of("overwrites_before_barrier"), "writes 4 bytes",
          "read at " + line_of("reads_without_barrier")},
         "overwrites_before_barrier", {{1}, {64}}, in.data(), out.data());
}
TEST_P(Mistakes, ReadsBeforeSyncwarp) {
  Buffer<int> in(32), out(32);
  expect("racecheck",
         {line_of("reads_before_syncwarp"), "thread (0,0,0)",
          "offset 0x4, which thread (1,0,0) wrote"},
         "reads_before_syncwarp", {{1}, {32}}, in.data(), out.data());
}
TEST_P(Mistakes, CountsInWhatNobodyHasClearedForIt) {
  // The first atomics are those of the very threads that cleared: they must not hide it.
  Buffer<int> out(16);
  expect("racecheck",
         {"atom.shared.add.u32", "thread (16,0,0)",
          "which thread (0,0,0) wrote as well at " + line_of("clears_without_barrier")},
         "counts_before_barrier", {{1}, {128}}, out.data());
  expect("racecheck",
         {"atom.global.add.u32", "thread (16,0,0)",
          "which thread (0,0,0) of block (0,0,0) wrote as well at " + line_of("clears_for_others")},
         "counts_before_anybody_cleared", {{4}, {128}}, out.data());
}
TEST_P(Mistakes, OneOfManyBlocksWritesTooLate) {
  constexpr unsigned kBlocks = 700;
  Buffer<int> a(kBlocks), out(1);
  Buffer<unsigned> count(1);
  expect("racecheck",
         {line_of("reads_of_many_blocks"),
          "thread (0,0,0) of block (7,0,0) wrote at " + line_of("writes_after_telling")},
         "one_of_many_blocks", {{kBlocks}, {1}}, a.data(), count.data(), out.data(), 7u);
  count[0] = 0;
  EXPECT_EQ(program.trouble("one_of_many_blocks", {{kBlocks}, {1}}, a.data(), count.data(),
                            out.data(), kBlocks),
            "");
  EXPECT_TRUE(Device::instance().findings().empty());
}
TEST_P(Mistakes, OverwritesBeforeSyncwarp) {
  Buffer<int> in(32), out(32);
  expect("racecheck",
         {line_of("overwrites_before_syncwarp"), "thread (0,0,0)", "which thread (1,0,0) read"},
         "overwrites_before_syncwarp", {{1}, {32}}, in.data(), out.data());
}
TEST_P(Mistakes, SyncsHalfAWarp) {
  Buffer<int> in(32), out(32);
  expect("racecheck", {line_of("syncs_half_a_warp"), "wrote"}, "syncs_half_a_warp", {{1}, {32}},
         in.data(), out.data());
}
TEST_P(Mistakes, LanesOfOneInstructionDisagree) {
  Buffer<int> in{4, 4, 5}, out(32);
  expect("racecheck", {line_of("lanes_disagree"), "thread (2,0,0)"}, "lanes_disagree", {{1}, {32}},
         in.data(), out.data());
  Buffer<int> same{4, 4, 4};
  EXPECT_EQ(program.trouble("lanes_disagree", {{1}, {32}}, same.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
}
TEST_P(Mistakes, WarpsDisagree) {
  Buffer<int> in(64), out(64);
  std::iota(in.begin(), in.end(), 0);
  expect("racecheck",
         {line_of("warps_disagree"), "thread (32,0,0)", "which thread (0,0,0) wrote as well"},
         "warps_disagree", {{1}, {64}}, in.data(), out.data());
  std::fill(in.begin(), in.end(), 3);
  EXPECT_EQ(program.trouble("warps_disagree", {{1}, {64}}, in.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
}
TEST_P(Mistakes, SharedMemoryThatNobodyWrote) {
  Buffer<float> in(64), out(64);
  expect(
      "initcheck",
      {line_of("shared_never_written"), "thread (0,0,0)",
       "reads 4 bytes of shared memory at offset 0xfc that nothing has written", "15 more lanes"},
      "shared_never_written", {{1}, {64}}, in.data(), out.data());
}
TEST_P(Mistakes, HalfOfAWord) {
  Buffer<std::uint16_t> in(32);
  Buffer<std::uint32_t> out(32);
  expect("initcheck", {line_of("half_a_word"), "of which 2 nothing has written"},
         "half_a_word_written", {{1}, {32}}, in.data(), out.data());
}
TEST_P(Mistakes, UninitialisedGlobalMemory) {
  Blank<float> in(32);
  Buffer<float> out(32);
  expect("initcheck",
         {line_of("uninitialised_global"), "global memory",
          "0 bytes into an allocation of 128 bytes, that nothing has written"},
         "uninitialised_global", {{1}, {32}}, in.data(), out.data());
  Device::instance().mark_written(in.data(), 31 * sizeof(float));
  expect("initcheck", {"thread (31,0,0)", "124 bytes into"}, "uninitialised_global", {{1}, {32}},
         in.data(), out.data());
  Device::instance().copy_written(in.data() + 31, out.data(), sizeof(float));
  EXPECT_EQ(program.trouble("uninitialised_global", {{1}, {32}}, in.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
  // A kernel's own writes count: the output of one launch is the input of the next.
  Blank<float> between(32);
  EXPECT_EQ(program.trouble("uninitialised_global", {{1}, {32}}, in.data(), between.data()), "");
  EXPECT_EQ(program.trouble("uninitialised_global", {{1}, {32}}, between.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
}
TEST_P(Mistakes, UninitialisedLocalArray) {
  Buffer<int> in(16), out(32);
  std::iota(in.begin(), in.end(), 0);
  expect("initcheck", {line_of("uninitialised_local"), "local memory"}, "uninitialised_local",
         {{1}, {32}}, in.data(), out.data());
}
TEST_P(Mistakes, UndefinedValuesThatDecideSomething) {
  Buffer<int> out(32);
  Blank<int> in(32);
  const std::vector<std::string> first{"thread (0,0,0)", "that nothing has written"};
  for (const auto& [kernel, use] : {std::pair{"branches_on_nothing", "the value is used at"},
                                    std::pair{"points_with_nothing", "(atom.global.add.u32)"},
                                    std::pair{"spills_nothing", "(st.global.u32)"}}) {
    std::vector<std::string> parts = first;
    parts.push_back(line_of(kernel)), parts.push_back(use);
    expect("initcheck", parts, kernel, {{1}, {32}}, in.data(), out.data());
  }
}
TEST_P(Mistakes, ValuesOfLanesThatDoNotTakePart) {
  Buffer<int> in(32, 1), out(32);
  expect("initcheck",
         {line_of("sum_of_some"), "thread (4,0,0)",
          "takes the value of lane 20, which has exited: what it gets is undefined",
          "(st.global.u32)"},
         "sum_with_exited_lanes", {{1}, {32}}, in.data(), out.data(), 20);
  expect("initcheck",
         {line_of("asks_outside"), "thread (16,0,0)",
          "takes the value of lane 3, which its member mask leaves out"},
         "asks_outside_the_mask", {{1}, {32}}, out.data());
}
TEST_P(Mistakes, UninitialisedCounter) {
  Blank<unsigned> counter(1);
  expect("initcheck", {"atom.global.add.u32", "thread (0,0,0)", "updates 4 bytes"},
         "uninitialised_counter", {{1}, {32}}, counter.data());
}
TEST_P(Mistakes, BlocksWriteOnePlace) {
  Buffer<int> out(1);
  expect("racecheck",
         {line_of("blocks_write_one_place"), "block (1,0,0), thread (5,0,0)",
          "which thread (5,0,0) of block (0,0,0) wrote as well"},
         "blocks_write_one_place", {{2}, {32}}, out.data());
}
TEST_P(Mistakes, ReadsAnotherBlocksOutput) {
  Buffer<int> a(64), out(64);
  EXPECT_EQ(program.trouble("reads_other_block", {{2}, {32}}, a.data(), out.data()), "");
  const auto& findings = Device::instance().findings();
  ASSERT_EQ(findings.size(), 2u);  // one block reads too early, or too late for the other's write
  for (const CheckerFinding& finding : findings) EXPECT_EQ(finding.kind, "racecheck");
  EXPECT_NE(findings[0].what.find(line_of("writes_for_other_block")), std::string::npos);
  EXPECT_NE(findings[0].what.find("which thread (0,0,0) of block (0,0,0) read at " +
                                  line_of("reads_other")),
            std::string::npos)
      << findings[0].what;
  EXPECT_NE(findings[1].what.find("of block (0,0,0) wrote at"), std::string::npos)
      << findings[1].what;
}
TEST_P(Mistakes, MissingBarrierInGlobalMemory) {
  Buffer<int> a(64), out(64);
  expect("racecheck", {line_of("missing_barrier_in_global"), "global memory"},
         "missing_barrier_in_global", {{1}, {64}}, a.data(), out.data());
}
TEST_P(Mistakes, LastBlockWithoutFence) {
  Buffer<int> in(4), partial(4), out(1);
  for (const char* kernel : {"last_block_without_fence", "last_block_with_block_fence"}) {
    Buffer<unsigned> done(1);
    expect("racecheck", {line_of("last_block"), "of block (0,0,0) wrote"}, kernel, {{4}, {32}},
           in.data(), partial.data(), done.data(), out.data());
  }
}
TEST_P(Mistakes, FlagThatIsNoVolatile) {
  Buffer<int> data(32), flag(1), out(33);
  expect("racecheck", {line_of("polls_plain_flag"), "wrote at " + line_of("plain_flag")},
         "plain_flag", {{2}, {32}}, data.data(), flag.data(), out.data());
}
TEST_P(Mistakes, FlagWithoutAcquire) {
  Buffer<int> data(32), flag(1), out(33);
  expect("racecheck", {line_of("without_acquire"), "of block (0,0,0) wrote"},
         "flag_without_acquire", {{2}, {32}}, data.data(), flag.data(), out.data());
}
TEST_P(Mistakes, VolatileFlagWithoutRelease) {
  Buffer<int> data(32), flag(1), out(33);
  expect("racecheck", {line_of("without_acquire"), "of block (0,0,0) wrote"},
         "flag_without_release", {{2}, {32}}, data.data(), flag.data(), out.data());
}
TEST_P(Mistakes, VolatileFlagBetweenWarps) {
  Buffer<int> in(32), out(32);
  expect("racecheck", {line_of("flag_between_warps"), "thread (32,0,0)", "wrote"},
         "flag_between_warps", {{1}, {64}}, in.data(), out.data());
}
TEST_P(Mistakes, AtomicsOfOneBlockOnly) {
  Buffer<unsigned> count(1);
  expect("racecheck", {"atom.global.cta.add.u32", "atomic for its own block only"},
         "atomics_of_one_block", {{2}, {32}}, count.data());
}
TEST_P(Mistakes, ReadsWhatOthersCount) {
  Buffer<unsigned> count(1), out(1);
  expect("racecheck", {line_of("reads_what_others_count"), "wrote"}, "reads_what_others_count",
         {{1}, {64}}, count.data(), out.data());
}
TEST_P(Mistakes, NamedBarrierForTheWrongWarps) {
  Buffer<int> in(64), out(64);
  std::iota(in.begin(), in.end(), 0);
  expect("racecheck", {line_of("waits_for_nobody"), "thread (64,0,0)"}, "waits_for_nobody",
         {{1}, {96}}, in.data(), out.data(), 1);
}
TEST_P(Mistakes, PaddingThatSomebodyUses) {
  Blank<int> from(96), to(96);
  Buffer<int> out(32);
  EXPECT_EQ(program.trouble("fills_structs", {{1}, {32}}, from.data()), "");
  EXPECT_EQ(program.trouble("copies_structs", {{1}, {32}}, from.data(), to.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[std::size_t(i)], i + 12);
  expect("initcheck", {line_of("reads_padding"), "of which 3 nothing has written"}, "reads_padding",
         {{1}, {32}}, to.data(), out.data());
}
TEST_P(Mistakes, EachCheckerCanBeTurnedOff) {
  Blank<float> in(64);
  Buffer<float> out(64);
  for (const Checks checks : {Checks{true, false, true}, Checks{true, false, false}}) {
    Device::instance().configure({.checks = checks});
    EXPECT_EQ(program.trouble("uninitialised_global", {{1}, {32}}, in.data(), out.data()), "");
  }
  Device::instance().configure({.checks = {true, true, false}});
  EXPECT_EQ(program.trouble("reads_before_barrier", {{1}, {64}}, out.data(), out.data()), "");
  EXPECT_TRUE(Device::instance().findings().empty());
}

}  // namespace
}  // namespace attest::emulator
