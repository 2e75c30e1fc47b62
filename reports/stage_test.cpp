// A stage shows itself on a terminal, counts its seconds and cleans up; in a log it is a line.
#include "reports/stage.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "reports/testing/pseudo_terminal.hpp"

namespace attest {
namespace {

/// What comes until it holds `words`, or for ten seconds.
std::string read_until(int descriptor, std::string_view words) {
  std::string text;
  for (int tries = 0; tries < 1000 && text.find(words) == std::string::npos; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text += read_from(descriptor);
  }
  return text;
}

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(Stage, ShowsItselfOnATerminal) {
  const PseudoTerminal terminal;
  ASSERT_NE(terminal.out, nullptr);
  { const Stage brief(terminal.out, "brief"); }
  EXPECT_EQ(terminal.read(), "");
  {
    const Stage stage(terminal.out, "what is accepted");
    EXPECT_NE(
        read_until(terminal.descriptor, "what is accepted (1 s)").find("what is accepted (1 s)"),
        std::string::npos);
  }
  EXPECT_TRUE(terminal.read().ends_with("\r\x1b[K"));
  const std::atomic<Index> done = 3;
  {
    const Stage stage(terminal.out, "what is accepted", {&done, 8, "heads"});
    constexpr std::string_view kSaid = "what is accepted: 3 of 8 heads (1 s)";
    EXPECT_NE(read_until(terminal.descriptor, kSaid).find(kSaid), std::string::npos);
  }
}

TEST(Stage, IsALineNowAndThenInALog) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::FILE* out = ::fdopen(ends[1], "w");
  {
    const Stage stage(out, "what is accepted");
    pause_for(1.2);
  }
  std::fflush(out);
  EXPECT_EQ(read_from(ends[0]), "") << "what takes a second is over before it is read";
  const std::atomic<Index> done = 3;
  {
    const Stage stage(out, "the truth", {&done, 8, "heads"}, 1);
    const std::string text = read_until(ends[0], "\n");
    EXPECT_EQ(text, "the truth: 3 of 8 heads (1 s)\n");
  }
  EXPECT_EQ(read_from(ends[0]).find('\x1b'), std::string::npos);
  std::fclose(out);
  ::close(ends[0]);
}

}  // namespace
}  // namespace attest
