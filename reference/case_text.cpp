// The one-line text of a Problem and of a Case: one table of keys, in the order in which they are
// printed, each with how it is written and how it is read. Keys are stable for ever: lines live in
// corpora and in people's notes. The grammar, for people, is in reference/README.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "reference/names.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr std::size_t kQuotedMax = 40;    // characters of the line that an error repeats
constexpr std::size_t kFillNameMax = 64;  // longer than any name worth typing

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, kQuotedMax)) {
    const auto code = static_cast<unsigned char>(c);
    const bool printable = code >= 0x20 && code < 0x7f;  // ASCII, between space and DEL
    out += printable ? std::string(1, c) : fmt::format("\\x{:02x}", code);
  }
  return out + (text.size() > kQuotedMax ? "...'" : "'");
}

/// A piece of the line and where it stands.
struct Piece {
  std::string_view text;
  std::size_t column = 1;  // from 1

  Piece from(std::size_t start, std::size_t count = std::string_view::npos) const {
    return {text.substr(start, count), column + start};
  }
  [[noreturn]] void refuse(std::string_view found, std::string_view legal) const {
    throw Error(fmt::format("case line, column {}: {}; {}", column, found, legal));
  }
};

struct Key {
  std::string_view name;
  std::string_view form;  // what a person may write
  /// The value as printed; empty for a flag that is set; nothing when it is the default.
  std::optional<std::string> (*written)(const Case&);
  void (*read)(const Piece& value, const Key& key, Case& into);

  bool is_flag() const { return form == name; }
};

template <class Number>
Number read_number(const Piece& piece, const Key& key) {
  Number number{};
  const char* end = piece.text.data() + piece.text.size();
  const auto [stop, error] = std::from_chars(piece.text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    piece.refuse(fmt::format("{} is out of range", quoted(piece.text)),
                 fmt::format("legal is {}", key.form));
  }
  if (error != std::errc() || stop != end) {
    piece.refuse(fmt::format("{} is not a number", quoted(piece.text)),
                 fmt::format("legal is {}", key.form));
  }
  return number;
}

std::vector<Index> read_list(const Piece& value, char separator, const Key& key) {
  std::vector<Index> numbers;
  for (std::size_t start = 0;;) {
    const std::size_t stop = std::min(value.text.find(separator, start), value.text.size());
    numbers.push_back(read_number<Index>(value.from(start, stop - start), key));
    if (stop == value.text.size()) return numbers;
    start = stop + 1;
  }
}

std::vector<Index> read_extents(const Piece& value, const Key& key, std::size_t count) {
  std::vector<Index> extents = read_list(value, 'x', key);
  if (extents.size() != count) {
    value.refuse(fmt::format("{} has {} numbers", quoted(value.text), extents.size()),
                 fmt::format("{} takes {}: {}", key.name, count, key.form));
  }
  return extents;
}

template <class Enumeration>
Enumeration read_name(const Piece& value, std::span<const std::string_view> names) {
  const auto at = std::find(names.begin(), names.end(), value.text);
  if (at == names.end()) {
    const std::string near = nearest(value.text, names);
    value.refuse(fmt::format("unknown name {}{}", quoted(value.text),
                             near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
                 fmt::format("legal are {}", fmt::join(names, ", ")));
  }
  return static_cast<Enumeration>(at - names.begin());
}

template <class Number>
std::string shortest(Number number) {
  std::array<char, 32> text{};  // a double needs at most 24 characters
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::optional<std::string> unless(bool is_default, std::string value) {
  if (is_default) return {};
  return value;
}

std::string bound_text(Index bound) {
  return bound == kUnbounded ? "inf" : shortest(bound);
}

Index read_bound(const Piece& piece, const Key& key) {
  if (piece.text == "inf") return kUnbounded;
  const auto bound = read_number<Index>(piece, key);
  if (bound < 0) {
    piece.refuse(fmt::format("{} is negative", quoted(piece.text)),
                 "a side without bound is written inf");
  }
  return bound;
}

void read_window(const Piece& value, const Key& key, Case& into) {
  const std::size_t comma = value.text.find(',');
  if (comma == std::string_view::npos) {
    value.refuse(fmt::format("{} has no comma", quoted(value.text)),
                 fmt::format("legal is {}", key.form));
  }
  into.problem.window_left = read_bound(value.from(0, comma), key);
  into.problem.window_right = read_bound(value.from(comma + 1), key);
}

void read_q(const Piece& value, const Key& key, Case& into) {
  const auto extents = read_extents(value, key, 4);
  into.problem.batch = extents[0];
  into.problem.query_heads = extents[1];
  into.problem.queries = extents[2];
  into.problem.depth = extents[3];
}

void read_kv(const Piece& value, const Key& key, Case& into) {
  const auto extents = read_extents(value, key, 3);
  into.problem.kv_heads = extents[0];
  into.problem.keys = extents[1];
  into.problem.v_depth = extents[2];
}

void read_fill(const Piece& value, const Key& key, Case& into) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (value.text.empty() || value.text.size() > kFillNameMax ||
      !std::all_of(value.text.begin(), value.text.end(), legal)) {
    value.refuse(fmt::format("{} cannot be the name of a fill", quoted(value.text)),
                 fmt::format("legal is {}: lower-case letters, digits and _", key.form));
  }
  into.fill = value.text;
}

template <bool Problem::*kField>
constexpr Key flag(std::string_view name) {
  return {name, name, [](const Case& c) { return unless(!(c.problem.*kField), ""); },
          [](const Piece&, const Key&, Case& into) { into.problem.*kField = true; }};
}

template <Index Problem::*kField>
constexpr Key count(std::string_view name, std::string_view form) {
  return {name, form,
          [](const Case& c) {
            return unless(c.problem.*kField == Problem{}.*kField, shortest(c.problem.*kField));
          },
          [](const Piece& value, const Key& key, Case& into) {
            into.problem.*kField = read_number<Index>(value, key);
          }};
}

template <std::vector<Index> Problem::*kField>
constexpr Key lengths(std::string_view name, std::string_view form) {
  return {name, form,
          [](const Case& c) {
            const auto& list = c.problem.*kField;
            return unless(list.empty(), fmt::format("{}", fmt::join(list, ",")));
          },
          [](const Piece& value, const Key& key, Case& into) {
            into.problem.*kField = read_list(value, ',', key);
          }};
}

template <auto kField, auto kNames>
constexpr Key named(std::string_view name, std::string_view form) {
  return {name, form,
          [](const Case& c) {
            const auto value = c.problem.*kField;
            return unless(value == Problem{}.*kField, std::string(name_of(value)));
          },
          [](const Piece& value, const Key&, Case& into) {
            into.problem.*kField =
                read_name<std::remove_reference_t<decltype(into.problem.*kField)>>(value, kNames());
          }};
}

// q and kv are printed always, so that no line is empty and every line says how large it is.
const Key kKeys[] = {
    {"q", "q=BATCHxQUERY_HEADSxQUERIESxDEPTH",
     [](const Case& c) -> std::optional<std::string> {
       const Problem& p = c.problem;
       return fmt::format("{}x{}x{}x{}", p.batch, p.query_heads, p.queries, p.depth);
     },
     read_q},
    {"kv", "kv=KV_HEADSxKEYSxV_DEPTH",
     [](const Case& c) -> std::optional<std::string> {
       return fmt::format("{}x{}x{}", c.problem.kv_heads, c.problem.keys, c.problem.v_depth);
     },
     read_kv},
    named<&Problem::input, format_names>("in", "in=FORMAT"),
    named<&Problem::output, format_names>("out", "out=FORMAT"),
    {"scale", "scale=NUMBER",
     [](const Case& c) {
       return unless(c.problem.scale == default_scale(c.problem.depth), shortest(c.problem.scale));
     },
     [](const Piece& value, const Key& key, Case& into) {
       into.problem.scale = read_number<float>(value, key);
     }},
    {"softcap", "softcap=NUMBER",
     [](const Case& c) { return unless(c.problem.softcap == 0, shortest(c.problem.softcap)); },
     [](const Piece& value, const Key& key, Case& into) {
       into.problem.softcap = read_number<double>(value, key);
     }},
    flag<&Problem::causal>("causal"),
    named<&Problem::alignment, alignment_names>("align", "align=NAME"),
    {"window", "window=LEFT,RIGHT, each a count of keys or inf",
     [](const Case& c) {
       const Index left = c.problem.window_left, right = c.problem.window_right;
       return unless(left == kUnbounded && right == kUnbounded,
                     bound_text(left) + "," + bound_text(right));
     },
     read_window},
    flag<&Problem::bias>("bias"),
    flag<&Problem::alibi>("alibi"),
    flag<&Problem::sinks>("sinks"),
    flag<&Problem::mask>("mask"),
    lengths<&Problem::query_lengths>("q_len", "q_len=LENGTH,LENGTH,... one per batch entry"),
    lengths<&Problem::key_lengths>("kv_len", "kv_len=LENGTH,LENGTH,... one per batch entry"),
    named<&Problem::empty_row, empty_row_names>("empty", "empty=NAME"),
    named<&Problem::lse_base, log_base_names>("lse", "lse=NAME"),
    named<&Problem::layout, layout_names>("layout", "layout=NAME"),
    count<&Problem::spare_slots>("spare", "spare=SLOTS"),
    count<&Problem::splits>("splits", "splits=PARTS"),
    count<&Problem::chunk>("chunk", "chunk=TOKENS"),
    {"cache", "cache=FORMAT",
     [](const Case& c) {
       const auto& cache = c.problem.cache;
       return unless(!cache, cache ? std::string(name_of(*cache)) : std::string());
     },
     [](const Piece& value, const Key&, Case& into) {
       into.problem.cache = read_name<Format>(value, format_names());
     }},
    named<&Problem::scales, scales_names>("scales", "scales=NAME"),
    count<&Problem::page_size>("page", "page=SLOTS"),
    count<&Problem::page_order>("order", "order=NUMBER"),
    count<&Problem::ring>("ring", "ring=SLOTS"),
    named<&Problem::rope, rope_names>("rope", "rope=NAME"),
    {"fill", "fill=NAME", [](const Case& c) { return unless(c.fill == "normal", c.fill); },
     read_fill},
    {"seed", "seed=NUMBER", [](const Case& c) { return unless(c.seed == 0, shortest(c.seed)); },
     [](const Piece& value, const Key& key, Case& into) {
       into.seed = read_number<std::uint64_t>(value, key);
     }},
};
constexpr std::size_t kProblemKeys = std::size(kKeys) - 2;  // fill and seed belong to a Case

using Columns = std::array<std::size_t, std::size(kKeys)>;  // where each key stood; 0: it did not

std::string printed(const Case& test_case, std::size_t key_count) {
  std::string line;
  for (const Key& key : std::span(kKeys).first(key_count)) {
    const auto value = key.written(test_case);
    if (!value) continue;
    if (!line.empty()) line += ' ';
    line += key.name;
    if (!key.is_flag()) line += "=" + *value;
  }
  return line;
}

std::size_t find_key(const Piece& name, std::size_t key_count) {
  std::vector<std::string_view> names;
  for (const Key& key : std::span(kKeys).first(key_count)) names.push_back(key.name);
  const auto at = std::find(names.begin(), names.end(), name.text);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  const std::string near = nearest(name.text, names);
  const bool of_case = name.text == "fill" || name.text == "seed";
  name.refuse(of_case ? fmt::format("'{}' says how a case is filled, and only a Problem is asked "
                                    "for here",
                                    name.text)
                      : fmt::format("unknown key {}{}", quoted(name.text),
                                    near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
              fmt::format("legal are {}", fmt::join(names, " ")));
}

void read_token(const Piece& token, std::size_t key_count, Columns& columns, Case& into) {
  const std::size_t equals = token.text.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::size_t index = find_key(token.from(0, equals), key_count);
  const Key& key = kKeys[index];
  if (columns[index] != 0) {
    token.refuse(fmt::format("'{}' stands here a second time", key.name),
                 fmt::format("it was already given in column {}", columns[index]));
  }
  columns[index] = token.column;
  if (has_value && key.is_flag()) {
    token.refuse(fmt::format("{} has a value", quoted(token.text)),
                 fmt::format("'{}' is a flag: it stands alone, or is left out", key.name));
  }
  if (!has_value && !key.is_flag()) {
    token.refuse(fmt::format("'{}' has no value", key.name), fmt::format("legal is {}", key.form));
  }
  key.read(has_value ? token.from(equals + 1) : Piece{}, key, into);
}

Case parsed(std::string_view line, std::size_t key_count) {
  constexpr std::string_view kBlank = " \t";
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  Case result;
  Columns columns{};
  std::size_t at = line.find_first_not_of(kBlank);
  if (at == std::string_view::npos) {
    Piece{}.refuse("the line is empty", "the smallest legal line is " + printed(Case{}, key_count));
  }
  while (at != std::string_view::npos) {
    const std::size_t stop = std::min(line.find_first_of(kBlank, at), line.size());
    read_token({line.substr(at, stop - at), at + 1}, key_count, columns, result);
    at = line.find_first_not_of(kBlank, stop);
  }
  const auto column_of = [&](std::string_view name) {  // 0 when the line does not give it
    return columns[find_key({name, 1}, std::size(kKeys))];
  };
  if (column_of("scale") == 0) {
    result.problem.scale = result.problem.depth >= 1 ? default_scale(result.problem.depth) : 1.0F;
  }
  if (const auto found = illegality(result.problem)) {
    Piece{line, std::max<std::size_t>(1, column_of(found->key))}.refuse(
        "this Problem is impossible", found->reason);
  }
  return result;
}

}  // namespace

std::string print(const Problem& problem) {
  return printed({.problem = problem}, kProblemKeys);
}
std::string print(const Case& test_case) {
  return printed(test_case, std::size(kKeys));
}
Problem parse_problem(std::string_view line) {
  return parsed(line, kProblemKeys).problem;
}
Case parse_case(std::string_view line) {
  return parsed(line, std::size(kKeys));
}

}  // namespace attest
