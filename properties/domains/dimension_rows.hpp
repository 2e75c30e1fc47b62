// What rows of the table of dimensions are made of: which operations read it, how its values are
// called, fields and flags. Only for dimensions.cpp.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/domains/dimensions.hpp"
#include "reference/text.hpp"

namespace attest::rows {

using Edit = std::function<void(Problem&)>;
using Edits = std::vector<Edit>;

inline bool never(const Needs&) {
  return false;
}
inline bool shows_all(const Needs& n) {
  return n.two_keys || n.many_rows || n.whole_tiles || n.sequence;
}
/// The path needs a narrow cache; what a cache has rounded is neither what was given, nor
/// recomputed, nor the same work.
inline bool keeps_cache(const Needs& n) {
  return n.path || n.stored_bits || n.sequence || n.whole_tiles;
}

/// A cache in the format of the input is none of its own, unless it has scales.
inline void forget_same_cache(Problem& p) {
  if (p.cache == p.input && p.scales == Scales::none) p.cache.reset();
}

inline bool any(Operation) {
  return true;
}
inline bool attention(Operation operation) {
  return operation == Operation::prefill || operation == Operation::decode;
}
inline bool biased(Operation operation) {
  return attention(operation) || operation == Operation::projection;
}
inline bool decode(Operation operation) {
  return operation == Operation::decode;
}
inline bool append(Operation operation) {
  return operation == Operation::append;
}
inline bool cached(Operation operation) {
  return decode(operation) || append(operation);
}
inline bool stored(Operation operation) {
  return cached(operation) || operation == Operation::copy_pages;
}
inline bool sequences(Operation operation) {
  return attention(operation) || append(operation);
}
inline bool heads_and_rows(Operation operation) {
  return operation != Operation::projection;
}

using Word = std::function<std::string(const Problem&)>;

/// A row whose kinds of values are drawn in pairs, and, where it has extents too, each extent once.
inline Dimension paired(Dimension row, bool (*asked_by)(Operation), Word kind, Word word = {}) {
  row.asked_by = asked_by;
  row.word = word ? std::move(word) : kind;
  row.kind = std::move(kind);
  return row;
}

/// A row of extents: pairs of them would say little, so each is drawn once.
inline Dimension single(Dimension row, bool (*asked_by)(Operation), Word word) {
  row.asked_by = asked_by;
  row.word = std::move(word);
  return row;
}

/// "causal", "no causal".
template <class Present>
Word has(std::string_view name, Present present) {
  return [name, present](const Problem& p) {
    return present(p) ? std::string(name) : fmt::format("no {}", name);
  };
}

template <auto kField>
Word number(std::string_view name) {
  return [name](const Problem& p) { return fmt::format("{}={}", name, p.*kField); };
}

template <auto kField>
Word choice(std::string_view name) {
  return [name](const Problem& p) { return fmt::format("{}={}", name, name_of(p.*kField)); };
}

template <auto kField>
void take_field(Problem& to, const Problem& from) {
  to.*kField = from.*kField;
}

template <auto kField, class... Values>
Edits set_to(Values... values) {
  using Field = std::remove_reference_t<decltype(Problem{}.*kField)>;
  return {Edit([values](Problem& p) { p.*kField = static_cast<Field>(values); })...};
}

template <auto kField, class... Values>
Dimension field(std::string_view name, bool (*fixed)(const Needs&), Values... values) {
  return {name, take_field<kField>, set_to<kField>(values...), fixed};
}

template <bool Problem::*kField>
Dimension flag(std::string_view name, bool (*fixed)(const Needs&),
               bool (*asked_by)(Operation) = attention) {
  return paired(field<kField>(name, fixed, false, true), asked_by,
                has(name, [](const Problem& p) { return p.*kField; }));
}

}  // namespace attest::rows
