// Reads PTX text token by token, keeping count of lines and columns. Between calls the cursor
// always stands on the first character of a token (or at the end), so that peek() decides what
// comes. Knows spellings (names, numbers, strings, comments), not the grammar.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace attest::emulator::ptx {

struct Position {
  std::uint32_t line = 1, column = 1;
};

/// A number as spelled. `bits` holds the integer, or the bits of the float: 32 for 0f…, else 64.
struct Number {
  enum class Kind : std::uint8_t { integer, f32_bits, f64_bits };
  Kind kind = Kind::integer;
  std::uint64_t bits = 0;
};

/// 'name', as messages have it.
std::string quoted(std::string_view name);

class Cursor {
 public:
  /// Text after the first NUL is not read: images in fat binaries end with one, and with padding.
  explicit Cursor(std::string_view text);

  bool at_end() const { return at_ == text_.size(); }
  /// The first character of the token the cursor stands on; NUL at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  /// The character `distance` after it, whatever it is.
  char peek(std::size_t distance) const {
    return distance < text_.size() - at_ ? text_[at_ + distance] : '\0';
  }
  bool at_name() const;

  /// True, and past it, when the next character is `symbol`.
  bool accept(char symbol);
  void require(char symbol);
  /// A name: letters, digits, _ and $, perhaps with % in front. Fails when there is none.
  std::string_view name();
  /// A dot and a word: `b32` of `.b32`. Fails when there is none.
  std::string_view directive();
  /// True, and past it, when the next token is the directive `.word`.
  bool accept_directive(std::string_view word);
  /// The dotted part of an opcode; "::" belongs to the word. Empty when no dot follows.
  /// Unlike the others it allows no blank in front, so that the opcode ends where it ends.
  std::string_view modifier();
  std::string string();
  Number number();
  std::uint64_t integer();
  /// Past the closing brace of a block whose contents nobody reads.
  void skip_block();
  /// To the semicolon and past it.
  void skip_statement();
  /// Past the end of the line.
  void skip_line();
  void skip_blanks();

  Position position() const;
  /// Throws SyntaxError at the current token: "`what`, but found `token`".
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] static void fail_at(Position position, const std::string& what);

 private:
  std::string_view word(bool with_colons);
  Number float_bits(unsigned digits, Number::Kind kind);
  std::string found() const;

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace attest::emulator::ptx
