// The tokens of PTX. See cursor.hpp.
#include "optimized/emulator/ptx/cursor.hpp"

#include <array>
#include <bit>
#include <charconv>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {
namespace {

enum : std::uint8_t { kStarts = 1, kContinues = 2, kDigit = 4, kBlank = 8 };

constexpr std::array<std::uint8_t, 256> classify() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kStarts | kContinues;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kStarts | kContinues;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kContinues | kDigit;
  classes['_'] = classes['$'] = kStarts | kContinues;
  classes['%'] = kStarts;
  for (char c : {' ', '\t', '\r', '\n', '\f', '\v'}) classes[static_cast<int>(c)] = kBlank;
  return classes;
}
constexpr std::array<std::uint8_t, 256> kClasses = classify();

bool is(char c, std::uint8_t wanted) {
  return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

constexpr std::size_t kQuotedCharacters = 24;  // of the offending token, in a message

}  // namespace

std::string quoted(std::string_view name) {
  std::string result(1, '\'');
  result.append(name);
  result.push_back('\'');
  return result;
}

Cursor::Cursor(std::string_view text) : text_(text.substr(0, text.find('\0'))) {
  skip_blanks();
}

bool Cursor::at_name() const {
  return is(peek(), kStarts);
}

void Cursor::skip_blanks() {
  for (;;) {
    const char c = peek();
    if (is(c, kBlank)) {
      ++at_;
      if (c == '\n') {
        ++line_;
        line_start_ = at_;
      }
    } else if (c == '/' && peek(1) == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && peek(1) == '*') {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail("a comment is not closed");
      for (; at_ < end + 2; ++at_) {
        if (text_[at_] != '\n') continue;
        ++line_;
        line_start_ = at_ + 1;
      }
    } else {
      return;
    }
  }
}

bool Cursor::accept(char symbol) {
  if (peek() != symbol || at_end()) return false;
  ++at_;
  skip_blanks();
  return true;
}

void Cursor::require(char symbol) {
  if (!accept(symbol)) fail("wanted " + quoted({&symbol, 1}));
}

std::string_view Cursor::word(bool with_colons) {
  const std::size_t begin = at_;
  while (at_ < text_.size()) {
    if (is(text_[at_], kContinues)) {
      ++at_;
    } else if (with_colons && text_[at_] == ':' && peek(1) == ':') {
      at_ += 2;
    } else {
      break;
    }
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view Cursor::name() {
  if (!at_name()) fail("wanted a name");
  const std::size_t begin = at_++;
  while (at_ < text_.size() && is(text_[at_], kContinues)) ++at_;
  const std::string_view result = text_.substr(begin, at_ - begin);
  if (result == "%") fail("wanted a name after '%'");
  // A modifier or a component must touch its name, so blanks are skipped only when none follows.
  if (peek() != '.') skip_blanks();
  return result;
}

std::string_view Cursor::directive() {
  if (peek() != '.') fail("wanted a directive");
  ++at_;
  const std::string_view result = word(false);
  if (result.empty()) fail("wanted a directive's name after '.'");
  skip_blanks();
  return result;
}

bool Cursor::accept_directive(std::string_view wanted) {
  if (peek() != '.' || text_.substr(at_ + 1, wanted.size()) != wanted) return false;
  if (is(peek(1 + wanted.size()), kContinues)) return false;
  at_ += 1 + wanted.size();
  skip_blanks();
  return true;
}

std::string_view Cursor::modifier() {
  if (peek() != '.') {
    skip_blanks();
    return {};
  }
  ++at_;
  const std::string_view result = word(true);
  if (result.empty()) fail("wanted a modifier after '.'");
  if (peek() != '.') skip_blanks();
  return result;
}

std::string Cursor::string() {
  if (peek() != '"') fail("wanted a string");
  std::string result;
  for (std::size_t at = at_ + 1; at < text_.size() && text_[at] != '\n'; ++at) {
    if (text_[at] == '"') {
      at_ = at + 1;
      skip_blanks();
      return result;
    }
    if (text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] != '\n') ++at;
    result.push_back(text_[at]);
  }
  fail("a string is not closed");
}

Number Cursor::float_bits(unsigned digits, Number::Kind kind) {
  at_ += 2;
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < digits; ++i, ++at_) {
    const int value = digit_value(peek());
    if (value > 15) fail("wanted " + std::to_string(digits) + " hexadecimal digits");
    bits = bits << 4 | static_cast<unsigned>(value);
  }
  if (is(peek(), kContinues)) fail("a float has too many digits");
  skip_blanks();
  return {kind, bits};
}

Number Cursor::number() {
  if (!is(peek(), kDigit)) fail("wanted a number");
  const char second = peek(1);
  if (peek() == '0' && (second == 'f' || second == 'F')) {
    return float_bits(8, Number::Kind::f32_bits);
  }
  if (peek() == '0' && (second == 'd' || second == 'D')) {
    return float_bits(16, Number::Kind::f64_bits);
  }
  unsigned base = 10;
  std::size_t begin = at_;
  if (peek() == '0') {
    base = second == 'x' || second == 'X' ? 16 : second == 'b' || second == 'B' ? 2 : 8;
    begin += base == 8 ? 0 : 2;
  }
  std::size_t end = begin;
  std::uint64_t value = 0;
  bool overflow = false;
  while (end < text_.size() && digit_value(text_[end]) < static_cast<int>(base)) {
    overflow |= __builtin_mul_overflow(value, std::uint64_t{base}, &value);
    overflow |= __builtin_add_overflow(value, static_cast<std::uint64_t>(digit_value(text_[end++])),
                                       &value);
  }
  const char stop = end < text_.size() ? text_[end] : '\0';
  if ((base == 10 || base == 8) && (stop == '.' || stop == 'e' || stop == 'E')) {
    double decimal = 0;
    const auto [rest, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), decimal);
    // A literal beyond the range of double is what ptxas refuses too.
    if (error != std::errc()) fail("a float is out of range");
    at_ = static_cast<std::size_t>(rest - text_.data());
    if (is(peek(), kContinues)) fail("a number runs into a name");
    skip_blanks();
    return {Number::Kind::f64_bits, std::bit_cast<std::uint64_t>(decimal)};
  }
  if (end == begin) fail("wanted digits");
  if (overflow) fail("an integer does not fit 64 bits");
  at_ = end;
  if (peek() == 'U') ++at_;
  if (is(peek(), kContinues)) fail("a number runs into a name");
  skip_blanks();
  return {Number::Kind::integer, value};
}

std::uint64_t Cursor::integer() {
  const Position start = position();
  const Number result = number();
  if (result.kind != Number::Kind::integer) fail_at(start, "wanted an integer, not a float");
  return result.bits;
}

void Cursor::skip_block() {
  require('{');
  for (std::size_t depth = 1; depth > 0;) {
    if (at_end()) fail("a block is not closed");
    if (peek() == '"') {
      string();
    } else {
      depth += peek() == '{' ? 1 : 0;
      depth -= peek() == '}' ? 1 : 0;
      ++at_;
      skip_blanks();
    }
  }
}

void Cursor::skip_statement() {
  while (peek() != ';') {
    if (at_end()) fail("wanted ';'");
    ++at_;
    skip_blanks();
  }
  require(';');
}

void Cursor::skip_line() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  skip_blanks();
}

Position Cursor::position() const {
  return {line_, static_cast<std::uint32_t>(at_ - line_start_ + 1)};
}

std::string Cursor::found() const {
  if (at_end()) return "the end of the text";
  std::size_t length = 1;
  if (is(text_[at_], kStarts | kContinues) || text_[at_] == '.') {
    while (length < kQuotedCharacters && is(peek(length), kContinues)) ++length;
  }
  std::string token;
  for (const char c : text_.substr(at_, length)) token += c >= ' ' && c <= '~' ? c : '?';
  return quoted(token);
}

void Cursor::fail(const std::string& what) const {
  fail_at(position(), what + ", but found " + found());
}

void Cursor::fail_at(Position position, const std::string& what) {
  throw SyntaxError(position.line, position.column, what);
}

}  // namespace attest::emulator::ptx
