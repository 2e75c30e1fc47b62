// Text that is wrong, by accident or on purpose: a message with line and column, quickly, and never
// memory out of proportion to the text.
#include <gtest/gtest.h>

#include <chrono>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {
namespace {

constexpr char kHeader[] = ".version 9.0\n.target sm_80\n.address_size 64\n";

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const SyntaxError& error) {
    return error.what();
  }
  return "no error";
}
std::string body_message(const std::string& statements) {
  return message_of(std::string(kHeader) + ".entry k {\n.reg .b32 %r<3>;\n" + statements + "\n}");
}

TEST(Hostile, MessagesSayWhereAndWhat) {
  EXPECT_EQ(body_message("mov.u32 %r7, 1;"), "line 6, column 9: register '%r7' is not declared");
  EXPECT_EQ(body_message("mov.u32 %r1 1;"), "line 6, column 13: wanted ';', but found '1'");
  EXPECT_EQ(body_message("bra GONE;"), "line 6, column 5: no label 'GONE' in reach");
  EXPECT_EQ(body_message("call.uni gone;"), "line 6, column 10: 'gone' is not declared");
  EXPECT_EQ(body_message("@%r"), "line 6, column 2: register '%r' is not declared");
  EXPECT_EQ(body_message(".reg .b32 a, a;"),
            "line 6, column 14: 'a' is declared twice in one block");
  EXPECT_EQ(message_of("hello"), "line 1, column 1: wanted a directive, but found 'hello'");
  EXPECT_EQ(message_of(""), "line 1, column 1: wanted .version, but found the end of the text");
  EXPECT_EQ(message_of(".version 9.0 .target sm_20 .address_size 32"),
            "line 1, column 28: addresses have 64 bits here");
}

TEST(Hostile, CutOffAnywhereIsAnErrorOrAWholeModule) {
  const std::string text =
      std::string(kHeader) +
      ".global .u32 v[2] = {1, 2};\n.entry k(.param .u64 p) .maxntid 32 {\n.reg .b32 %r<3>; L: "
      "{ .reg .pred q; @q bra L; } mov.u32 %r1, %tid.x; st.global.v2.u32 [%r1+4], {%r1, %r2};\n"
      "ts: .branchtargets L; brx.idx %r1, ts; ret; }\n.file 1 \"x\"\n";
  EXPECT_EQ(message_of(text), "no error");
  for (std::size_t length = 0; length < text.size(); ++length) message_of(text.substr(0, length));
}

TEST(Hostile, CountsAndSizesAreLimited) {
  EXPECT_NE(body_message(".reg .b32 %x<4000000000>;"), "no error");
  EXPECT_NE(body_message(".reg .b32 %x<99999999999999999999>;"), "no error");
  EXPECT_NE(body_message(".shared .align 1073741824 .b8 s[4];"), "no error");
  EXPECT_NE(body_message(".local .b8 s[18446744073709551615];"), "no error");
  EXPECT_NE(body_message(".loc 4294967295 1 1"), "no error");
  EXPECT_NE(message_of(std::string(kHeader) + ".file 4000000000 \"x\""), "no error");
  EXPECT_NE(message_of(std::string(kHeader) + ".func f(.param .b8 a[4000000000]);"), "no error");
  EXPECT_NE(message_of(std::string(kHeader) + ".entry k .maxntid 0 { ret; }"), "no error");
}

TEST(Hostile, NestingIsLimited) {
  const std::string many(100000, '{');
  EXPECT_NE(body_message(many), "no error");
  EXPECT_NE(body_message("mov.u32 %r1, " + std::string(100000, '(')), "no error");
  EXPECT_NE(body_message("mov.u32 %r1, " + std::string(100000, '-') + "1;"), "no error");
  EXPECT_NE(body_message("mov.u32 %r1, " + std::string(100000, '!') + "1;"), "no error");
  EXPECT_NE(body_message("mov.u32 %r1, {{{{%r1}}}};"), "no error");
  EXPECT_NE(message_of(std::string(kHeader) + ".global .b8 a[4] = " + many), "no error");
  std::string ternary = "mov.u32 %r1, 1";
  for (int i = 0; i < 100000; ++i) ternary += "?1";
  EXPECT_NE(body_message(ternary), "no error");
}

TEST(Hostile, TimeGrowsWithTheText) {
  // Each would take minutes if any step were quadratic.
  using Clock = std::chrono::steady_clock;
  constexpr int kCount = 100000;
  std::string labels, blocks, forward, registers;
  for (int i = 0; i < kCount; ++i) {
    const std::string number = std::to_string(i);
    labels += "L" + number + ": bra L" + number + ";\n";
    blocks += "{ .param .b32 a; .reg .b32 x; mov.u32 x, %r1; }\n";
    forward += "{ bra END; }\n";
    registers += ".reg .b32 a" + number + "; mov.u32 a" + number + ", 1;\n";
  }
  const auto begin = Clock::now();
  EXPECT_EQ(body_message(labels), "no error");
  EXPECT_EQ(body_message(blocks), "no error");
  EXPECT_EQ(body_message(forward + "END:"), "no error");
  EXPECT_EQ(body_message(registers), "no error");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
}

TEST(Hostile, BranchTablesDoNotMultiply) {
  std::string text = "ts: .branchtargets L";
  for (int i = 0; i < 20000; ++i) text += ", L";
  text += ";\n";
  for (int i = 0; i < 20000; ++i) text += "brx.idx %r1, ts;\n";
  EXPECT_NE(body_message(text + "L: ret;"), "no error");
}

TEST(Hostile, TextAfterNulIsPadding) {
  const std::string text = std::string(kHeader) + std::string("\0\0\1garbage", 10);
  EXPECT_EQ(message_of(text), "no error");
}

}  // namespace
}  // namespace attest::emulator::ptx
