// Which characters are passed on as they are: see the header. The tables are those of Unicode 15.
#include "reference/one_line.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace attest {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Of a well-formed sequence.
std::uint32_t code_point_of(std::string_view sequence) {
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(sequence[i])};
  };
  // The leading byte has as many ones in front as there are bytes; six bits in each that follows.
  std::uint32_t code = sequence.size() == 1 ? byte(0) : byte(0) & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) code = code << 6U | (byte(i) & 0x3FU);
  return code;
}

bool breaks_a_line(std::uint32_t code) {
  return code == '\n' || code == '\r' || code == '\t' || code == 0x2028 || code == 0x2029;
}

/// C0, DEL and C1, which terminals obey, and what reorders the text around it.
bool is_obeyed(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool directs = code == 0x061C || code == 0x200E || code == 0x200F ||
                       (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return control || directs;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned char first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first < 0xE0U) return follows(1) ? 2 : 0;
  if (first >= 0xE0U && first < 0xF0U && follows(1) && follows(2)) {
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) >= 0xA0U;
    const bool not_a_character = first == 0xEFU && byte(1) == 0xBFU && byte(2) >= 0xBEU;
    return overlong || surrogate || not_a_character ? 0 : 3;
  }
  if (first >= 0xF0U && first < 0xF5U && follows(1) && follows(2) && follows(3)) {
    const bool overlong = first == 0xF0U && byte(1) < 0x90U;
    const bool beyond = first == 0xF4U && byte(1) >= 0x90U;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    const std::uint32_t code = code_point_of(text.substr(0, length));
    if (breaks_a_line(code)) {
      out += ' ';
    } else if (is_obeyed(code)) {
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace attest
