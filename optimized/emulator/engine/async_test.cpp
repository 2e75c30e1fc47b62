// Asynchronous copies, mbarriers and cooperative groups: right programs give their result and are
// silent under every schedule; each twin with a mistake is found, with the line of the copy and of
// the access. Compiled for compute_80 and compute_90, whose libcu++ uses other instructions.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr std::uint64_t kSeeds = 200;

/// "async_programs.cu:123" of the line that carries the comment `LINE name`.
std::string line_of(const std::string& name) {
  const std::string source = text_of(ATTEST_ASYNC_SOURCE);
  const std::size_t at = source.find("// LINE " + name + "\n");
  EXPECT_NE(at, std::string::npos) << name;
  return "async_programs.cu:" +
         std::to_string(std::count(source.begin(), source.begin() + std::ptrdiff_t(at), '\n') + 1);
}

class Asynchronous : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { choose("avx512"); }
  void TearDown() override {
    Device::instance().configure({});
    Device::instance().reset_findings();
  }
  TestProgram program{text_of(GetParam())};

  /// Runs under a schedule. What was found: kinds and texts, one a line.
  template <class... Arguments>
  std::string found(std::uint64_t seed, const std::string& kernel, const Shape& shape,
                    Arguments... arguments) {
    constexpr const char* kSets[] = {"avx512", "baseline", "avx2"};  // the hook is in each
    return found_in({kSets[seed % std::size(kSets)], "checked"}, seed, kernel, shape, arguments...);
  }
  /// The same, of a program in which there is nothing to find: each seed goes another way.
  template <class... Arguments>
  std::string complaint(std::uint64_t seed, const std::string& kernel, const Shape& shape,
                        Arguments... arguments) {
    return found_in(every_way()[seed % every_way().size()], seed, kernel, shape, arguments...);
  }
  template <class... Arguments>
  std::string found_in(const Way& way, std::uint64_t seed, const std::string& kernel,
                       const Shape& shape, Arguments... arguments) {
    DeviceOptions options;
    options.schedule = seed;
    options.instruction_limit = 1 << 24;
    choose(way, options);
    const auto status = program.run(kernel, shape, arguments...);
    std::string text = status == Device::Status::invalid_configuration ? "refused" : "";
    for (const CheckerFinding& f : Device::instance().findings())
      text += f.kind + ": " + f.what + "\n";
    Device::instance().reset_findings();
    return text;
  }
  /// The mistake must be found under each of some schedules, with all parts of its text.
  template <class... Arguments>
  void finds(const std::string& kind, const std::vector<std::string>& parts,
             const std::string& kernel, const Shape& shape, Arguments... arguments) {
    for (std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
      const std::string text = found(seed, kernel, shape, arguments...);
      EXPECT_NE(("\n" + text).find("\n" + kind + ": "), std::string::npos)
          << kernel << " under " << seed << " found: " << text;
      for (const std::string& part : parts) {
        EXPECT_NE(text.find(part), std::string::npos)
            << kernel << " under " << seed << ": no '" << part << "' in: " << text;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, Asynchronous,
                         testing::Values(ATTEST_ASYNC_PTX_80, ATTEST_ASYNC_PTX_90),
                         [](const auto& i) {
                           return std::string(
                               i.param == std::string(ATTEST_ASYNC_PTX_80) ? "sm_80" : "sm_90");
                         });

int folded(const Buffer<int>& in, int tiles, int width, int t, bool all) {
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int* v = in.data() + 4 * (i * width + (width - 1 - t));
    sum = sum * 3 + (all ? v[0] + v[1] + v[2] + v[3] : v[0]);
  }
  return sum;
}

TEST_P(Asynchronous, RightPipelinesAreSilentUnderEverySchedule) {
  constexpr int tiles = 5;
  Buffer<int> in(4 * 128 * tiles), out(2 * 128);
  std::iota(in.begin(), in.end(), 1);
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    std::fill(out.begin(), out.end(), -1);
    ASSERT_EQ(complaint(seed, "pipeline", {{2}, {128}}, in.data(), out.data(), tiles), "") << seed;
    for (int t = 0; t < 256; ++t)
      ASSERT_EQ(out[t], folded(in, tiles, 128, t % 128, true)) << seed << " " << t;
    ASSERT_EQ(complaint(seed, "shared_pipeline", {{1}, {128}}, in.data(), out.data(), tiles), "")
        << seed;
    for (int t = 0; t < 128; ++t)
      ASSERT_EQ(out[t], folded(in, tiles, 128, t, true)) << seed << " " << t;
    ASSERT_EQ(complaint(seed, "role_pipeline", {{1}, {128}}, in.data(), out.data(), tiles), "")
        << seed;
    for (int t = 0; t < 64; ++t)
      ASSERT_EQ(out[t], folded(in, tiles, 64, t, false)) << seed << " " << t;
  }
}

TEST_P(Asynchronous, RightHandOversAreSilentUnderEverySchedule) {
  constexpr int tiles = 7;
  Buffer<int> in(4 * 32 * tiles), out(2 * 32);
  std::iota(in.begin(), in.end(), 1);
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    for (const char* kernel : {"hand_over", "hand_over_waiting"}) {
      std::fill(out.begin(), out.end(), -1);
      ASSERT_EQ(complaint(seed, kernel, {{2}, {64}}, in.data(), out.data(), tiles), "") << seed;
      for (int t = 0; t < 64; ++t)
        ASSERT_EQ(out[t], folded(in, tiles, 32, t % 32, false))
            << kernel << " " << seed << " " << t;
    }
  }
}

TEST_P(Asynchronous, BarriersOfLibcuAreSilentUnderEverySchedule) {
  Buffer<int> in(256), out(128);
  std::iota(in.begin(), in.end(), 1);
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    std::fill(out.begin(), out.end(), -1);
    ASSERT_EQ(complaint(seed, "block_barrier", {{2}, {128}}, in.data(), out.data()), "") << seed;
    for (int b = 0; b < 2; ++b) {
      const auto value = [&](int t) { return in[std::size_t(b * 128 + 127 - t)] + 1; };
      for (int t = 0; t < 64; ++t)
        ASSERT_EQ(out[b * 64 + t], value(64 + t) * 1000 + value(63 - t)) << seed << " " << t;
    }
    ASSERT_EQ(complaint(seed, "group_copy", {{1}, {128}}, in.data(), out.data()), "") << seed;
    for (int t = 0; t < 128; ++t) ASSERT_EQ(out[t], in[127 - t]) << seed;
  }
}

TEST_P(Asynchronous, CopiesThatAreNotWaitedForAreFound) {
  Buffer<int> in(4 * 128 * 4, 1), out(128);
  for (const char* kernel : {"pipeline_waits_too_little", "pipeline_never_waits"}) {
    finds("async",
          {line_of("reads_tile"), "reads 16 bytes of shared memory at offset",
           "issued at " + line_of("first_copy"), "has not been waited for"},
          kernel, {{1}, {128}}, in.data(), out.data(), 4);
  }
  finds("async", {line_of("ends_early"), "its thread ended without waiting"}, "ends_early",
        {{1}, {32}}, in.data(), out.data());
  finds("async",
        {line_of("writes_source"), "still being read", "issued at " + line_of("copies_source")},
        "writes_source", {{1}, {32}}, in.data(), out.data());
  finds("async", {line_of("copies_twice"), "writes 16 bytes of shared memory"}, "copies_twice",
        {{1}, {32}}, in.data(), out.data());
  finds("async", {line_of("consumes"), "issued at " + line_of("produces")}, "hand_over_unseen",
        {{1}, {64}}, in.data(), out.data(), 7);
  finds("async", {line_of("not_waited"), "has not been waited for"}, "block_barrier_not_waited",
        {{1}, {128}}, in.data(), out.data());
}

TEST_P(Asynchronous, PartsAreFilledWithZeros) {
  Buffer<int> in(4 * 32), out(8 * 32);
  std::iota(in.begin(), in.end(), 1);
  for (std::uint64_t seed : {0, 1, 2, 3}) {
    const int* none = reinterpret_cast<const int*>(std::uintptr_t{3});
    ASSERT_EQ(complaint(seed, "parts", {{1}, {32}}, in.data(), none, out.data()), "");
    for (int t = 0; t < 32; ++t) {
      for (int i = 0; i < 8; ++i) {
        const int given = i < 4 ? t % 5 : i < 6 ? std::min(t % 5, 2) + 4 : t % 5 != 0 ? 7 : 6;
        const int from = i < 4 ? i : i < 6 ? i - 4 : 0;
        const int value = i == 7 ? -1 : i < given ? in[std::size_t(4 * t + from)] : 0;
        ASSERT_EQ(out[std::size_t(8 * t + i)], value) << t << " " << i;
      }
    }
  }
}

TEST_P(Asynchronous, CopiesStayInBounds) {
  Buffer<int> in(4 * 32), out(32);
  finds("memcheck",
        {"thread (9,0,0)", line_of("past_end"), "reads 16 bytes of global memory",
         "past the end of a 512-byte allocation"},
        "copies_past_end", {{1}, {32}}, in.data(), out.data(), 23);
  finds("memcheck", {"thread (0,0,0)", "not aligned to 16 bytes"}, "copies_past_end", {{1}, {32}},
        in.data() + 1, out.data(), 0);
  finds("memcheck", {"thread (31,0,0)", line_of("past_shared"), "writes 16 bytes of shared memory"},
        "copies_past_shared", {{1}, {32}}, in.data(), out.data(), 1);
}

TEST_P(Asynchronous, MbarriersAnswerAsPtxStates) {
  Buffer<unsigned> out(6, 99);
  EXPECT_EQ(found(0, "mbarrier_answers", {{1}, {32}}, out.data()), "");
  EXPECT_EQ(out.values(), (std::vector<unsigned>{5, 3, 0, 1, 4, 77}));
}

TEST_P(Asynchronous, MisuseOfMbarriersIsFound) {
  Buffer<int> in(4 * 32 * 4, 1), out(32);
  const auto run = [&](const char* kind, const std::vector<std::string>& parts,
                       const char* kernel) {
    finds(kind, parts, kernel, {{1}, {64}}, in.data(), out.data(), 4);
  };
  run("barrier", {"no mbarrier was initialised"}, "hand_over_uninitialised");
  run("barrier", {"arrivals at the mbarrier", "lacks"}, "hand_over_too_often");
  run("barrier", {line_of("touches_object"), "where an mbarrier lives"}, "hand_over_touched");
  run("deadlock", {"the phase will never complete", "lacks 1 of 33 arrivals"}, "hand_over_lacking");
}

TEST_P(Asynchronous, MbarriersAreUsedByThoseWhoKnowThem) {
  Buffer<unsigned> out(64);
  for (std::uint64_t seed = 0; seed <= kSeeds / 10; ++seed) {
    const std::string text = found(seed, "waits_before_it_is_made", {{1}, {64}}, out.data());
    EXPECT_TRUE(text.find("which thread (0,0,0) initialised; nothing orders the two") !=
                    text.npos ||
                text.find("no mbarrier was initialised") != text.npos)
        << seed << text;
    EXPECT_EQ(complaint(seed, "waits_when_it_is_made", {{1}, {64}}, out.data()), "") << seed;
  }
}

TEST_P(Asynchronous, GridsSynchronise) {
  constexpr int blocks = 20, width = 64;
  Buffer<int> values(blocks * width), out(blocks * width);
  for (std::uint64_t seed = 0; seed <= kSeeds / 10; ++seed) {
    ASSERT_EQ(complaint(seed, "grid_sync", {{blocks}, {width}, 0, true}, values.data(), out.data()),
              "");
    for (int t = 0; t < blocks * width; ++t) ASSERT_EQ(out[t], blocks * width - 1 - t + 2);
  }
}

TEST_P(Asynchronous, CooperativeGroupsRunUnderEverySchedule) {
  Buffer<int> out(64 * 8);
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    ASSERT_EQ(complaint(seed, "groups", {{1}, {64}}, out.data()), "") << seed;
    for (int t = 0; t < 64; ++t) {
      const int* o = out.data() + t * 8;
      const int base = t / 8 * 8;
      ASSERT_EQ(o[0], 8 * base + 28);
      ASSERT_EQ(o[1], [&] {
        int sum = 0;
        for (int i = base; i <= t; ++i) sum += i;
        return sum;
      }());
      ASSERT_EQ(o[6], t % 8 < 3 ? 3 : 5);
      ASSERT_EQ(o[7], t / 8 == 1);
    }
    ASSERT_EQ(complaint(seed, "tiles_of_two_warps", {{1}, {128}}, out.data()), "") << seed;
    for (int t = 0; t < 128; ++t) {
      const int first = t / 64 * 64;
      ASSERT_EQ(out[t], 3 * (64 * first + 64 * 63 / 2) + 64 * 3) << seed;
    }
  }
}

}  // namespace
}  // namespace attest::emulator
