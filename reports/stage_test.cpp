// A stage shows itself on a terminal, counts its seconds and cleans up; elsewhere nothing appears.
#include "reports/stage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

namespace attest {
namespace {

std::string read_from(int descriptor) {
  std::string text;
  char part[256];
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  for (ssize_t got; (got = ::read(descriptor, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

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
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  std::FILE* out = std::fopen(::ptsname(terminal), "w");
  ASSERT_NE(out, nullptr);
  { const Stage brief(out, "brief"); }
  EXPECT_EQ(read_from(terminal), "");
  {
    const Stage stage(out, "what is accepted");
    EXPECT_NE(read_until(terminal, "what is accepted (1 s)").find("what is accepted (1 s)"),
              std::string::npos);
  }
  EXPECT_TRUE(read_from(terminal).ends_with("\r\x1b[K"));
  const std::atomic<Index> done = 3;
  {
    const Stage stage(out, "what is accepted", {&done, 8, "heads"});
    constexpr std::string_view kSaid = "what is accepted: 3 of 8 heads (1 s)";
    EXPECT_NE(read_until(terminal, kSaid).find(kSaid), std::string::npos);
  }
  std::fclose(out);
  ::close(terminal);
}

TEST(Stage, IsSilentElsewhere) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::FILE* out = ::fdopen(ends[1], "w");
  {
    const Stage stage(out, "what is accepted");
    pause_for(1.2);
  }
  std::fflush(out);
  EXPECT_EQ(read_from(ends[0]), "");
  std::fclose(out);
  ::close(ends[0]);
}

}  // namespace
}  // namespace attest
