// Progress on a terminal, which a pseudo-terminal is, and in a log.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "reports/formats.hpp"

namespace attest {
namespace {

/// What was written so far.
std::string read_all(int from) {
  std::string all;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(from, buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<std::size_t>(count));
  return all;
}

TEST(Progress, DrawsABarOnATerminalAndClearsIt) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  std::FILE* out = std::fopen(::ptsname(terminal), "w");
  ASSERT_NE(out, nullptr);
  ASSERT_EQ(::fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
  {
    Progress progress(out);
    progress.update("3 of 12 cells, 7 s", 0.25);
    const std::string drawn = read_all(terminal);
    EXPECT_NE(drawn.find("[######..................]  25 %  3 of 12 cells, 7 s"), std::string::npos)
        << drawn;
    progress.update("4 of 12 cells, 7 s", 0.5);
    EXPECT_EQ(read_all(terminal), "") << "sooner than anybody can see";
    progress.finish();
    EXPECT_EQ(read_all(terminal), "\r\x1b[K");
  }
  std::fclose(out);
  ::close(terminal);
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
