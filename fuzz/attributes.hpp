// Attributes: what `--where` can ask of a Problem, by name. Numbers and names have values
// (head_dim=64, in=bf16); words are there or not (causal, no-causal). Knows nothing of how what was
// typed is read.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem.hpp"
#include "reference/subject.hpp"

namespace attest {

struct Attribute {
  std::string_view name;
  std::string_view also;                      // another name that is accepted; may be empty
  std::string_view what;                      // a phrase
  std::uint32_t asked_by;                     // a bit per Operation that it means something to
  Index (*value)(const Problem&) = nullptr;   // of a word: null
  bool (*present)(const Problem&) = nullptr;  // of a word only
  void (*set)(Problem&, Index) = nullptr;     // of a number only
  std::span<const std::string_view> (*names)() = nullptr;  // of a name only: those of its values
  void (*set_otherwise)(Problem&, Index) = nullptr;  // at the cost of other attributes; may be null

  bool is_word() const { return present != nullptr; }
  bool is_asked_by(Operation operation) const {
    return (asked_by >> static_cast<unsigned>(operation) & 1U) != 0;
  }
};

/// Numbers, then names, then words: those of features.hpp. A word may have the name of a number.
const std::vector<Attribute>& attributes();

/// As it is typed: "head_dim=NUMBER", "layout=bhtd|bthd", "causal".
std::string form_of(const Attribute& attribute);
/// A phrase, with the other name and the operations that it leaves as they are.
std::string meaning_of(const Attribute& attribute);

}  // namespace attest
