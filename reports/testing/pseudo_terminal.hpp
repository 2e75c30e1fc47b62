// A terminal that nobody looks at, and what was written to it. Test code; no program includes this.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace attest {

/// What can be read without waiting.
inline std::string read_from(int descriptor) {
  std::string text;
  char part[4096];
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  for (ssize_t got; (got = ::read(descriptor, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

struct PseudoTerminal {
  int descriptor = ::posix_openpt(O_RDWR | O_NOCTTY);
  std::FILE* out = nullptr;

  PseudoTerminal() {
    if (descriptor < 0 || ::grantpt(descriptor) != 0 || ::unlockpt(descriptor) != 0) return;
    out = std::fopen(::ptsname(descriptor), "w");
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal() {
    if (out != nullptr) std::fclose(out);
    if (descriptor >= 0) ::close(descriptor);
  }
  std::string read() const { return read_from(descriptor); }
};

}  // namespace attest
