// The grammar, on hand-written pieces: what each spelling becomes.
#include <gtest/gtest.h>

#include <bit>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {
namespace {

using Kind = Operand::Kind;

Module module_of(const std::string& text) {
  return parse(".version 9.0\n.target sm_80\n.address_size 64\n" + text);
}
/// The body of an entry with registers %r, %f, %rd, %p and the given statements.
Function body_of(const std::string& statements) {
  return module_of(
             ".global .align 8 .b8 table[64];\n"
             ".visible .entry k(.param .u64 k_param_0) {\n"
             ".reg .b32 %r<10>; .reg .f32 %f<10>; .reg .b64 %rd<10>; .reg .pred %p<5>;\n"
             ".shared .align 4 .b8 tile[128];\n" +
             statements + "}")
      .functions.at(0);
}
const std::string& name_of(const Function& function, Register reg) {
  return function.registers.at(reg).name;
}

TEST(Parser, ReadsHeader) {
  const Module module = parse(".version 8.7 .target sm_90a, debug .address_size 64");
  EXPECT_EQ(module.version, "8.7");
  EXPECT_EQ(module.target, "sm_90a");
}

TEST(Parser, ReadsOperandsOfEveryKind) {
  const Function f = body_of(
      "mov.u32 %r1, %tid.x;\n"
      "setp.ne.s32 %p1|%p2, %r1, -5;\n"
      "@!%p1 st.global.v2.f32 [%rd1+-8], {%f1, 0f3F800000};\n"
      "ld.shared.f32 %f2, [tile+4];\n"
      "mov.u64 %rd2, table;\n"
      "shfl.sync.bfly.b32 _|%p3, %r1, 0x1F, 017, 0b11;\n"
      "selp.f32 %f1, %f2, %f1, !%p2;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
      "[%rd2, {%r2, %r3}], [%r4];\n");
  ASSERT_EQ(f.body.size(), 9U);
  EXPECT_EQ(f.body[0].operands[1].kind, Kind::special);
  EXPECT_EQ(f.body[0].operands[1].name, "tid.x");
  EXPECT_EQ(name_of(f, f.body[1].operands[0].reg), "%p1");
  EXPECT_EQ(name_of(f, f.body[1].operands[0].second), "%p2");
  EXPECT_EQ(f.body[1].operands[2].immediate, -5);
  const Instruction& store = f.body[2];
  EXPECT_EQ(name_of(f, store.guard), "%p1");
  EXPECT_TRUE(store.guard_negated);
  EXPECT_EQ(store.modifiers, (std::vector<std::string>{"global", "v2", "f32"}));
  EXPECT_EQ(store.operands[0].kind, Kind::address);
  EXPECT_EQ(name_of(f, store.operands[0].reg), "%rd1");
  EXPECT_EQ(store.operands[0].immediate, -8);
  EXPECT_EQ(store.operands[1].kind, Kind::vector);
  EXPECT_TRUE(store.operands[1].elements[1].float_literal);
  EXPECT_EQ(store.operands[1].elements[1].immediate, 0x3F800000);
  EXPECT_EQ(f.body[3].operands[1].name, "tile");
  EXPECT_EQ(f.body[3].operands[1].immediate, 4);
  EXPECT_EQ(f.body[4].operands[1].kind, Kind::symbol);
  EXPECT_EQ(f.body[4].operands[1].name, "table");
  const Instruction& shuffle = f.body[5];
  EXPECT_EQ(shuffle.operands[0].kind, Kind::sink);
  EXPECT_EQ(name_of(f, shuffle.operands[0].second), "%p3");
  EXPECT_EQ(shuffle.operands[2].immediate, 31);
  EXPECT_EQ(shuffle.operands[3].immediate, 15);
  EXPECT_EQ(shuffle.operands[4].immediate, 3);
  EXPECT_TRUE(f.body[6].operands[3].negated);
  EXPECT_EQ(f.body[7].modifiers[6], "mbarrier::complete_tx::bytes");
  EXPECT_EQ(f.body[7].operands[1].elements.size(), 2U);
  EXPECT_EQ(f.body[8].opcode, "ret");  // implied by the closing brace
}

TEST(Parser, GivesFloatLiteralsTheWidthOfTheirInstruction) {
  const Function f = body_of(
      "mov.f32 %f1, 1.5; mov.f64 %rd1, 1.5; mov.f64 %rd1, 0f3FC00000;\n"
      "mov.b32 %r1, 0f3FC00000; mov.f32 %f1, 0d3FF8000000000000; mov.f32 %f1, -0f3FC00000;\n");
  const auto f32 = std::bit_cast<std::int32_t>(1.5F);
  const auto f64 = std::bit_cast<std::int64_t>(1.5);
  const std::array<std::int64_t, 5> bits{f32, f64, f64, f32, f32};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(f.body[i].operands[1].immediate, bits[i]) << i;
    EXPECT_TRUE(f.body[i].operands[1].name.empty());
  }
  EXPECT_EQ(f.body[5].operands[1].immediate, 0xBFC00000);
}

TEST(Parser, CalculatesConstantExpressions) {
  const Function f = body_of(
      "mov.s64 %rd1, (1+2)*3-8/3; mov.s64 %rd1, 1<<4|3; mov.s64 %rd1, ~0; mov.s64 %rd1, 5>2?7:9;\n"
      "mov.s64 %rd1, -9223372036854775808; mov.u64 %rd1, 0xFFFFFFFFFFFFFFFF; mov.s64 %rd1, !5;\n"
      "mov.s64 %rd1, (.u64)-1>>60; mov.s64 %rd1, WARP_SZ; mov.s64 %rd1, -7%4; mov.u32 %r1, 7U;\n");
  const std::array<std::int64_t, 11> values{7, 19, -1, 7, INT64_MIN, -1, 0, 15, 32, -3, 7};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(f.body[i].operands[1].immediate, values[i]) << i;
  }
}

TEST(Parser, ResolvesLabelsAndLeaders) {
  const Function f =
      body_of("bra.uni END; LOOP: add.s32 %r1, %r1, 1; @%p1 bra LOOP; AGAIN: ALSO: bra ALSO; END:");
  EXPECT_EQ(f.body[0].operands[0].kind, Kind::label);
  EXPECT_EQ(f.body[0].operands[0].immediate, 4);
  EXPECT_EQ(f.body[2].operands[0].immediate, 1);
  EXPECT_EQ(f.body[3].operands[0].immediate, 3);
  EXPECT_EQ(f.leaders, (std::vector<std::uint32_t>{1, 3, 4}));
  ASSERT_EQ(f.body.size(), 5U);
  EXPECT_EQ(f.body[4].opcode, "ret");
}

TEST(Parser, KeepsNamesOfBlocksApart) {
  // What two copies of one inline asm look like: labels, registers and their types are the block's.
  const Function f = body_of(
      "{ .reg .pred p; LAB: setp.eq.u32 p, %r1, 0; @!p bra DONE; bra LAB; DONE: }\n"
      "{ .reg .b32 p; LAB: add.u32 p, %r1, 0; bra LAB; DONE: mov.u32 %r2, p; }\n");
  EXPECT_EQ(f.body[1].operands[0].immediate, 3);
  EXPECT_EQ(f.body[2].operands[0].immediate, 0);
  EXPECT_EQ(f.body[4].operands[0].immediate, 3);
  const Register first = f.body[0].operands[0].reg, second = f.body[3].operands[0].reg;
  EXPECT_NE(first, second);
  EXPECT_EQ(f.registers[first].type, Type::pred);
  EXPECT_EQ(f.registers[second].type, Type::b32);
  EXPECT_THROW(body_of("{ IN: add.u32 %r1, %r1, 1; } bra IN;"), SyntaxError);
  EXPECT_EQ(body_of("OUT: { bra OUT; }").body[0].operands[0].immediate, 0);
}

TEST(Parser, ShadowsAndNumbersRegisters) {
  const Function f = body_of(
      "{ .reg .b32 %r<3>; mov.u32 %r2, %r5; { .reg .b32 %r2; mov.u32 %r2, %r1; } }\n"
      "mov.u32 %r2, %r9;");
  EXPECT_NE(f.body[0].operands[0].reg, f.body[1].operands[0].reg);
  EXPECT_NE(f.body[0].operands[0].reg, f.body[2].operands[0].reg);
  EXPECT_EQ(name_of(f, f.body[0].operands[1].reg), "%r5");
  EXPECT_EQ(f.registers[f.body[2].operands[0].reg].type, Type::b32);
  EXPECT_THROW(body_of("mov.u32 %r10, 1;"), SyntaxError);  // %r<10> ends with %r9
  EXPECT_THROW(body_of("mov.u32 %r01, 1;"), SyntaxError);
}

TEST(Parser, SplitsVectorRegisters) {
  const Function f = body_of(".reg .v2 .f32 v; mov.f32 v.y, %f1; st.global.v2.f32 [%rd1], v;");
  EXPECT_EQ(name_of(f, f.body[0].operands[0].reg), "v.y");
  EXPECT_EQ(f.body[1].operands[1].kind, Kind::vector);
  EXPECT_EQ(f.body[1].operands[1].elements.size(), 2U);
  EXPECT_THROW(body_of(".reg .v2 .f32 v; mov.f32 v.z, %f1;"), SyntaxError);
}

TEST(Parser, ReadsBranchTables) {
  const Function f = body_of("ts: .branchtargets A, B; brx.idx %r1, ts; A: ret; B: trap;");
  const Operand& list = f.body[0].operands[1];
  ASSERT_EQ(list.elements.size(), 2U);
  EXPECT_EQ(list.elements[0].immediate, 1);
  EXPECT_EQ(list.elements[1].immediate, 2);
  EXPECT_EQ(list.elements[1].kind, Kind::label);
  EXPECT_THROW(body_of("ts: .branchtargets A, NOWHERE; brx.idx %r1, ts; A: ret;"), SyntaxError);
}

TEST(Parser, ReadsCalls) {
  const Module module = module_of(
      ".extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);\n"
      ".func (.param .align 8 .b8 func_retval0[16]) make (.param .b32 x, .reg .b32 y) .noreturn\n"
      "{ .reg .b32 z; add.s32 z, y, 1; st.param.b32 [func_retval0+8], z; }\n"
      ".entry k { .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
      "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;\n"
      "call.uni (retval0), vprintf, (param0, param1); }\n"
      "{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0+0], 1;\n"
      "prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
      "call (retval0), %rd1, (param0), prototype_1; ld.param.b32 %r1, [retval0+0]; }\n"
      "{ .param .b64 param0; call.uni make, (param0, %r1); } call.uni k; }\n");
  EXPECT_TRUE(module.find("vprintf")->declared_only);
  const Function& make = *module.find("make");
  EXPECT_EQ(make.results[0].bytes, 16U);
  EXPECT_EQ(make.results[0].alignment, 8U);
  EXPECT_EQ(name_of(make, make.parameters[1].reg), "y");
  EXPECT_EQ(make.body[1].operands[0].name, "func_retval0");
  const Function& k = *module.find("k");
  const Instruction& print = k.body[0];
  EXPECT_EQ(print.operands[0].kind, Kind::arguments);
  EXPECT_EQ(print.operands[1].name, "vprintf");
  EXPECT_EQ(print.operands[2].elements[0].name, "param0");
  const Instruction& indirect = k.body[2];
  EXPECT_EQ(name_of(k, indirect.operands[1].reg), "%rd1");
  // Another shape of the same name is another variable; the same shape shares one.
  EXPECT_EQ(indirect.operands[2].elements[0].name, "param0@2");
  EXPECT_EQ(indirect.operands[0].elements[0].name, "retval0");
  EXPECT_EQ(k.body[4].operands[1].elements[0].name, "param0");
  EXPECT_EQ(k.body[4].operands[1].elements[1].kind, Kind::reg);
  EXPECT_EQ(k.body[5].operands[0].name, "k");
  EXPECT_EQ(k.variables.size(), 4U);
}

TEST(Parser, KeepsTheInnermostSourceLine) {
  const Module module = module_of(
      ".entry k { .reg .b32 %r<2>; .loc 1 21 3\n"
      ".loc 2 449 9, function_name $L__info_string0, inlined_at 1 21 3\n mov.u32 %r0, 1;\n"
      ".loc 1 0 60\n mov.u32 %r1, 1; ret; }\n"
      ".file 1 \"/a/b.cu\"\n.file 2 \"c\\\"d.h\", 12, 34\n"
      ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,78,0\n}\n");
  EXPECT_EQ(module.files, (std::vector<std::string>{"", "/a/b.cu", "c\"d.h"}));
  const Function& k = module.functions[0];
  EXPECT_EQ(k.body[0].source.file, 2U);
  EXPECT_EQ(k.body[0].source.line, 449U);
  EXPECT_EQ(k.body[0].text_line, 6U);
  EXPECT_EQ(k.body[1].source.line, 0U);
}

TEST(Parser, KnowsWhereALineWasInlinedAtAnyDepth) {
  // Twice the same chain of headers, called from two lines.
  const std::string chain =
      ".loc 3 292 1, function_name $L__info_string0, inlined_at 1 LINE 3\n"
      ".loc 3 190 1, function_name $L__info_string0, inlined_at 3 292 1\n mov.u32 %r0, 1;\n";
  const auto called_from = [&](const std::string& line) {
    std::string text = chain;
    return ".loc 1 " + line + " 3\n" + text.replace(text.find("LINE"), 4, line);
  };
  const Module module =
      module_of(".entry k { .reg .b32 %r<1>;\n" + called_from("8") + called_from("11") +
                "ret; }\n.file 1 \"/a/b.cu\"\n"
                ".file 3 \"h.h\"\n.section .debug_str\n{\n"
                "$L__info_string0:\n.b8 95,90,78,0\n}\n");
  const auto outermost = [&](const Instruction& instruction) {
    SourceLine at = instruction.source;
    while (at.call != 0) at = module.calls[at.call - 1];
    return at.line;
  };
  EXPECT_EQ(outermost(module.functions[0].body[0]), 8U);
  EXPECT_EQ(outermost(module.functions[0].body[1]), 11U);
}

TEST(Parser, ReadsLaunchBounds) {
  const Module module = module_of(
      ".entry a .maxntid 128, 2 .minnctapersm 2 .maxnreg 64 { ret; }\n"
      ".weak .entry b(.param .u64 .ptr .global .align 16 p, .param .align 4 .b8 s[12]) .reqntid "
      "32,1,1 .pragma \"nounroll\"; { .pragma \"nounroll\"; }\n");
  EXPECT_EQ(module.functions[0].maxntid, (std::array<std::uint32_t, 3>{128, 2, 1}));
  EXPECT_EQ(module.functions[1].reqntid, (std::array<std::uint32_t, 3>{32, 1, 1}));
  EXPECT_EQ(module.functions[1].parameters[0].alignment, 8U);  // not the pointee's
  EXPECT_EQ(module.functions[1].parameters[1].bytes, 12U);
}

TEST(Parser, ReplacesDeclarations) {
  const Module module = module_of(
      ".func f (.param .b32 a); .func g { ret; } .func f (.param .b32 b) { ret; }\n"
      ".extern .global .u32 v; .global .u32 v = 3;\n");
  ASSERT_EQ(module.functions.size(), 2U);
  EXPECT_EQ(module.functions[0].name, "f");
  EXPECT_FALSE(module.functions[0].declared_only);
  EXPECT_EQ(module.functions[0].parameters[0].name, "b");
  ASSERT_EQ(module.variables.size(), 1U);
  EXPECT_FALSE(module.variables[0].external);
  EXPECT_THROW(module_of(".func f { ret; } .func f { ret; }"), SyntaxError);
  EXPECT_THROW(module_of(".global .u32 f; .func f { ret; }"), SyntaxError);
}

}  // namespace
}  // namespace attest::emulator::ptx
