// How a line of words, `key=value` or a flag, is taken apart, and what is said of one that cannot
// be read: the column, what was found, what would have been legal. Which words there are, and what
// they mean, is not known here.
#pragma once
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/text.hpp"

namespace attest {

/// Printable, quoted and not longer than an error message should be.
std::string quoted(std::string_view text);

/// A piece of a line and where it stands.
struct Piece {
  std::string_view line;  // what kind of line it is of, for messages: "case line"
  std::string_view text;
  std::size_t column = 1;  // from 1

  Piece from(std::size_t start, std::size_t count = std::string_view::npos) const {
    return {line, text.substr(start, count), column + start};
  }
  [[noreturn]] void refuse(std::string_view found, std::string_view legal) const {
    throw Error(fmt::format("{}, column {}: {}; {}", line, column, found, legal));
  }
};

/// A word of a line: its name, and what a person may write.
struct Word {
  std::string_view name;
  std::string_view form;       // of a flag: its name
  std::string_view also = {};  // another spelling that is read, and never printed

  bool is_flag() const { return form == name; }
};

/// Where each of `words` stood; 0: it did not.
using Columns = std::vector<std::size_t>;

/// Calls `read(n, value)` for every word of the line in turn, words[n], each at most once; the
/// value of a flag is empty. Line ends are dropped. `unknown` may say what a name that is none of
/// `words` means elsewhere; empty: nothing. `smallest` is the smallest legal line.
Columns read_words(const Piece& line, std::span<const Word> words, std::string_view smallest,
                   const std::function<void(std::size_t, const Piece&)>& read,
                   std::string (*unknown)(std::string_view name) = nullptr);

template <class Number>
Number read_number(const Piece& piece, std::string_view form) {
  Number number{};
  const char* end = piece.text.data() + piece.text.size();
  const auto [stop, error] = std::from_chars(piece.text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    piece.refuse(fmt::format("{} is out of range", quoted(piece.text)),
                 fmt::format("legal is {}", form));
  }
  if (error != std::errc() || stop != end) {
    piece.refuse(fmt::format("{} is not a number", quoted(piece.text)),
                 fmt::format("legal is {}", form));
  }
  return number;
}

/// Which of `names` it is.
std::size_t read_name(const Piece& value, std::span<const std::string_view> names);

/// The shortest text that reads back to the same number.
template <class Number>
std::string shortest(Number number) {
  std::array<char, 32> text{};  // a double needs at most 24 characters
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

}  // namespace attest
