// Progress on a terminal, which a pseudo-terminal is, and in a log.
#include <gtest/gtest.h>

#include <string>

#include "reports/formats.hpp"
#include "reports/pseudo_terminal.hpp"

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
