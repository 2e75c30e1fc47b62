// The one-line text of a Problem and of a Case: one table of keys, in the order in which they are
// printed, each with how it is written and how it is read. Keys are stable for ever: lines live in
// corpora and in people's notes. For people the table is a list: case_words.hpp.
#include "reference/case_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reference/line_words.hpp"
#include "reference/names.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr std::size_t kFillNameMax = 64;  // longer than any name worth typing

struct Key : Word {
  std::string_view what, left_out;  // for people, as in CaseWord
  /// The value as printed; empty for a flag that is set; nothing when it is the default.
  std::optional<std::string> (*written)(const Case&);
  void (*read)(const Piece& value, const Word& word, Case& into);
};

std::vector<Index> read_list(const Piece& value, char separator, const Word& word) {
  std::vector<Index> numbers;
  for (std::size_t start = 0;;) {
    const std::size_t stop = std::min(value.text.find(separator, start), value.text.size());
    numbers.push_back(read_number<Index>(value.from(start, stop - start), word.form));
    if (stop == value.text.size()) return numbers;
    start = stop + 1;
  }
}

std::vector<Index> read_extents(const Piece& value, const Word& word, std::size_t count) {
  std::vector<Index> extents = read_list(value, 'x', word);
  if (extents.size() != count) {
    value.refuse(fmt::format("{} has {} numbers", quoted(value.text), extents.size()),
                 fmt::format("{} takes {}: {}", word.name, count, word.form));
  }
  return extents;
}

std::optional<std::string> unless(bool is_default, std::string value) {
  if (is_default) return {};
  return value;
}

std::string bound_text(Index bound) {
  return bound == kUnbounded ? "inf" : shortest(bound);
}

Index read_bound(const Piece& piece, const Word& word) {
  if (piece.text == "inf") return kUnbounded;
  const auto bound = read_number<Index>(piece, word.form);
  if (bound < 0) {
    piece.refuse(fmt::format("{} is negative", quoted(piece.text)),
                 "a side without bound is written inf");
  }
  return bound;
}

void read_window(const Piece& value, const Word& word, Case& into) {
  const std::size_t comma = value.text.find(',');
  if (comma == std::string_view::npos) {
    value.refuse(fmt::format("{} has no comma", quoted(value.text)),
                 fmt::format("legal is {}, each a count of keys or inf", word.form));
  }
  into.problem.window_left = read_bound(value.from(0, comma), word);
  into.problem.window_right = read_bound(value.from(comma + 1), word);
}

std::string strided_text(std::uint32_t strided) {
  std::string text;
  for (std::size_t n = 0; n < kStridedWords; ++n) {
    if ((strided >> n & 1U) == 0) continue;
    text += (text.empty() ? "" : ",") + std::string(strided_names()[n]);
  }
  return text;
}

void read_strided(const Piece& value, const Word&, Case& into) {
  into.problem.strided = 0;
  for (std::size_t start = 0;;) {
    const std::size_t stop = std::min(value.text.find(',', start), value.text.size());
    into.problem.strided |= 1U << read_name(value.from(start, stop - start), strided_names());
    if (stop == value.text.size()) return;
    start = stop + 1;
  }
}

void read_q(const Piece& value, const Word& word, Case& into) {
  const auto extents = read_extents(value, word, 4);
  into.problem.batch = extents[0];
  into.problem.num_heads_q = extents[1];
  into.problem.seqlen_q = extents[2];
  into.problem.head_dim = extents[3];
}

void read_kv(const Piece& value, const Word& word, Case& into) {
  const auto extents = read_extents(value, word, 3);
  into.problem.num_heads_kv = extents[0];
  into.problem.seqlen_kv = extents[1];
  into.problem.head_dim_v = extents[2];
}

void read_fill(const Piece& value, const Word& word, Case& into) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (value.text.empty() || value.text.size() > kFillNameMax ||
      !std::all_of(value.text.begin(), value.text.end(), legal)) {
    value.refuse(fmt::format("{} cannot be the name of a fill", quoted(value.text)),
                 fmt::format("legal is {}: lower-case letters, digits and _", word.form));
  }
  into.fill = value.text;
}

template <bool Problem::*kField>
constexpr Key flag(std::string_view name, std::string_view what) {
  return {{name, name},
          what,
          "no",
          [](const Case& c) { return unless(!(c.problem.*kField), ""); },
          [](const Piece&, const Word&, Case& into) { into.problem.*kField = true; }};
}

template <Index Problem::*kField>
constexpr Key count(std::string_view name, std::string_view form, std::string_view what,
                    std::string_view left_out) {
  return {{name, form},
          what,
          left_out,
          [](const Case& c) {
            return unless(c.problem.*kField == Problem{}.*kField, shortest(c.problem.*kField));
          },
          [](const Piece& value, const Word& word, Case& into) {
            into.problem.*kField = read_number<Index>(value, word.form);
          }};
}

template <std::vector<Index> Problem::*kField>
constexpr Key lengths(std::string_view name, std::string_view form, std::string_view what,
                      std::string_view left_out) {
  return {{name, form},
          what,
          left_out,
          [](const Case& c) {
            const auto& list = c.problem.*kField;
            return unless(list.empty(), fmt::format("{}", fmt::join(list, ",")));
          },
          [](const Piece& value, const Word& word, Case& into) {
            into.problem.*kField = read_list(value, ',', word);
          }};
}

template <auto kField, auto kNames>
constexpr Key named(std::string_view name, std::string_view form, std::string_view what,
                    std::string_view left_out) {
  return {{name, form},
          what,
          left_out,
          [](const Case& c) {
            const auto value = c.problem.*kField;
            return unless(value == Problem{}.*kField, std::string(name_of(value)));
          },
          [](const Piece& value, const Word&, Case& into) {
            using Enumeration = std::remove_reference_t<decltype(into.problem.*kField)>;
            into.problem.*kField = static_cast<Enumeration>(read_name(value, kNames()));
          }};
}

/// A key that is read by another spelling too.
constexpr Key also(std::string_view name, Key key) {
  key.also = name;
  return key;
}

// q and kv are printed always, so that no line is empty and every line says how large it is.
const Key kKeys[] = {
    {{"q", "q=BATCHxNUM_HEADS_QxSEQLEN_QxHEAD_DIM"},
     "extents of the queries; HEAD_DIM is the width of q and k",
     "1x1x1x1",
     [](const Case& c) -> std::optional<std::string> {
       const Problem& p = c.problem;
       return fmt::format("{}x{}x{}x{}", p.batch, p.num_heads_q, p.seqlen_q, p.head_dim);
     },
     read_q},
    {{"kv", "kv=NUM_HEADS_KVxSEQLEN_KVxHEAD_DIM_V"},
     "extents of keys and values; NUM_HEADS_KV divides NUM_HEADS_Q",
     "1x1x1",
     [](const Case& c) -> std::optional<std::string> {
       return fmt::format("{}x{}x{}", c.problem.num_heads_kv, c.problem.seqlen_kv,
                          c.problem.head_dim_v);
     },
     read_kv},
    named<&Problem::input, format_names>("in", "in=f32|f16|bf16|e4m3|e5m2", "format of q, k and v",
                                         "f32"),
    named<&Problem::output, format_names>("out", "out=f32|f16|bf16", "format of o", "f32"),
    {{"scale", "scale=NUMBER", "softmax_scale"},
     "multiplies q.k",
     "1/sqrt(HEAD_DIM), rounded to f32",
     [](const Case& c) {
       return unless(c.problem.softmax_scale == default_scale(c.problem.head_dim),
                     shortest(c.problem.softmax_scale));
     },
     [](const Piece& value, const Word& word, Case& into) {
       into.problem.softmax_scale = read_number<float>(value, word.form);
     }},
    {{"softcap", "softcap=NUMBER"},
     "logits become NUMBER tanh(logit / NUMBER); 0 is off",
     "0",
     [](const Case& c) { return unless(c.problem.softcap == 0, shortest(c.problem.softcap)); },
     [](const Piece& value, const Word& word, Case& into) {
       into.problem.softcap = read_number<double>(value, word.form);
     }},
    flag<&Problem::causal>("causal", "no query sees a key after its own position"),
    named<&Problem::alignment, alignment_names>(
        "align", "align=bottom_right|top_left",
        "which query and key stand at the same position: the last of both, or the first",
        "bottom_right"),
    {{"window", "window=LEFT,RIGHT"},
     "how many keys to either side of its position a query sees, each a count or inf",
     "inf,inf",
     [](const Case& c) {
       const Index left = c.problem.window_left, right = c.problem.window_right;
       return unless(left == kUnbounded && right == kUnbounded,
                     bound_text(left) + "," + bound_text(right));
     },
     read_window},
    flag<&Problem::bias>("bias", "a number per query and key is added to the logits"),
    flag<&Problem::alibi>("alibi", "slopes times the distance are subtracted from the logits"),
    flag<&Problem::sinks>("sinks", "a logit per head joins the row sum, with no value"),
    flag<&Problem::mask>("mask", "which keys a query sees is said one by one"),
    also("seqlens_q",
         lengths<&Problem::seqlens_q>("q_len", "q_len=LENGTH,LENGTH,...",
                                      "queries that exist, one number per batch entry", "all")),
    also("seqlens_kv",
         lengths<&Problem::seqlens_kv>("kv_len", "kv_len=LENGTH,LENGTH,...",
                                       "keys that exist, one number per batch entry", "all")),
    named<&Problem::empty_row, empty_row_names>("empty", "empty=zero|nan",
                                                "what o is in a row that sees no key", "zero"),
    named<&Problem::empty_lse, empty_lse_names>("empty_lse", "empty_lse=minus_inf|plus_inf",
                                                "what lse is in a row that sees no key and no sink",
                                                "minus_inf"),
    named<&Problem::lse_base, log_base_names>(
        "lse", "lse=e|two|none", "which logarithm lse is; none: it is not asked for", "e"),
    named<&Problem::layout, layout_names>("layout", "layout=bhtd|bthd",
                                          "axes in memory: heads before rows, or rows before heads",
                                          "bhtd"),
    {{"strided", "strided=TENSOR,TENSOR,..."},
     "tensors with gaps behind rows, heads and batch entries: of q, k, v, o, lse, bias, mask, "
     "scales, "
     "table (of blocks), fresh (rows to append); far: gaps so wide that offsets exceed 32 bits",
     "no gaps",
     [](const Case& c) { return unless(c.problem.strided == 0, strided_text(c.problem.strided)); },
     read_strided},
    count<&Problem::spare_slots>("spare", "spare=SLOTS", "cache slots behind the last key", "0"),
    also("num_splits", count<&Problem::num_splits>("splits", "splits=PARTS",
                                                   "parts of the keys in a decode", "1")),
    count<&Problem::chunk>("chunk", "chunk=TOKENS", "tokens of a step, where steps are compared",
                           "1"),
    {{"cache", "cache=f32|f16|bf16|e4m3|e5m2|i8"},
     "format of k and v as stored",
     "that of in",
     [](const Case& c) {
       const auto& cache = c.problem.cache;
       return unless(!cache, cache ? std::string(name_of(*cache)) : std::string());
     },
     [](const Piece& value, const Word&, Case& into) {
       into.problem.cache = static_cast<Format>(read_name(value, format_names()));
     }},
    named<&Problem::scales, scales_names>(
        "scales", "scales=none|tensor|head|token",
        "factors on stored k and v: one for all, per head or per token; with 8-bit caches only",
        "none"),
    also("page_size", count<&Problem::page_size>("page", "page=SLOTS",
                                                 "slots of a page of the cache; 0: no pages", "0")),
    count<&Problem::page_order>("order", "order=NUMBER",
                                "seed of where pages lie in memory; 0: in order", "0"),
    count<&Problem::ring>(
        "ring", "ring=SLOTS",
        "slots of a cache that is a ring, which needs a left window; 0: it is none", "0"),
    named<&Problem::rope, rope_names>("rope", "rope=none|halves|pairs",
                                      "how an append turns keys, which have an even head_dim",
                                      "none"),
    {{"fill", "fill=NAME"},
     "what values are made of: `attest list fills`",
     "normal",
     [](const Case& c) { return unless(c.fill == "normal", c.fill); },
     read_fill},
    {{"seed", "seed=NUMBER"},
     "which values of that kind",
     "0",
     [](const Case& c) { return unless(c.seed == 0, shortest(c.seed)); },
     [](const Piece& value, const Word& word, Case& into) {
       into.seed = read_number<std::uint64_t>(value, word.form);
     }},
};
constexpr std::size_t kProblemKeys = std::size(kKeys) - 2;  // fill and seed belong to a Case

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

std::string only_of_a_case(std::string_view name) {
  if (name != "fill" && name != "seed") return {};
  return fmt::format("'{}' says how a case is filled, and only a Problem is asked for here", name);
}

Case parsed(std::string_view line, std::size_t key_count) {
  const Piece whole{"case line", line};
  const std::vector<Word> words(std::begin(kKeys), std::begin(kKeys) + key_count);
  Case result;
  const Columns columns = read_words(
      whole, words, printed(Case{}, key_count),
      [&](std::size_t n, const Piece& value) { kKeys[n].read(value, kKeys[n], result); },
      only_of_a_case);
  const auto column_of = [&](std::string_view name) {  // 0 when the line does not give it
    const auto at =
        std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.name == name; });
    return at == words.end() ? 0 : columns[static_cast<std::size_t>(at - words.begin())];
  };
  if (column_of("scale") == 0) {
    result.problem.softmax_scale =
        result.problem.head_dim >= 1 ? default_scale(result.problem.head_dim) : 1.0F;
  }
  if (const auto found = illegality(result.problem)) {
    whole.from(std::max<std::size_t>(1, column_of(found->key)) - 1)
        .refuse("this Problem is impossible", found->reason);
  }
  return result;
}

}  // namespace

std::vector<CaseWord> case_words() {
  std::vector<CaseWord> words;
  for (std::size_t n = 0; n < std::size(kKeys); ++n) {
    const Key& key = kKeys[n];
    words.push_back({key.name, key.form, key.what, key.left_out, n < kProblemKeys});
  }
  return words;
}

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
