// What of somebody else's text reaches a terminal or a report.
#include "reference/one_line.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(OneLine, PassesOrdinaryTextOn) {
  EXPECT_EQ(one_line("head_dim 65 is no multiple of 8"), "head_dim 65 is no multiple of 8");
  EXPECT_EQ(one_line("Größe λ 核 🙂"), "Größe λ 核 🙂");
  EXPECT_EQ(one_line(""), "");
}

TEST(OneLine, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(one_line("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(one_line("\x7f\xc2\x9b"), "\\x7f\\x9b") << "DEL and the eight-bit CSI";
  EXPECT_EQ(one_line("safe\u202eevil\u2066"), "safe\\u202eevil\\u2066");
}

TEST(OneLine, IsOneLine) {
  EXPECT_EQ(one_line("a\nb\r\tc\u2028d"), "a b  c d");
}

TEST(OneLine, IsAlwaysUtf8) {
  EXPECT_EQ(one_line("\xff"), "\uFFFD");
  EXPECT_EQ(one_line("cut \xe6\xa0"), "cut \uFFFD\uFFFD") << "a sequence that was cut off";
  EXPECT_EQ(one_line("\xc0\x80"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const char pair[] = {static_cast<char>(first), static_cast<char>(second)};
      const std::string line = one_line({pair, 2});
      for (std::string_view rest = line; !rest.empty();) {
        const std::size_t length = utf8_length(rest);
        ASSERT_NE(length, 0U) << first << ' ' << second;
        ASSERT_GE(static_cast<unsigned char>(rest.front()), 0x20U) << first << ' ' << second;
        rest.remove_prefix(length);
      }
    }
  }
}

}  // namespace
}  // namespace attest
