// Accesses of sixteen bytes and narrower ones to the same memory: the checkers keep wide ones as a
// whole, and must lose nothing by it. Mistakes, each beside the same program made right.
#include <algorithm>
#include <numeric>
#include <vector>

#include "optimized/emulator/engine/testing/on_every_set.hpp"

namespace attest::emulator {
namespace {

struct alignas(16) Vector {
  int x = 0, y = 0, z = 0, w = 0;
};

class Widths : public OnEverySet {
 protected:
  template <class... Arguments>
  void expect_silence(const std::string& kernel, const Shape& shape, Arguments... arguments) {
    EXPECT_EQ(program.trouble(kernel, shape, arguments...), "");
    for (const CheckerFinding& f : Device::instance().findings()) ADD_FAILURE() << f.what;
    Device::instance().reset_findings();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Widths, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& i) { return std::string(i.param); });

TEST_P(Widths, APartOfWhatWasWrittenWhole) {
  Buffer<Vector> in(64);
  Buffer<int> out(64);
  expect("racecheck",
         {line_of("reads_a_part"), "reads 4 bytes of shared memory", "thread (32,0,0)",
          "thread (0,0,0) wrote at " + line_of("writes_the_whole")},
         "reads_a_part", {{1}, {64}}, in.data(), out.data(), false);
  expect_silence("reads_a_part", {{1}, {64}}, in.data(), out.data(), true);
}
TEST_P(Widths, TheWholeOfWhatWasWrittenInParts) {
  Buffer<int> in(256);
  Buffer<Vector> out(64);
  std::iota(in.begin(), in.end(), 0);
  expect("racecheck",
         {line_of("reads_the_whole"), "reads 16 bytes of shared memory",
          "wrote at " + line_of("writes_a_part")},
         "reads_the_whole", {{1}, {64}}, in.data(), out.data(), false);
  expect_silence("reads_the_whole", {{1}, {64}}, in.data(), out.data(), true);
  EXPECT_EQ(out[5].z, 4 * (5 + 32) + 2 + 1);
}
TEST_P(Widths, TheWholeOverAPartThatWasRead) {
  Buffer<Vector> in(64), out(64);
  expect("racecheck",
         {line_of("overwrites_the_whole"), "writes 16 bytes",
          "thread (32,0,0) read at " + line_of("reads_one_word")},
         "overwrites_a_part_read", {{1}, {64}}, in.data(), out.data(), false);
  expect_silence("overwrites_a_part_read", {{1}, {64}}, in.data(), out.data(), true);
}
/// Which vectors lanes share: every so many lanes the same ones, or lane 1 that of lane 3.
std::vector<std::vector<int>> shared_vectors() {
  std::vector<std::vector<int>> all;
  for (const int period : {1, 2, 3, 5, 8, 11, 16}) {
    std::vector<int>& at = all.emplace_back(32);
    for (int lane = 0; lane < 32; ++lane) at[std::size_t(lane)] = lane % period;
  }
  std::vector<int>& at = all.emplace_back(32);
  std::iota(at.begin(), at.end(), 0);
  at[1] = 3;
  return all;
}

TEST_P(Widths, LanesThatShareAVector) {
  Buffer<Vector> in(32), out(32);
  Buffer<int> at(32);
  for (const std::vector<int>& shared : shared_vectors()) {
    SCOPED_TRACE(testing::PrintToString(shared));
    std::copy(shared.begin(), shared.end(), at.begin());
    expect("racecheck",
           {line_of("overwrites_what_others_read"),
            "threads of warp 0 read at " + line_of("lanes_share")},
           "overwrites_what_others_read", {{1}, {32}}, in.data(), out.data(), at.data(), false);
    expect_silence("overwrites_what_others_read", {{1}, {32}}, in.data(), out.data(), at.data(),
                   true);
  }
  // Each lane changes what it alone has read: nothing has to order the two.
  std::iota(at.begin(), at.end(), 0);
  expect_silence("overwrites_what_others_read", {{1}, {32}}, in.data(), out.data(), at.data(),
                 false);
}
TEST_P(Widths, VectorsOfOneStoreMeet) {
  Buffer<Vector> in(32), out(32);
  Buffer<int> at(32);
  for (const std::vector<int>& shared : shared_vectors()) {
    SCOPED_TRACE(testing::PrintToString(shared));
    std::copy(shared.begin(), shared.end(), at.begin());
    in[3].w = 0;
    expect_silence("vectors_meet", {{1}, {32}}, in.data(), out.data(), at.data());
    in[3].w = 1;
    expect("racecheck", {line_of("vectors_meet"), "writes 16 bytes of shared memory"},
           "vectors_meet", {{1}, {32}}, in.data(), out.data(), at.data());
  }
  std::iota(at.begin(), at.end(), 0);
  expect_silence("vectors_meet", {{1}, {32}}, in.data(), out.data(), at.data());
}
TEST_P(Widths, AVectorOfWhichAWordIsMissing) {
  Buffer<int> in(4), out(32);
  expect("initcheck",
         {line_of("three_words_of_four"), "thread (21,0,0)", "of which 4 nothing has written"},
         "three_words_of_four", {{1}, {32}}, in.data(), out.data());
}
TEST_P(Widths, WhatEveryBlockReadsChanges) {
  Buffer<Vector> table(256);
  Buffer<int> out(6 * 32);
  expect("racecheck",
         {line_of("changes_a_vector"), "block (5,0,0), thread (7,0,0)", "writes 16 bytes",
          "read at " + line_of("all_blocks_read")},
         "changes_what_all_read", {{6}, {32}}, table.data(), out.data(), 4);
  expect("racecheck",
         {line_of("changes_a_word"), "block (5,0,0), thread (7,0,0)", "writes 4 bytes",
          "read at " + line_of("all_blocks_read")},
         "changes_what_all_read", {{6}, {32}}, table.data(), out.data(), 1);
  expect_silence("changes_what_all_read", {{6}, {32}}, table.data(), out.data(), 0);
  expect_silence("changes_what_all_read", {{1}, {32}}, table.data(), out.data(), 1);
}
TEST_P(Widths, BlocksWriteVectorsAndWords) {
  Buffer<Vector> a(64);
  expect("racecheck",
         {line_of("writes_words"), "writes 4 bytes of global memory",
          "thread (0,0,0) of block (0,0,0) wrote as well at " + line_of("writes_vectors")},
         "vectors_and_words", {{2}, {32}}, a.data(), 0);
  expect_silence("vectors_and_words", {{2}, {32}}, a.data(), 32);
}

}  // namespace
}  // namespace attest::emulator
