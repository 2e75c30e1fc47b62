// Printing that never throws: that nobody reads what is said (a full disk, a pipe whose reader
// left) must not cost the verdict. Whether standard output took everything is asked once, at the
// end.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace attest {

template <class... Values>
void say(std::FILE* out, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), out);  // what fails stays in ferror(out)
}

template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  say(stdout, format, std::forward<Values>(values)...);
}

}  // namespace attest
