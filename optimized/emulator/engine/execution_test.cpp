// Whole kernels as nvcc compiles them: divergence, barriers, shuffles, votes, atomics, calls, local
// memory, printf. Each in every way and on one and two host threads.
#include <cmath>
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

class Execution : public testing::TestWithParam<std::tuple<Way, unsigned>> {
 protected:
  void SetUp() override { choose(std::get<0>(GetParam()), {.threads = std::get<1>(GetParam())}); }
  void TearDown() override { choose("avx512"); }
  TestProgram program{text_of(ATTEST_PROGRAMS_PTX)};
};
INSTANTIATE_TEST_SUITE_P(All, Execution,
                         testing::Combine(testing::ValuesIn(every_way()), testing::Values(1u, 2u)),
                         [](const auto& i) {
                           return print(std::get<0>(i.param)) + "_" +
                                  std::to_string(std::get<1>(i.param));
                         });

TEST_P(Execution, VectorAddWithATail) {
  constexpr int n = 1000;
  Buffer<float> a(n), b(n), c(n, -1);
  for (int i = 0; i < n; ++i) a[i] = float(i), b[i] = 0.5f * float(i);
  EXPECT_EQ(program.trouble("vector_add", {{8}, {128}}, a.data(), b.data(), c.data(), n), "");
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], 1.5f * float(i)) << i;
}

TEST_P(Execution, BlockSumByShuffles) {
  Buffer<int> in(4 * 256), out(4);
  std::iota(in.begin(), in.end(), 1);
  EXPECT_EQ(program.trouble("block_sum", {{4}, {256}}, in.data(), out.data()), "");
  for (int b = 0; b < 4; ++b)
    EXPECT_EQ(out[b], std::accumulate(in.data() + 256 * b, in.data() + 256 * (b + 1), 0));
}

TEST_P(Execution, TiledMatrixProduct) {
  constexpr int n = 64;
  Buffer<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = float(i % 13 - 6), b[i] = float(i % 7 - 3);
  EXPECT_EQ(program.trouble("matmul", {{4, 4}, {16, 16}}, a.data(), b.data(), c.data(), n), "");
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];  // small integers: exact
      ASSERT_EQ(c[y * n + x], sum);
    }
  }
}

TEST_P(Execution, CollatzDiverges) {
  Buffer<int> out(256);
  EXPECT_EQ(program.trouble("collatz", {{4}, {64}}, out.data()), "");
  for (unsigned i = 0; i < 256; ++i) {
    unsigned n = i + 1;
    int steps = 0;
    for (; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
    ASSERT_EQ(out[i], steps) << i;
  }
}

int diverge_on_host(int t) {
  int r = 0;
  for (int i = 0; i < t; ++i) {
    if (i % 3 == 0) {
      if (t % 2)
        r += i;
      else
        r -= i;
      if (r > 100) break;
      continue;
    }
    switch ((i + t) % 5) {
      case 0:
        r += 7;
        break;
      case 1:
        r ^= t;
        break;
      case 2:
        r = int(unsigned(r) * 3u + 1u);
        break;
      case 3:
        r -= 11;
        break;
      default:
        r += i & t;
    }
  }
  return r;
}
TEST_P(Execution, NestedBranchesAndEarlyExits) {
  Buffer<int> out(96, -7);
  EXPECT_EQ(program.trouble("diverge", {{1}, {96}}, out.data(), 90), "");
  for (int t = 0; t < 96; ++t) ASSERT_EQ(out[t], t < 90 ? diverge_on_host(t) : -7) << t;
}

int fibonacci_on_host(int n) {
  return n < 2 ? n : fibonacci_on_host(n - 1) + fibonacci_on_host(n - 2);
}
TEST_P(Execution, Recursion) {
  Buffer<int> out(64);
  EXPECT_EQ(program.trouble("recursion", {{1}, {64}}, out.data()), "");
  for (int t = 0; t < 64; ++t) ASSERT_EQ(out[t], fibonacci_on_host(t % 12)) << t;
}

TEST_P(Execution, CallsThroughAddresses) {
  Buffer<int> out(64);
  EXPECT_EQ(program.trouble("indirect", {{1}, {64}}, out.data()), "");
  for (int t = 0; t < 64; ++t) {
    const int wanted[] = {2 * t, t * t, t + (t ^ 1)};
    EXPECT_EQ(out[t], wanted[t / 2 % 3]) << t;
  }
}

TEST_P(Execution, VirtualFunctions) {
  Buffer<int> out(32);
  EXPECT_EQ(program.trouble("virtual_calls", {{1}, {32}}, out.data()), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(out[t], t % 2 ? t + 5 : t * 7);
}

struct Big {
  int a[10];
  double d;
};
TEST_P(Execution, StructuresByValue) {
  Buffer<double> out(32);
  Big b{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0.25};
  EXPECT_EQ(program.trouble("structs", {{1}, {32}}, b, out.data()), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(out[t], (3 + 10 - t % 10) % 10 + 0.25 * (t % 10)) << t;
}

TEST_P(Execution, LocalArraysIndexedAtRunTime) {
  Buffer<int> order(64), out(64);
  for (int i = 0; i < 64; ++i) order[i] = (i * 37 + 11) % 64;
  EXPECT_EQ(program.trouble("local_array", {{1}, {64}}, order.data(), out.data()), "");
  for (int t = 0; t < 64; ++t) {
    int data[64];
    for (int i = 0; i < 64; ++i) data[order[i]] = i * (t + 1);
    int sum = 0;
    for (int x : data) sum = int(unsigned(sum) * 31u + unsigned(x));
    ASSERT_EQ(out[t], sum) << t;
  }
}

TEST_P(Execution, Atomics) {
  constexpr unsigned threads = 256;
  Buffer<unsigned> u({0, 0, 9999, 0, ~0u, 0, 0, 5, 7, 0});
  Buffer<float> f(1);
  Buffer<unsigned long long> l(1);
  Buffer<int> s(1);
  Buffer<double> d(1);
  EXPECT_EQ(
      program.trouble("atomics", {{4}, {64}}, u.data(), f.data(), l.data(), s.data(), d.data()),
      "");
  unsigned sum = 0, largest = 0, exclusive = 0, inc = 0, dec = 5;
  for (unsigned t = 0; t < threads; ++t) {
    sum += t, largest = std::max(largest, t * 7 % 1000), exclusive ^= t;
    inc = inc >= 9 ? 0 : inc + 1;
    dec = dec == 0 || dec > 9 ? 9 : dec - 1;
  }
  EXPECT_EQ(u.values(), (std::vector<unsigned>{sum, largest, 5000 - 255, ~0u, 0xffff0000u,
                                               exclusive, inc, dec, 7 + 3 * threads, 64}));
  EXPECT_EQ(f[0], 256.0f);
  EXPECT_EQ(l[0], threads * (1ull << 33));
  EXPECT_EQ(s[0], -255);
  EXPECT_EQ(d[0], 128.0);
}

TEST_P(Execution, WarpOperations) {
  Buffer<unsigned> out(64 * 12);
  EXPECT_EQ(program.trouble("warp_operations", {{1}, {64}}, out.data()), "");
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned w = t / 32 * 32, l = t % 32;
    const unsigned* o = out.data() + t * 12;
    unsigned thirds = 0, fifth = 0;
    for (unsigned i = 0; i < 32; ++i)
      thirds |= unsigned((w + i) % 3 == 0) << i, fifth |= unsigned((w + i) / 5 == t / 5) << i;
    EXPECT_EQ(o[0], thirds);
    EXPECT_EQ(o[1], (w == 32 ? 1u : 0u) + 2u);
    EXPECT_EQ(o[2], fifth);
    EXPECT_EQ(o[3], 0xffffffffu + 1u);
    unsigned sum = 0, exclusive = 0;
    for (unsigned i = 0; i < 32; ++i) sum += w + i, exclusive ^= w + i;
    EXPECT_EQ(o[4], sum + w + 31 + exclusive);
    const unsigned up = l < 3 ? t : t - 3, down = l % 16 + 2 < 16 ? t + 2 : t;
    EXPECT_EQ(o[5], (w + l / 8 * 8 + 5) + 100 * up + 10000 * down) << t;
    EXPECT_EQ(o[6], t % 2 ? 0xaaaau : 8u) << t;
    EXPECT_EQ(o[7], 13u);
    EXPECT_EQ(o[8], 1u);
    EXPECT_EQ(int(o[9]), int(w + l % 2) - 40);
    EXPECT_EQ(
        o[10], (t ^ 9) + unsigned(t ? __builtin_clz(t) : 32) + [&] {
          unsigned r = 0;
          for (unsigned i = 0; i < 32; ++i) r |= ((t >> i) & 1) << (31 - i);
          return r;
        }() + unsigned(__builtin_ffs(int(t))));
    const unsigned bytes[8] = {t & 255, 0, 0, 0, 4, 3, 2, 1};
    const unsigned permuted = bytes[1] | bytes[5] << 8 | bytes[0] << 16 | bytes[4] << 24;
    EXPECT_EQ(o[11], permuted + ((t * 77) << 7 | t >> 25));
  }
}

TEST_P(Execution, ShufflesFromAbsentLanesDeliverPoison) {
  Buffer<unsigned> ended(32, 77), unnamed(32, 77);
  EXPECT_EQ(
      program.trouble("shuffles_from_absent_lanes", {{1}, {32}}, ended.data(), unnamed.data()), "");
  for (unsigned t = 0; t < 32; ++t) {
    EXPECT_EQ(ended[t], t < 4 ? t + 16 : t < 16 ? ~0u : t < 20 ? t : 77) << t;
    EXPECT_EQ(unnamed[t], t < 8 ? t + 8 : t < 16 ? ~0u : t < 24 ? t + 8 : t) << t;
  }
}

// Reads before any write: registers, local memory, and both in a function whose first call leaves
// its frame and its local memory dirty; blocks after the first find what that one left.
constexpr const char* kReadsBeforeWrites = R"(.version 8.7
.target sm_80
.address_size 64
.func (.reg .b64 %sum) dirty(.reg .b64 %x) {
.local .align 8 .b8 room[8];
.reg .b64 %r, %old;
ld.local.u64 %old, [room];
and.b64 %sum, %old, %r;
mov.b64 %r, %x;
st.local.u64 [room], %r;
ret;
}
.visible .entry k(.param .u64 to) {
.local .align 8 .b8 room[8];
.reg .b64 %out, %wide, %at, %from;
.reg .b32 %narrow, %t, %n, %i;
ld.param.u64 %out, [to];
mov.u32 %t, %ctaid.x;
mov.u32 %n, %ntid.x;
mov.u32 %i, %tid.x;
mad.lo.u32 %t, %t, %n, %i;
mad.wide.u32 %out, %t, 40, %out;
st.global.u64 [%out], %wide;
cvt.u64.u32 %at, %narrow;
st.global.u64 [%out+8], %at;
ld.local.u64 %from, [room];
st.global.u64 [%out+16], %from;
st.local.u64 [room], %out;
call (%from), dirty, (%out);
st.global.u64 [%out+24], %from;
call (%from), dirty, (%out);
st.global.u64 [%out+32], %from;
ret;
})";

TEST_P(Execution, WhatWasNeverWrittenReadsAsPoison) {
  TestProgram reads(kReadsBeforeWrites);
  constexpr unsigned kThreads = 48, kBlocks = 3;
  Buffer<std::uint64_t> out(5 * kThreads * kBlocks, 1);
  EXPECT_EQ(reads.trouble("k", {{kBlocks}, {kThreads}}, out.data()), "");
  for (unsigned t = 0; t < kThreads * kBlocks; ++t) {
    for (unsigned n = 0; n < 5; ++n)
      EXPECT_EQ(out[5 * t + n], n == 1 ? 0xffffffffu : ~std::uint64_t{0}) << t << " " << n;
  }
}

TEST_P(Execution, NamedBarriersOrderProducerAndConsumer) {
  Buffer<int> out(64);
  EXPECT_EQ(program.trouble("named_barriers", {{1}, {64}}, out.data()), "");
  for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], t < 32 ? 0 : 285) << t;
}

TEST_P(Execution, LanesThatSpinStarveNobody) {
  Buffer<int> lock(1), count(1);
  EXPECT_EQ(program.trouble("spin_lock", {{4}, {64}}, lock.data(), count.data()), "");
  EXPECT_EQ(count[0], 256);
  Buffer<int> flag(1), out(32);
  EXPECT_EQ(program.trouble("spin_forever_for_other_lane", {{1}, {32}}, flag.data(), out.data()),
            "");
  EXPECT_EQ(out.values(), std::vector<int>(32, 1));
}

TEST_P(Execution, BarrierOverTheGrid) {
  Buffer<unsigned> arrived(1);
  Buffer<int> values(100), out(100 * 64);
  EXPECT_EQ(program.trouble("grid_barrier", {{100}, {64}, 0, true}, arrived.data(), values.data(),
                            out.data()),
            "");
  EXPECT_EQ(out.values(), std::vector<int>(100 * 64, 5050));
}

TEST_P(Execution, ModuleVariables) {
  Buffer<float> out(32);
  EXPECT_EQ(program.trouble("variables", {{1}, {32}}, out.data()), "");
  EXPECT_EQ(program.trouble("variables", {{1}, {32}}, out.data()), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(out[t], float(t % 4 + 1));
  const auto counter = Device::instance().find_variable(program.module(), "counter");
  ASSERT_EQ(counter.bytes, 4u);
  EXPECT_EQ(*static_cast<int*>(counter.base), 43);
  EXPECT_EQ(Device::instance().find_variable(program.module(), "nowhere").base, nullptr);
}

TEST_P(Execution, DynamicSharedMemoryFollowsStatic) {
  Buffer<int> out(128);
  EXPECT_EQ(program.trouble("dynamic_shared", {{1}, {128}, 512}, out.data()), "");
  for (int t = 0; t < 128; ++t) EXPECT_EQ(out[t], 127 - t + 1000);
  EXPECT_EQ(Device::instance().facts(program.module(), "dynamic_shared").static_shared_bytes, 32u);
}

TEST_P(Execution, CarriesOf128BitArithmetic) {
  Buffer<std::uint64_t> a(33), out(64);
  for (std::size_t i = 0; i < 33; ++i) a[i] = 0x9e3779b97f4a7c15u * (i + 1) ^ (i % 3 ? 0 : ~0ull);
  EXPECT_EQ(program.trouble("wide_arithmetic", {{1}, {32}}, a.data(), out.data()), "");
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned __int128 p = static_cast<unsigned __int128>(a[i]) * a[i + 1] + a[i];
    EXPECT_EQ(out[2 * i], std::uint64_t(p));
    EXPECT_EQ(out[2 * i + 1], std::uint64_t(p >> 64));
  }
}

TEST_P(Execution, GenericAddressesReachEverySpace) {
  for (int which = 0; which < 3; ++which) {
    Buffer<int> out(32, 7);
    EXPECT_EQ(program.trouble("generic_access", {{1}, {32}}, out.data(), which), "");
    for (int t = 0; t < 32; ++t)
      EXPECT_EQ(out[t], which == 0 ? 107 : which == 1 ? 131 - t : t % 4 + 101) << which;
  }
}

TEST_P(Execution, PrintfWritesToStdoutInOrderOfBlocks) {
  Buffer<char> word({'o', 'n', 'e', 0});
  testing::internal::CaptureStdout();
  EXPECT_EQ(program.trouble("says", {{2}, {32}}, 3, word.data()), "");
  EXPECT_EQ(
      testing::internal::GetCapturedStdout(),
      "block 0 thread 0:  4.50 one 123456789abc z%\nblock 0 thread 1:  4.50 one 123456789abc z%\n"
      "block 1 thread 0:  4.50 one 123456789abc z%\nblock 1 thread 1:  4.50 one 123456789abc z%\n");
}

TEST_P(Execution, PrintfFloodIsCut) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(program.trouble("floods", {{1}, {32}}, 1000), "");
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_LE(text.size(), std::size_t{1} << 20);
  EXPECT_GT(text.size(), (std::size_t{1} << 20) - 200);
}

TEST_P(Execution, LaunchesAreRefusedLikeCuda) {
  Buffer<int> out(32);
  using Status = Device::Status;
  EXPECT_EQ(program.run("collatz", {{0}, {32}}, out.data()), Status::invalid_configuration);
  EXPECT_EQ(program.run("collatz", {{1}, {1025}}, out.data()), Status::invalid_configuration);
  EXPECT_EQ(program.run("collatz", {{1}, {1, 1, 65}}, out.data()), Status::invalid_configuration);
  EXPECT_EQ(program.run("collatz", {{1}, {32}, 300 * 1024}, out.data()),
            Status::invalid_configuration);
  EXPECT_EQ(program.run("no_such_kernel", {{1}, {32}}, out.data()), Status::invalid_configuration);
  EXPECT_TRUE(Device::instance().findings().empty());
}

}  // namespace
}  // namespace attest::emulator
