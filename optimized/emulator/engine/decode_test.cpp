// What the decoder makes of programs: slot reuse, frames, and text that parses but makes no sense,
// which must become a finding when it is reached and nothing worse.
#include <gtest/gtest.h>

#include <string>

#include "optimized/emulator/engine/code.hpp"
#include "optimized/emulator/engine/liveness.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 "
         "out)\n{\n.reg .b32 %r<99>;\n.reg .b64 %rd<99>;\n"
         ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .f32 %f<99>;\nld.param.u64 %rd1, [out];\n" +
         body + "\nret;\n}\n";
}

TEST(Liveness, ASequenceOfTemporariesSharesSlots) {
  std::string body = "mov.u32 %r0, %tid.x;\n";
  for (int i = 1; i < 90; ++i)
    body += "add.s32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) + ", 1;\n";
  body += "st.global.u32 [%rd1], %r89;";
  const ptx::Module m = ptx::parse(kernel(body));
  const SlotAssignment slots = assign_slots(*m.find("k"), RegisterUses(*m.find("k")));
  EXPECT_LE(slots.narrow, 2u);
  EXPECT_EQ(slots.wide, 1u);
}

TEST(Liveness, AValueLivesAroundALoop) {
  // %r2 is set before the loop and read in it after %r3 .. %r5 have come and gone.
  const std::string body =
      "mov.u32 %r2, 7;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\nL: add.s32 %r3, %r6, 1;\nadd.s32 %r4, "
      "%r3, 1;\nadd.s32 %r5, %r4, %r2;\n"
      "add.s32 %r7, %r7, %r5;\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 3;\n@%p1 bra "
      "L;\nst.global.u32 [%rd1], %r7;";
  choose("");
  TestProgram program(kernel(body));
  Buffer<int> out(1);
  EXPECT_EQ(program.trouble("k", {{1}, {1}}, out.data()), "");
  EXPECT_EQ(out[0], 3 * (2 + 7) + 3);
}

TEST(Liveness, AGuardedWriteKeepsTheOtherLanesValue) {
  const std::string body =
      "mov.u32 %r0, %tid.x;\nmov.u32 %r1, 5;\nsetp.gt.u32 %p1, %r0, 3;\n@%p1 mov.u32 %r1, "
      "9;\nmul.wide.u32 %rd2, %r0, 4;\n"
      "add.u64 %rd2, %rd1, %rd2;\nst.global.u32 [%rd2], %r1;";
  choose("");
  TestProgram program(kernel(body));
  Buffer<int> out(8);
  EXPECT_EQ(program.trouble("k", {{1}, {8}}, out.data()), "");
  EXPECT_EQ(out.values(), (std::vector<int>{5, 5, 5, 5, 9, 9, 9, 9}));
}

TEST(Nonsense, IsReportedWhenReached) {
  const char* const bodies[] = {
      "add.s32 %p1, %r1, %r2;",
      "add.s32 %r1, %p1, %r2;",
      "add.s32 %r1, %r2;",
      "add.s32 %r1, %r2, %r3, %r4;",
      "fma.f16.f32 %r1, %r2, %r3, %r4;",
      "mov.b64 {%r1, 5}, %rd1;",
      "mov.b64 {%r1, %r2, %r3}, %rd1;",
      "@%r1 add.s32 %r1, %r2, %r3;",
      "setp.s32 %p1, %r1, %r2;",
      "setp.lt %p1, %r1, %r2;",
      "setp.lt.s32 %r1|%r2, %r1, %r2;",
      "ld.global.pred %p1, [%rd1];",
      "ld.global.v4.u32 {%r1, %r2}, [%rd1];",
      "st.global.u32 [%rd1], {%r1, %r2};",
      "atom.global.add.u32 %r1, [%rd1];",
      "atom.global.cas.f32 %r1, [%rd1], %r2, %r3;",
      "shfl.sync.bfly.b32 %r1, %r2, 1;",
      "shfl.bfly.b32 %r1, %r2, 1, 31;",
      "bar.red.popc.u32 %r1, 0;",
      "bar.sync 99;",
      "vote.sync.ballot.b32 %r1, %r2, -1;",
      "cvt.rn.f32.pred %f1, %p1;",
      "selp.b32 %r1, %r2, %r3, %r4;",
      "cvta.to.global.u64 %p1, %rd1;",
      "mma.sync.aligned.m16n8k12.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, {%f1,%f2,%f3,%f4};",
      "mul.wide.s64 %rd2, %rd1, %rd1;",
      "nonsense.b32 %r1;",
      "mov.u32 %r1, %clusterid.q;",
      "call.uni (%r1), k, (%r1, %r2);",
      "ld.param.u32 %r1, [out+6];",
      "alloca.u64 %rd2, 99999999;",
  };
  choose("");
  for (const char* body : bodies) {
    std::string text = kernel(body);
    try {
      TestProgram program(text);
      Buffer<int> out(1);
      EXPECT_EQ(program.run("k", {{1}, {32}}, out.data()), Device::Status::faulted) << body;
      EXPECT_EQ(Device::instance().findings().size(), 1u) << body;
    } catch (const ptx::SyntaxError&) {
      // Refused earlier: as good.
    }
    Device::instance().reset_findings();
  }
}

TEST(Frames, FactsOfAKernel) {
  choose("");
  TestProgram program(
      kernel(".local .align 16 .b8 room[96];\n.shared .align 4 .b8 box[100];\nmov.u32 %r1, "
             "box;\nmov.u64 %rd2, room;\nst.local.u32 [%rd2], %r1;"));
  const Device::KernelFacts facts = Device::instance().facts(program.module(), "k");
  EXPECT_EQ(facts.local_bytes, 96u);
  EXPECT_EQ(facts.static_shared_bytes, 100u);
  EXPECT_EQ(facts.parameter_bytes, (std::vector<std::uint32_t>{8}));
  EXPECT_EQ(facts.max_threads_per_block, 1024u);
}

TEST(Memory, AllocationsAreAlignedPoisonedAndApart) {
  Device& device = Device::instance();
  auto* a = static_cast<unsigned char*>(device.allocate(100));
  auto* b = static_cast<unsigned char*>(device.allocate(100));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(a[0], 0xff);
  EXPECT_EQ(a[99], 0xff);
  EXPECT_GE(std::abs(a - b), 100 + 256);
  EXPECT_EQ(device.find_allocation(a + 99).base, a);
  EXPECT_EQ(device.find_allocation(a + 99).bytes, 100u);
  EXPECT_EQ(device.find_allocation(a + 100).base, nullptr);
  EXPECT_FALSE(device.release(a + 1));
  EXPECT_TRUE(device.release(a));
  EXPECT_TRUE(device.release(b));
  EXPECT_EQ(device.allocate(std::size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace attest::emulator
