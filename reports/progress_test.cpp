// Progress on a terminal, which a pseudo-terminal is, and in a log.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <string>

#include "reports/formats.hpp"
#include "reports/testing/pseudo_terminal.hpp"

namespace attest {
namespace {

TEST(Progress, DrawsABarOnATerminalAndClearsIt) {
  const PseudoTerminal terminal;
  ASSERT_NE(terminal.out, nullptr);
  {
    Progress progress(terminal.out);
    progress.update("3 of 12 cells, 7 s", 0.25);
    const std::string drawn = terminal.read();
    EXPECT_NE(drawn.find("[######..................]  25 %  3 of 12 cells, 7 s"), std::string::npos)
        << drawn;
    progress.update("4 of 12 cells, 7 s", 0.5);
    EXPECT_EQ(terminal.read(), "") << "sooner than anybody can see";
    progress.finish();
    EXPECT_EQ(terminal.read(), "\r\x1b[K");
  }
}

TEST(Progress, NeverWrapsOnANarrowTerminal) {
  for (const unsigned short columns : {1, 7, 20}) {
    const PseudoTerminal terminal;
    ASSERT_NE(terminal.out, nullptr);
    const winsize narrow{.ws_row = 3, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(terminal.descriptor, TIOCSWINSZ, &narrow), 0);
    Progress progress(terminal.out);
    progress.update("3 of 12 cells, 7 s", 0.25);
    const std::string drawn = terminal.read();
    EXPECT_EQ(drawn.find("\r\x1b[K"), 0U);
    EXPECT_LT(drawn.size() - 4, std::max<std::size_t>(columns, 2)) << drawn;
    progress.finish();
  }
}

TEST(Progress, SendsNoEscapesToATerminalThatKnowsNone) {
  const PseudoTerminal terminal;
  ASSERT_NE(terminal.out, nullptr);
  const char* before = std::getenv("TERM");
  const std::string kind = before == nullptr ? "" : before;
  ::setenv("TERM", "dumb", 1);
  {
    Progress progress(terminal.out);
    progress.update("3 of 12 cells, 7 s", 0.25);
    progress.line("found");
    EXPECT_FALSE(style_of(terminal.out).colour);
  }
  EXPECT_EQ(terminal.read(), "found\r\n");
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(style_of(terminal.out).colour);
  before == nullptr ? ::unsetenv("TERM") : ::setenv("TERM", kind.c_str(), 1);
}

TEST(Progress, ALogThatIsShortHasNone) {
  std::FILE* log = std::tmpfile();
  ASSERT_NE(log, nullptr);
  Progress progress(log);
  progress.update("0 of 2 cells, 0 s", 0);
  progress.update("2 of 2 cells, 1 s", 1);
  progress.finish();
  EXPECT_EQ(std::ftell(log), 0);
  std::fclose(log);
}

}  // namespace
}  // namespace attest
