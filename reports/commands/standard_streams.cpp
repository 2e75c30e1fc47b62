// Descriptors 0 to 2 and two signals: see the header.
#include "reports/commands/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "reference/one_line.hpp"
#include "reference/text.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

constexpr int kSubjectWrong = 1, kCouldNotTell = 2;

}  // namespace

void prepare_standard_streams() {
  // The lowest number that is free is the one that is closed. What is printed to a standard output
  // that does not exist has to fail; of a standard error nobody wants to know.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int despite(int exit_code, std::string_view trouble) {
  say(stderr, "attest: {}\n", one_line(trouble));
  return exit_code == kSubjectWrong ? kSubjectWrong : kCouldNotTell;
}

int despite_trouble(int exit_code, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    return despite(exit_code, error.what());
  }
  return exit_code;
}

int printed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return despite(
      exit_code,
      "standard output cannot be written, so some of what was found may not have been seen");
}

}  // namespace attest
