// Lines of words: see the header.
#include "reference/line_words.hpp"

#include <algorithm>

namespace attest {
namespace {

constexpr std::size_t kQuotedMax = 40;  // characters of the line that an error repeats

std::size_t find_word(const Piece& name, std::span<const Word> words,
                      std::string (*unknown)(std::string_view)) {
  std::vector<std::string_view> names;
  for (const Word& word : words) names.push_back(word.name);
  const auto at = std::find_if(words.begin(), words.end(), [&](const Word& word) {
    return name.text == word.name || (!word.also.empty() && name.text == word.also);
  });
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  std::string said = unknown == nullptr ? std::string() : unknown(name.text);
  if (said.empty()) {
    const std::string near = nearest(name.text, names);
    said = fmt::format("unknown key {}{}", quoted(name.text),
                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
  }
  name.refuse(said, fmt::format("legal are {}", fmt::join(names, " ")));
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, kQuotedMax)) {
    const auto code = static_cast<unsigned char>(c);
    const bool printable = code >= 0x20 && code < 0x7f;  // ASCII, between space and DEL
    out += printable ? std::string(1, c) : fmt::format("\\x{:02x}", code);
  }
  return out + (text.size() > kQuotedMax ? "...'" : "'");
}

std::size_t read_name(const Piece& value, std::span<const std::string_view> names) {
  const auto at = std::find(names.begin(), names.end(), value.text);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  const std::string near = nearest(value.text, names);
  value.refuse(fmt::format("unknown name {}{}", quoted(value.text),
                           near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
               fmt::format("legal are {}", fmt::join(names, ", ")));
}

Columns read_words(const Piece& line, std::span<const Word> words, std::string_view smallest,
                   const std::function<void(std::size_t, const Piece&)>& read,
                   std::string (*unknown)(std::string_view)) {
  constexpr std::string_view kBlank = " \t";
  std::string_view text = line.text;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  Columns columns(words.size());
  std::size_t at = text.find_first_not_of(kBlank);
  if (at == std::string_view::npos) {
    Piece{line.line, {}, line.column}.refuse(
        "the line is empty", fmt::format("the smallest legal line is {}", smallest));
  }
  while (at != std::string_view::npos) {
    const std::size_t stop = std::min(text.find_first_of(kBlank, at), text.size());
    const Piece token = line.from(at, stop - at);
    const std::size_t equals = token.text.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::size_t index = find_word(token.from(0, equals), words, unknown);
    const Word& word = words[index];
    if (columns[index] != 0) {
      token.refuse(fmt::format("'{}' stands here a second time", word.name),
                   fmt::format("it was already given in column {}", columns[index]));
    }
    columns[index] = token.column;
    if (has_value && word.is_flag()) {
      token.refuse(fmt::format("{} has a value", quoted(token.text)),
                   fmt::format("'{}' is a flag: it stands alone, or is left out", word.name));
    }
    if (!has_value && !word.is_flag()) {
      token.refuse(fmt::format("'{}' has no value", word.name),
                   fmt::format("legal is {}", word.form));
    }
    read(index, has_value ? token.from(equals + 1) : token);
    at = text.find_first_not_of(kBlank, stop);
  }
  return columns;
}

}  // namespace attest
