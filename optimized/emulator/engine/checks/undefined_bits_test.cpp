// Each rule by which undefined bits pass through an instruction, against what follows from the
// meaning of the instruction.
#include "optimized/emulator/engine/checks/undefined_bits.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attest::emulator {
namespace {

struct Row {
  std::string instruction;  // of registers %rd, %fd, ...: only its spelling and immediates matter
  std::vector<u64> undefined, value;
  u64 result;
  u64 width = 0xffffffff;
};

u64 passed(const Row& row) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n"
      ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n"
      ".reg .b64 %d<9>;\n" +
      row.instruction + ";\n}\n";
  const ptx::Module module = ptx::parse(text);
  const ptx::Instruction& i = module.functions.at(0).body.at(0);
  OperandBits in;
  in.count = u32(i.operands.size()) - 1;
  for (u32 n = 0; n < in.count; ++n) {
    in.known[n] = true;
    in.undefined[n] = n < row.undefined.size() ? row.undefined[n] : 0;
    in.value[n] = n < row.value.size() ? row.value[n] : u64(i.operands[n + 1].immediate);
  }
  return undefined_result(i, spell(i).spelling, in) & row.width;
}

constexpr u64 kAll = 0xffffffff;

TEST(UndefinedBits, FollowFromWhatInstructionsMean) {
  const std::vector<Row> rows{
      {"and.b32 %r0, %r1, %r2", {0xff00}, {0, 0x0ff0}, 0x0f00},
      {"and.b32 %r0, %r1, %r2", {0xff, 0xf0}, {0, 0}, 0xf0},
      {"or.b32 %r0, %r1, %r2", {0xff00}, {0, 0x0ff0}, 0xf000},
      {"xor.b32 %r0, %r1, %r2", {0xff00}, {0, 0x0ff0}, 0xff00},
      {"not.b32 %r0, %r1", {0xff00}, {}, 0xff00},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0xca", {0xff, 0xff00}, {0xff00, 0, 0, 0xca}, 0xff00},
      {"shl.b32 %r0, %r1, 8", {0xff}, {}, 0xff00},
      {"shl.b32 %r0, %r1, 40", {0xff}, {}, 0},
      {"shl.b32 %r0, %r1, %r2", {0, 1}, {}, kAll},
      {"shr.u32 %r0, %r1, 8", {0xff00}, {}, 0xff},
      {"shr.u32 %r0, %r1, 16", {0x80000000}, {}, 0x8000},
      {"shr.s32 %r0, %r1, 16", {0x80000000}, {}, 0xffff8000},
      {"shf.l.wrap.b32 %r0, %r1, %r2, 8", {0xff000000, 0xff}, {}, 0xffff},
      {"shf.r.clamp.b32 %r0, %r1, %r2, 8", {0xff, 0xff}, {}, 0xff000000},
      {"prmt.b32 %r0, %r1, %r2, 0x5410", {0xffff0000, 0xff}, {}, 0x00ff0000},
      {"prmt.b32 %r0, %r1, %r2, 0x8880", {0x80}, {}, 0xffffff80},
      {"bfe.u32 %r0, %r1, 4, 8", {0xf00f}, {}, 0},
      {"bfe.u32 %r0, %r1, 4, 8", {0x0ff0}, {}, 0xff},
      {"bfe.s32 %r0, %r1, 4, 8", {0x0800}, {}, 0xffffff80},
      {"bfi.b32 %r0, %r1, %r2, 8, 8", {0xff, 0xff00}, {}, 0xff00},
      {"bfi.b32 %r0, %r1, %r2, 8, 8", {0, 0xffff}, {}, 0xff},
      {"brev.b32 %r0, %r1", {0xff}, {}, 0xff000000},
      {"add.s32 %r0, %r1, %r2", {0x100}, {}, 0xffffff00},
      {"mul.lo.s32 %r0, %r1, %r2", {0x100}, {}, 0xffffff00},
      {"mul.hi.s32 %r0, %r1, %r2", {0x80000000}, {}, kAll},
      {"add.f32 %r0, %r1, %r2", {1}, {}, kAll},
      {"add.rn.bf16x2 %r0, %r1, %r2", {1}, {}, 0xffff},
      {"fma.rn.f16x2 %r0, %r1, %r2, %r3", {0, 0, 0x10000}, {}, 0xffff0000},
      {"max.f16x2 %r0, %r1, %r2", {0x10000}, {}, 0xffff0000},
      {"max.f32 %r0, %r1, %r2", {0x10000}, {}, kAll},
      {"cvt.rn.bf16x2.f32 %r0, %r1, %r2", {1}, {}, 0xffff0000},
      {"cvt.rn.f16x2.f32 %r0, %r1, %r2", {0, 1}, {}, 0xffff},
      {"cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2", {1}, {}, 0xff00},
      {"cvt.rn.satfinite.e5m2x2.f16x2 %h0, %r1", {0xffff}, {}, 0xff},
      {"cvt.rn.f16x2.e4m3x2 %r0, %h1", {0xff00}, {}, 0xffff0000},
      {"cvt.f32.f16 %r0, %h1", {1}, {}, kAll},
      {"cvt.u32.u16 %r0, %h1", {0x8000}, {}, 0x8000},
      {"cvt.s32.s16 %r0, %h1", {0x8000}, {}, 0xffff8000},
      {"cvt.u16.u32 %h0, %r1", {0xffff0000}, {}, 0},
      {"mov.b32 %r0, %r1", {0xf0}, {}, 0xf0},
      {"ex2.approx.f32 %r0, %r1", {0x80}, {}, kAll},
  };
  for (const Row& row : rows) EXPECT_EQ(passed(row), row.result) << row.instruction;
}

}  // namespace
}  // namespace attest::emulator
