// Counters against kernels worked out by hand: executions, sectors, bank conflicts, divergence,
// barriers, operations by unit; and the same totals on every instruction set and number of threads.
#include <gtest/gtest.h>

#include "optimized/emulator/engine/costs.hpp"
#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/engine/spelling.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

class Counting : public testing::TestWithParam<std::tuple<const char*, unsigned>> {
 protected:
  void SetUp() override { start(std::get<0>(GetParam()), std::get<1>(GetParam())); }
  void TearDown() override { choose("avx512"); }

  static void start(const char* isa, unsigned threads) {
    choose(isa, threads);
    DeviceOptions options;
    options.threads = threads;
    options.counters = true;
    Device::instance().configure(options);
  }

  /// What one launch of `kernel` adds to the totals.
  template <class... Arguments>
  static Totals totals(TestProgram& program, const std::string& kernel, const Shape& shape,
                       Arguments... arguments) {
    const Totals before = Device::instance().totals();
    const u64 executed = Device::instance().counts().warp_instructions;
    EXPECT_EQ(program.trouble(kernel, shape, arguments...), "");
    Totals after = Device::instance().totals();
    for (const TotalColumn& column : total_columns()) after.*column.value -= before.*column.value;
    EXPECT_EQ(after.warp_instructions, Device::instance().counts().warp_instructions - executed)
        << kernel;
    return after;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Counting,
                         testing::Combine(testing::Values("baseline", "avx2", "avx512"),
                                          testing::Values(1u, 2u)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param)) + "_" +
                                  std::to_string(std::get<1>(i.param));
                         });

/// A kernel in which lane l makes one access at `base` + l * stride + shift, as `access` writes it.
std::string accessing(const std::string& access, bool shared) {
  std::string text(kHead);
  text +=
      ".visible .entry k(.param .u64 base, .param .u32 stride, .param .u32 shift) {\n"
      ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b16 %h<3>; .shared .align 16 .b8 room[8192];\n"
      "ld.param.u64 %d1, [base]; ld.param.u32 %r1, [stride]; ld.param.u32 %r2, [shift];\n"
      "mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r3, %r1, %r2; mov.u32 %r8, room;\n";
  text += shared ? "add.s32 %r4, %r4, %r8;\n" : "cvt.u64.u32 %d2, %r4; add.s64 %d3, %d1, %d2;\n";
  return text + access + "\nret;\n}\n";
}

struct AccessCase {
  const char* what;
  const char* access;
  int stride, shift, lanes;
  u64 taken, least, bytes;
};

TEST_P(Counting, SectorsOfGlobalMemory) {
  const char* const word = "ld.global.u32 %r5, [%d3];";
  const char* const four = "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d3];";
  const AccessCase cases[] = {
      {"side by side", word, 4, 0, 32, 4, 4, 128},
      {"side by side, not at a sector", word, 4, 4, 32, 5, 4, 128},
      {"every second word", word, 8, 0, 32, 8, 4, 128},
      {"every eighth word", word, 32, 0, 32, 32, 4, 128},
      {"every eighth word, shifted", word, 32, 28, 32, 32, 4, 128},
      {"far apart", word, 128, 0, 32, 32, 4, 128},
      {"the same word", word, 0, 8, 32, 1, 1, 128},
      {"half a warp", word, 4, 0, 16, 2, 2, 64},
      {"three lanes", word, 4, 24, 3, 2, 1, 12},
      {"four words side by side", four, 16, 0, 32, 16, 16, 512},
      {"four words, every second place", four, 32, 0, 32, 32, 16, 512},
      {"a byte each", "ld.global.u8 %h1, [%d3];", 1, 0, 32, 1, 1, 32},
      {"a byte each, across sectors", "ld.global.u8 %h1, [%d3];", 1, 5, 32, 2, 1, 32},
      {"stored words", "st.global.u32 [%d3], %r1;", 8, 0, 32, 8, 4, 128},
      {"generic", "ld.u32 %r5, [%d3];", 8, 0, 32, 8, 4, 128},
      {"updates of one word", "red.global.add.u32 [%d3], %r1;", 0, 0, 32, 1, 1, 128},
  };
  Buffer<u32> memory(4096);
  for (const AccessCase& c : cases) {
    TestProgram program(accessing(c.access, false));
    for (int round = 0; round < 2; ++round) {  // the second time the pattern is known
      const Totals t =
          totals(program, "k", {{1}, {u32(c.lanes)}}, memory.data(), c.stride, c.shift);
      EXPECT_EQ(t.global_sectors, c.taken) << c.what;
      EXPECT_EQ(t.global_sectors_least, c.least) << c.what;
      const bool reads = c.access[0] == 'l' || c.access[0] == 'r';
      EXPECT_EQ(t.global_read_bytes, reads ? c.bytes : 0) << c.what;
      EXPECT_EQ(t.global_written_bytes, c.access[0] == 'l' ? 0 : c.bytes) << c.what;
      EXPECT_EQ(t.shared_bytes + t.shared_passes + t.local_bytes, 0u) << c.what;
    }
  }
}

TEST_P(Counting, PassesOverSharedMemory) {
  const char* const word = "ld.shared.u32 %r5, [%r4];";
  const char* const two = "ld.shared.v2.u32 {%r5, %r6}, [%r4];";
  const char* const four = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r4];";
  const AccessCase cases[] = {
      {"side by side", word, 4, 0, 32, 1, 1, 128},
      {"two ways", word, 8, 0, 32, 2, 1, 128},
      {"four ways", word, 16, 4, 32, 4, 1, 128},
      {"all in one bank", word, 128, 0, 32, 32, 1, 128},
      {"a column of a padded tile", word, 132, 0, 32, 1, 1, 128},
      {"broadcast", word, 0, 64, 32, 1, 1, 128},
      {"sixteen lanes, two ways", word, 128, 0, 2, 2, 1, 8},
      {"bytes of the same words", "ld.shared.u8 %h1, [%r4];", 1, 0, 32, 1, 1, 32},
      {"bytes of one bank", "ld.shared.u8 %h1, [%r4];", 128, 3, 32, 32, 1, 32},
      {"two words side by side", two, 8, 0, 32, 2, 2, 256},
      {"two words, every second place", two, 16, 0, 32, 4, 2, 256},
      {"four words side by side", four, 16, 0, 32, 4, 4, 512},
      {"four words, every second place", four, 32, 0, 32, 8, 4, 512},
      {"four words, broadcast", four, 0, 16, 32, 4, 4, 512},
      {"four words of eight lanes", four, 16, 0, 8, 1, 1, 128},
      {"stored words", "st.shared.u32 [%r4], %r1;", 8, 0, 32, 2, 1, 128},
      {"updates of one word", "atom.shared.add.u32 %r5, [%r4], %r1;", 0, 0, 32, 32, 1, 128},
      {"updates side by side", "atom.shared.add.u32 %r5, [%r4], %r1;", 4, 0, 32, 1, 1, 128},
  };
  Buffer<u32> memory(1);
  for (const AccessCase& c : cases) {
    // What is read was never written, which is not at issue here.
    DeviceOptions options = Device::instance().options();
    options.checks.initcheck = options.checks.racecheck = false;
    Device::instance().configure(options);
    TestProgram program(accessing(c.access, true));
    for (int round = 0; round < 2; ++round) {
      const Totals t =
          totals(program, "k", {{1}, {u32(c.lanes)}}, memory.data(), c.stride, c.shift);
      EXPECT_EQ(t.shared_passes, c.taken) << c.what;
      EXPECT_EQ(t.shared_passes_least, c.least) << c.what;
      EXPECT_EQ(t.shared_bytes, c.bytes) << c.what;
      EXPECT_EQ(t.global_sectors + t.global_read_bytes + t.global_written_bytes, 0u) << c.what;
    }
  }
}

TEST_P(Counting, GenericAddressesAreCountedWhereTheyLead) {
  TestProgram program(std::string(kHead) + R"(
.visible .entry k(.param .u64 to) {
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<2>;
  .shared .align 16 .b8 room[256]; .local .align 16 .b8 own[16];
  ld.param.u64 %d1, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  mov.u64 %d3, room; cvta.shared.u64 %d3, %d3;
  mov.u64 %d4, own; cvta.local.u64 %d4, %d4;
  setp.lt.u32 %p1, %r1, 8;
  add.s64 %d5, %d1, %d2; add.s64 %d6, %d3, %d2;
  selp.b64 %d7, %d5, %d6, %p1;
  st.u32 [%d7], %r1;
  st.u32 [%d4], %r1;
  ret;
})");
  Buffer<u32> memory(8);
  const Totals t = totals(program, "k", {{1}, {32}}, memory.data());
  EXPECT_EQ(t.global_written_bytes, 8 * 4u);
  EXPECT_EQ(t.global_sectors, 1u);
  EXPECT_EQ(t.shared_bytes, 24 * 4u);
  EXPECT_EQ(t.shared_passes, 1u);
  EXPECT_EQ(t.local_bytes, 32 * 4u);
}

constexpr std::string_view kOperations = R"(
.visible .entry k(.param .u64 to) {
  .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %g<4>; .reg .b16 %h<4>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 5;
  cvt.rn.f32.u32 %f1, %r1;
@%p1 fma.rn.f32 %f2, %f1, %f1, %f1;
  add.f32 %f3, %f1, %f1;
  mul.f32 %f3, %f1, %f1;
  max.f32 %f3, %f1, %f1;
  ex2.approx.f32 %f4, %f1;
  cvt.f64.f32 %g1, %f1;
  fma.rn.f64 %g2, %g1, %g1, %g1;
  fma.rn.f16x2 %r2, %r1, %r1, %r1;
  bar.sync 0;
  bar.warp.sync -1;
  bar.sync 0;
@%p1 bra SMALL;
  add.s32 %r3, %r1, 1;
SMALL:
  ret;
})";

TEST_P(Counting, OperationsByUnit) {
  TestProgram program(std::string(kHead) + std::string(kOperations));
  Buffer<u32> memory(1);
  const Totals t = totals(program, "k", {{3}, {64}}, memory.data());
  constexpr u64 warps = 6, threads = 3 * 64, small = 3 * 5;
  EXPECT_EQ(t.f32_flops, 2 * small + 2 * threads);
  EXPECT_EQ(t.special_operations, threads);
  EXPECT_EQ(t.f64_flops, 2 * threads);
  EXPECT_EQ(t.f16_flops, 4 * threads);
  EXPECT_EQ(t.conversions, 2 * threads);
  EXPECT_EQ(t.moves, threads);
  EXPECT_EQ(t.integer_operations, 2 * threads + (threads - small));  // setp, max, add.s32
  EXPECT_EQ(t.control, 5 * threads);  // three barriers, the branch, ret
  EXPECT_EQ(t.barriers, 2 * warps);
  EXPECT_EQ(t.divergent_branches, 3u);  // the first warp of each block
  // Seventeen instructions, of which the second warps of the blocks run all.
  EXPECT_EQ(t.warp_instructions, 17 * warps);
  EXPECT_EQ(t.thread_instructions, 17 * threads - (threads - small) - small);
  EXPECT_EQ(t.idle_lanes, 32 * t.warp_instructions - t.thread_instructions);
}

TEST_P(Counting, LanesThatWaitForOthersExecuteOnce) {
  // The lanes below 5 stand at the shuffle first, since it has the lowest pc.
  TestProgram program(std::string(kHead) + R"(
.visible .entry k(.param .u64 to) {
  .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 5;
  bra.uni BODY;
GATHER:
  shfl.sync.idx.b32 %r2, %r1, 7, 31, -1;
  ret;
BODY:
@%p1 bra GATHER;
  add.s32 %r3, %r1, 1;
  bra.uni GATHER;
})");
  Buffer<u32> memory(1);
  const Totals t = totals(program, "k", {{1}, {32}}, memory.data());
  EXPECT_EQ(t.warp_instructions, 8u);
  EXPECT_EQ(t.thread_instructions, 4 * 32u + 2 * 27u + 2 * 32u);
  EXPECT_EQ(t.moves, 2 * 32u);  // mov, shfl
}

TEST_P(Counting, LinesAndBlocks) {
  const std::string name =
      std::string("lines_") + std::get<0>(GetParam()) + std::to_string(std::get<1>(GetParam()));
  TestProgram program(std::string(kHead) + ".visible .entry " + name + R"((.param .u32 n) {
  .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
LOOP:
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
@%p1 bra LOOP;
  setp.eq.u32 %p2, %r1, 77;
@!%p2 bra DONE;
  add.s32 %r2, %r2, 2;
DONE:
  ret;
})");
  const auto mine = [&]() -> KernelProfile {
    for (const KernelProfile& kernel : Device::instance().profile())
      if (kernel.kernel == name) return kernel;
    return {};
  };
  EXPECT_EQ(program.trouble(name, {{2}, {32}}, 10), "");
  KernelProfile kernel = mine();
  EXPECT_EQ(kernel.launches, 1u);
  EXPECT_EQ(kernel.blocks, 5u);  // entry, LOOP, behind the branch, behind the next one, DONE
  EXPECT_EQ(kernel.blocks_covered, 4u);
  ASSERT_EQ(kernel.lines.size(), 8u);
  for (std::size_t i = 0; i < 3; ++i) {  // the loop is hottest
    EXPECT_EQ(kernel.lines[i].totals.warp_instructions, 20u);
    EXPECT_EQ(kernel.lines[i].place, "PTX line " + std::to_string(9 + i));
  }
  EXPECT_EQ(kernel.lines[3].totals.warp_instructions, 2u);
  EXPECT_EQ(program.trouble(name, {{1}, {32}}, 77), "");
  kernel = mine();
  EXPECT_EQ(kernel.launches, 2u);
  EXPECT_EQ(kernel.blocks_covered, 5u);
  EXPECT_EQ(kernel.lines[0].totals.warp_instructions, 97u);
  Totals sum;
  for (const LineProfile& line : kernel.lines) sum += line.totals;
  EXPECT_EQ(sum, kernel.totals);
}

TEST_P(Counting, TotalsAreTheSameEverywhere) {
  static std::vector<Totals> first;
  TestProgram program(text_of(ATTEST_PROGRAMS_PTX));
  Buffer<float> a(4096), b(4096), c(4096);
  Buffer<int> out(4096), order(64);
  for (int i = 0; i < 64; ++i) order[i] = (i * 37 + 11) % 64;
  const std::vector<Totals> all{
      totals(program, "vector_add", {{8}, {128}}, a.data(), b.data(), c.data(), 1000),
      totals(program, "block_sum", {{4}, {256}}, out.data(), out.data() + 1024),
      totals(program, "matmul", {{4, 4}, {16, 16}}, a.data(), b.data(), c.data(), 64),
      totals(program, "collatz", {{4}, {64}}, out.data()),
      totals(program, "diverge", {{1}, {96}}, out.data(), 90),
      totals(program, "recursion", {{1}, {64}}, out.data()),
      totals(program, "indirect", {{1}, {64}}, out.data()),
      totals(program, "local_array", {{1}, {64}}, order.data(), out.data()),
      totals(program, "warp_operations", {{1}, {64}}, out.data()),
  };
  if (first.empty()) first = all;
  EXPECT_EQ(all, first);
  EXPECT_EQ(all[0].global_written_bytes, 4000u);
  EXPECT_EQ(all[0].f32_flops, 1000u);
  EXPECT_EQ(all[2].f32_flops, 2u * 64 * 64 * 64);
  EXPECT_EQ(all[2].barriers, 16u * 8 * 8);  // blocks, warps, two for each of four tiles
}

TEST(CountersOff, NothingIsCountedUnlessAskedFor) {
  choose("avx512");
  TestProgram program(std::string(kHead) + std::string(kOperations));
  Buffer<u32> memory(1);
  const Totals before = Device::instance().totals();
  EXPECT_EQ(program.trouble("k", {{1}, {64}}, memory.data()), "");
  EXPECT_EQ(Device::instance().totals(), before);
}

TEST(Costs, EveryOpcodeHasOne) {
  for (unsigned i = 0; i < unsigned(Opcode::kCount); ++i) {
    std::string name(row_of(Opcode(i)).name);
    if (name.ends_with('_')) name.pop_back();
    EXPECT_TRUE(has_cost(name)) << "add a row for '" << name << "' to the table in costs.cpp";
  }
}

TEST(Costs, TensorCoresByShape) {
  ptx::Instruction mma;
  mma.opcode = "mma";
  mma.modifiers = {"sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"};
  EXPECT_EQ(cost_of(mma).unit, &Totals::tensor_flops);
  EXPECT_EQ(cost_of(mma).per_warp, 2u * 16 * 8 * 16);
  EXPECT_EQ(cost_of(mma).per_lane, 0u);
  ptx::Instruction load;
  load.opcode = "wmma";
  load.modifiers = {"load", "a", "sync", "aligned", "row", "m16n16k16", "global", "f16"};
  EXPECT_EQ(cost_of(load).unit, &Totals::memory);
  EXPECT_TRUE(cost_of(load).reads);
}

}  // namespace
}  // namespace attest::emulator
