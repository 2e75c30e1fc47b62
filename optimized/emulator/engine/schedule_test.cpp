// Schedules: what a kernel promises holds under each, what it leaves open shows under some,
// everything that ends ends under all, and the seed alone decides. Misused barriers are found under
// each.
#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr std::uint64_t kSeeds = 200;

class Schedules : public testing::Test {
 protected:
  void SetUp() override { choose("avx512"); }
  void TearDown() override {
    Device::instance().configure({});
    Device::instance().reset_findings();
  }
  TestProgram plain{text_of(ATTEST_PROGRAMS_PTX)}, open{text_of(ATTEST_ASYNC_PTX_80)};

  static void take(std::uint64_t seed, unsigned threads = 1, bool races = true) {
    DeviceOptions options;
    options.schedule = seed;
    options.threads = threads;
    options.checks.racecheck = races;
    options.instruction_limit = 1 << 25;
    constexpr const char* kSets[] = {"avx512", "baseline", "avx2"};  // stores are in each
    setenv("ATTEST_ISA", kSets[seed % std::size(kSets)], 1);
    Device::instance().configure(options);
    Device::instance().reset_findings();
  }
  static std::string findings() {
    std::string text;
    for (const CheckerFinding& f : Device::instance().findings())
      text += f.kind + ": " + f.what + "\n";
    return text;
  }
};

TEST_F(Schedules, WhatIsPromisedHoldsUnderEach) {
  Buffer<int> in(512), out(64 * 12);
  std::iota(in.begin(), in.end(), 1);
  Buffer<float> a(256), b(256), c(256);
  for (int i = 0; i < 256; ++i) a[i] = float(i % 13) / 7, b[i] = float(i % 11) / 3;
  const auto results = [&] {
    std::vector<std::vector<int>> all;
    const auto run = [&](const std::string& kernel, const Shape& shape, auto... arguments) {
      std::fill(out.begin(), out.end(), -1);
      EXPECT_EQ(plain.trouble(kernel, shape, arguments...), "");
      all.push_back(out.values());
    };
    run("block_sum", {{4}, {128}}, in.data(), out.data());
    run("collatz", {{2}, {64}}, out.data());
    run("diverge", {{1}, {96}}, out.data(), 90);
    run("recursion", {{1}, {64}}, out.data());
    run("indirect", {{1}, {64}}, out.data());
    run("virtual_calls", {{1}, {32}}, out.data());
    run("warp_operations", {{1}, {64}}, out.data());
    run("named_barriers", {{1}, {64}}, out.data());
    run("dynamic_shared", {{1}, {128}, 512}, out.data());
    run("matmul", {{1, 1}, {16, 16}}, a.data(), b.data(), c.data(), 16);
    const float* floats = c.data();
    std::memcpy(out.data(), floats, 256 * sizeof(float));
    all.push_back(out.values());
    return all;
  };
  take(0);
  const auto first = results();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    take(seed, 1 + unsigned(seed % 3), seed % 2 != 0);
    const auto again = results();
    for (std::size_t i = 0; i < first.size(); ++i) {
      // o[6] of warp_operations holds __activemask(), which no order owes anybody.
      if (i == 6) continue;
      ASSERT_EQ(again[i], first[i]) << "kernel " << i << " under " << seed << "\n" << findings();
    }
  }
}

TEST_F(Schedules, WhatIsLeftOpenShowsAndTheSeedAloneDecides) {
  struct Open {
    const char* kernel;
    Shape shape;
  };
  for (const Open& k : {Open{"lanes_collide", {{1}, {32}}}, Open{"warps_collide", {{1}, {256}}},
                        Open{"blocks_collide", {{16}, {32}}}, Open{"adds_floats", {{8}, {128}}}}) {
    std::set<std::vector<int>> seen;
    for (std::uint64_t seed = 0; seed <= 20; ++seed) {
      std::vector<int> first;
      for (unsigned threads : {1u, 2u, 4u}) {
        take(seed, threads);
        Buffer<int> out(2);
        open.run(k.kernel, k.shape, out.data());
        if (threads == 1) first = out.values();
        ASSERT_EQ(out.values(), first) << k.kernel << " under " << seed << " on " << threads;
      }
      seen.insert(first);
    }
    EXPECT_GT(seen.size(), 1u) << k.kernel;
  }
  take(7);
  Buffer<int> order(32), next(1);
  EXPECT_EQ(open.trouble("lanes_in_turn", {{1}, {32}}, order.data(), next.data()), "");
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end())) << "lanes of an atomic take any order";
}

TEST_F(Schedules, EverythingThatEndsEndsUnderEach) {
  // What a hundred blocks know of each other at a grid's barrier takes most of the time to follow.
  constexpr std::uint64_t kJudged = 5;
  for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
    take(seed, 1, seed <= kJudged);
    Buffer<int> lock(1), count(1), flag(1), out(32);
    EXPECT_EQ(plain.trouble("spin_lock", {{4}, {64}}, lock.data(), count.data()), "") << seed;
    ASSERT_EQ(count[0], 256) << seed;
    EXPECT_EQ(plain.trouble("spin_forever_for_other_lane", {{1}, {32}}, flag.data(), out.data()),
              "")
        << seed;
    Buffer<unsigned> arrived(1);
    Buffer<int> values(100), sums(100 * 64);
    EXPECT_EQ(plain.trouble("grid_barrier", {{100}, {64}, 0, seed % 2 == 0}, arrived.data(),
                            values.data(), sums.data()),
              "")
        << seed;
    ASSERT_EQ(sums.values(), std::vector<int>(100 * 64, 5050)) << seed;
    Buffer<int> in(200, 3), partial(200), ready(200), totals(200);
    EXPECT_EQ(open.trouble("look_back", {{200}, {32}}, in.data(), partial.data(), ready.data(),
                           totals.data()),
              "")
        << seed;
    for (int i = 0; i < 200; ++i) ASSERT_EQ(totals[i], 3 * (i + 1)) << seed;
  }
}

TEST_F(Schedules, WaitingForNobodyIsADeadlock) {
  for (std::uint64_t seed = 0; seed <= 5; ++seed) {
    take(seed);
    Buffer<unsigned> arrived(1);
    Buffer<int> values(20), sums(20 * 64), flag(1);
    void* out = sums.data();
    void *a = arrived.data(), *v = values.data();
    void* arguments[] = {&a, &v, &out};
    const auto status = Device::instance().launch(
        plain.module(), "grid_barrier",
        {.grid = {20}, .block = {64}, .arguments = arguments, .resident_blocks = 8});
    EXPECT_EQ(status, Device::Status::faulted);
    EXPECT_NE(findings().find("deadlock: "), std::string::npos) << findings();
    EXPECT_NE(findings().find("the 8 blocks that run all read the same memory"), std::string::npos)
        << findings();
    EXPECT_NE(findings().find("12 more start only when one of these ends"), std::string::npos)
        << findings();
    take(seed);
    EXPECT_EQ(open.run("waits_for_flag", {{3}, {64}}, flag.data(), out), Device::Status::faulted);
    EXPECT_NE(findings().find("deadlock: "), std::string::npos) << findings();
  }
}

TEST_F(Schedules, ClocksAdvanceWithWhatIsExecuted) {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    take(seed);
    Buffer<long long> out(3 * 64);
    EXPECT_EQ(open.trouble("times", {{1}, {64}}, out.data()), "");
    for (int t = 0; t < 64; ++t) {
      EXPECT_GE(out[3 * t], 100) << seed;    // instructions lie between
      EXPECT_GE(out[3 * t + 1], 0) << seed;  // after the barrier it is later, for everybody
    }
  }
}

TEST_F(Schedules, MisusedBarriersAreFoundUnderEach) {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    Buffer<int> out(64);
    const auto finds = [&](const char* kernel, std::vector<std::string> parts, auto... more) {
      take(seed);
      EXPECT_EQ(open.run(kernel, {{1}, {64}}, out.data(), more...), Device::Status::faulted)
          << kernel;
      for (const std::string& part : parts)
        EXPECT_NE(findings().find(part), std::string::npos)
            << kernel << " under " << seed << ": no '" << part << "' in " << findings();
    };
    finds("barrier_of_too_many", {"barrier: ", "128 threads shall come; the block has 64"});
    finds("barrier_number", {"barrier: ", "barrier 16 does not exist"}, 16);
    finds("barrier_mixed", {"barrier: ", "by a reducing and by another instruction at once"});
    finds("half_a_warp",
          {"barrier: ", "lanes of one warp are at different places", "(mask 0x0000ffff)"});
    finds("ends_before_barrier", {"deadlock: ", "32 of 64 threads have come", "32 threads of the"});
    take(seed);
    EXPECT_EQ(open.trouble("counts_whole_warps", {{1}, {60}}, out.data()), "") << seed;
  }
}

}  // namespace
}  // namespace attest::emulator
