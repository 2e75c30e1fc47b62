// Programs that are right, and look like mistakes: initcheck and racecheck are silent on them under
// every schedule.
#include <cstdint>
#include <numeric>

#include "optimized/emulator/engine/testing/on_every_set.hpp"

namespace attest::emulator {
namespace {

class Right : public OnEverySet {
 protected:
  /// Runs under several orders; `prepare` gives each run its memory.
  template <class Run>
  void in_every_order(const Run& run) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Device::instance().configure({.schedule = seed});
      run();
      for (const CheckerFinding& f : Device::instance().findings())
        ADD_FAILURE() << "schedule " << seed << ": " << f.kind << ": " << f.what;
      Device::instance().reset_findings();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, Right, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& i) { return std::string(i.param); });

TEST_P(Right, TreeReduction) {
  in_every_order([&] {
    Buffer<int> in(256);
    Blank<int> out(1);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("tree_reduction", {{1}, {256}}, in.data(), out.data()), "");
    EXPECT_EQ(out[0], 255 * 128);
  });
}
TEST_P(Right, DoubleBuffering) {
  in_every_order([&] {
    Buffer<float> in(64 * 7, 1);
    Blank<float> out(64);
    EXPECT_EQ(program.trouble("double_buffering", {{1}, {64}}, in.data(), out.data(), 7), "");
    EXPECT_EQ(out[5], 7 * 16);
  });
}
TEST_P(Right, ProducerAndConsumers) {
  in_every_order([&] {
    Buffer<int> in(32 * 9);
    Blank<int> out(64);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("producer_and_consumers", {{1}, {96}}, in.data(), out.data(), 9), "");
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[std::size_t(i)], 9 * (31 - i % 32) + 32 * 36) << i;
  });
}
TEST_P(Right, WarpPipeline) {
  in_every_order([&] {
    Buffer<int> in(128, 1);
    Blank<int> out(128);
    EXPECT_EQ(program.trouble("warp_pipeline", {{1}, {128}}, in.data(), out.data(), 10), "");
    for (const int v : out.values()) EXPECT_EQ(v, 1024);
  });
}
TEST_P(Right, LastBlockDone) {
  in_every_order([&] {
    Buffer<int> in{1, 2, 3, 4, 5, 6};
    Blank<int> partial(6), out(1);
    Buffer<unsigned> done(1);
    EXPECT_EQ(program.trouble("last_block_done", {{6}, {32}}, in.data(), partial.data(),
                              done.data(), out.data()),
              "");
    EXPECT_EQ(out[0], 42);
  });
}
TEST_P(Right, FlagWithFences) {
  in_every_order([&] {
    Blank<int> data(32), out(33);
    Buffer<int> flag(1);
    EXPECT_EQ(
        program.trouble("flag_with_fences", {{2}, {32}}, data.data(), flag.data(), out.data()), "");
    EXPECT_EQ(out[31], 38);
  });
}
TEST_P(Right, LookBack) {
  in_every_order([&] {
    Buffer<int> in(8, 3), ready(8);
    Blank<int> prefix(8), out(8 * 32);
    EXPECT_EQ(program.trouble("look_back", {{8}, {32}}, in.data(), prefix.data(), ready.data(),
                              out.data()),
              "");
    EXPECT_EQ(out[7 * 32 + 1], 22);
  });
}
TEST_P(Right, SpinLock) {
  in_every_order([&] {
    Buffer<int> lock(1), count(1);
    EXPECT_EQ(program.trouble("spin_lock", {{4}, {64}}, lock.data(), count.data()), "");
    EXPECT_EQ(count[0], 16);
  });
}
TEST_P(Right, BytesSideBySide) {
  in_every_order([&] {
    Buffer<std::uint8_t> in(128, 3);
    Blank<std::uint8_t> out(256);
    EXPECT_EQ(program.trouble("bytes_side_by_side", {{2}, {128}}, in.data(), out.data()), "");
    for (const int v : out.values()) EXPECT_EQ(v, 6);
  });
}
TEST_P(Right, LoopsAroundCompareAndSwap) {
  in_every_order([&] {
    Buffer<double> sum(1);
    EXPECT_EQ(program.trouble("adds_like_old_architectures", {{3}, {64}}, sum.data()), "");
    EXPECT_EQ(sum[0], 192);
  });
}
TEST_P(Right, TellsByShuffle) {
  in_every_order([&] {
    Buffer<int> in(32);
    Blank<int> out(32);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("tells_by_shuffle", {{1}, {64}}, in.data(), out.data()), "");
    for (int i = 0; i < 32; ++i) EXPECT_EQ(out[std::size_t(i)], 31 - i);
  });
}
TEST_P(Right, ExitsBeforeTheBarrier) {
  in_every_order([&] {
    Buffer<int> in(96);
    Blank<int> out(40);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("exits_before_barrier", {{1}, {96}}, in.data(), out.data()), "");
    for (int i = 0; i < 40; ++i) EXPECT_EQ(out[std::size_t(i)], 56 + i);
  });
}
TEST_P(Right, VolatileArray) {
  in_every_order([&] {
    Blank<int> out(64);
    EXPECT_EQ(program.trouble("volatile_array", {{1}, {64}}, out.data()), "");
    for (const int v : out.values()) EXPECT_TRUE(v == 14 || v == 21) << v;
  });
}
TEST_P(Right, DropsWhatIsUndefined) {
  in_every_order([&] {
    Blank<int> in(64), out(1), all(48);
    for (int i = 0; i < 48; ++i) in[std::size_t(i)] = i;
    Device::instance().mark_written(in.data(), 48 * sizeof(int));
    EXPECT_EQ(program.trouble("sum_of_lanes_that_stay", {{1}, {32}}, in.data(), out.data(), 20),
              "");
    EXPECT_EQ(out[0], 190);
    EXPECT_EQ(program.trouble("drops_what_is_undefined", {{1}, {64}}, in.data(), all.data(), 48),
              "");
    EXPECT_EQ(all[7], 8 + 2 * 9);
    EXPECT_EQ(all[46], -(47 + 2 * 48));
  });
}
TEST_P(Right, Histogram) {
  in_every_order([&] {
    Buffer<int> in(512), out(16);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("histogram", {{4}, {128}}, in.data(), out.data()), "");
    for (const int v : out.values()) EXPECT_EQ(v, 32);
  });
}
TEST_P(Right, AllSayTheSame) {
  in_every_order([&] {
    Buffer<int> in(128);
    Blank<int> out(1);
    std::iota(in.begin(), in.end(), 0);
    EXPECT_EQ(program.trouble("all_say_the_same", {{2}, {128}}, in.data(), out.data()), "");
    EXPECT_EQ(out[0], 1);
  });
}
TEST_P(Right, GridBarrier) {
  in_every_order([&] {
    Blank<int> a(5 * 32), out(5 * 32);
    Buffer<unsigned> count(1);
    EXPECT_EQ(program.trouble("grid_barrier", {{5}, {32}, 0, true}, a.data(), count.data(),
                              out.data(), 3),
              "");
    for (const int v : out.values()) EXPECT_EQ(v, 2);
  });
}
TEST_P(Right, CallsWithLocals) {
  in_every_order([&] {
    Buffer<int> in(128, 1);
    Blank<int> out(32);
    EXPECT_EQ(program.trouble("calls_with_locals", {{1}, {32}}, in.data(), out.data()), "");
    for (const int v : out.values()) EXPECT_EQ(v, 8);
  });
}
TEST_P(Right, InPlace) {
  in_every_order([&] {
    Buffer<float> a(1000, 1);
    EXPECT_EQ(program.trouble("in_place", {{3}, {64}}, a.data(), 1000), "");
    for (const float v : a.values()) EXPECT_EQ(v, 3);
  });
}

}  // namespace
}  // namespace attest::emulator
