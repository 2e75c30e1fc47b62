// What can be seen where something is printed: a terminal's width, and whether it obeys anything.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "reports/formats.hpp"

namespace attest {
namespace {

constexpr int kColumnsMin = 60, kColumnsPlain = 100;

/// 0 where it is no terminal, or does not say.
int width_of(std::FILE* out) {
  winsize size{};
  const int descriptor = ::fileno(out);
  return descriptor >= 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

bool draws_lines_again(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return !dumb && ::fileno(out) >= 0 && ::isatty(::fileno(out)) != 0;
}

std::size_t columns_of(std::FILE* out) {
  constexpr int kOneToSee = 2;  // beside the last column, in which a terminal may wrap
  const int width = width_of(out);
  return static_cast<std::size_t>(width > 0 ? std::max(kOneToSee, width) : kColumnsPlain);
}

TableStyle style_of(std::FILE* out) {
  const int width = width_of(out);
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wanted = no_colour == nullptr || *no_colour == '\0';
  return {.columns = width > 0 ? std::max(kColumnsMin, width) : kColumnsPlain,
          .colour = wanted && draws_lines_again(out)};
}

}  // namespace attest
