// Reads forms.def: which combinations of types and modifiers PTX defines. Knows nothing of what
// they compute. An opcode's patterns are expanded when it is first asked for.
#include <array>
#include <mutex>
#include <unordered_set>

#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

struct Pattern {
  Opcode opcode;
  std::string_view words;
};
constexpr Pattern kPatterns[] = {
#define FORM(opcode, pattern) {Opcode::opcode, pattern},
#include "optimized/emulator/engine/forms.def"
};

using Combination = std::array<std::uint64_t, 5>;
struct Hash {
  std::size_t operator()(const Combination& c) const {
    std::uint64_t h = 0;
    for (const std::uint64_t word : c) {
      h = (h ^ word) * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: Fibonacci hashing
      h ^= h >> 32;
    }
    return h;
  }
};

/// Where a value lives and in which order others see it do not change what is computed.
bool is_transparent(Opcode opcode) {
  return opcode == Opcode::atom || opcode == Opcode::red || opcode == Opcode::ld ||
         opcode == Opcode::ldu || opcode == Opcode::st;
}
constexpr Modifier kPlacement[] = {
    Modifier::global,     Modifier::shared,    Modifier::shared_cta, Modifier::shared_cluster,
    Modifier::relaxed,    Modifier::acquire,   Modifier::release,    Modifier::acq_rel,
    Modifier::cta,        Modifier::cluster,   Modifier::gpu,        Modifier::sys,
    Modifier::local,      Modifier::constant,  Modifier::param,      Modifier::param_entry,
    Modifier::param_func, Modifier::volatile_, Modifier::weak,       Modifier::nc,
    Modifier::ca,         Modifier::cg,        Modifier::cs,         Modifier::cv,
    Modifier::lu,         Modifier::wb,        Modifier::wt};

/// One place of a pattern: the words that may stand there, an empty one when it may stay free.
std::vector<std::vector<std::string_view>> places_of(std::string_view pattern) {
  std::vector<std::vector<std::string_view>> places;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find(' '), pattern.size());
    std::string_view place = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
    std::vector<std::string_view>& words = places.emplace_back();
    if (place.front() == '[') words.emplace_back();
    if (place.front() == '[' || place.front() == '(') place = place.substr(1, place.size() - 2);
    while (!place.empty()) {
      const std::size_t bar = std::min(place.find('|'), place.size());
      words.push_back(place.substr(0, bar));
      place.remove_prefix(std::min(bar + 1, place.size()));
    }
  }
  return places;
}

/// Calls visit(spelling, text) for every combination of the places from `at` on.
template <class F>
void expand(const std::vector<std::vector<std::string_view>>& places, std::size_t at,
            const Spelling& so_far, const std::string& text, const F& visit) {
  if (at == places.size()) {
    visit(so_far, text);
    return;
  }
  for (const std::string_view word : places[at]) {
    if (word.empty()) {
      expand(places, at + 1, so_far, text, visit);
      continue;
    }
    Spelling further = so_far;
    add_word(further, word);
    std::string longer = text;
    if (!longer.empty()) longer += '.';
    expand(places, at + 1, further, longer.append(word), visit);
  }
}

template <class F>
void for_each_form(Opcode opcode, const F& visit) {
  for (const Pattern& pattern : kPatterns) {
    if (pattern.opcode != opcode) continue;
    Spelling start;
    start.opcode = opcode;
    expand(places_of(pattern.words), 0, start, {}, visit);
  }
}

struct OpcodeForms {
  std::once_flag once;
  std::unordered_set<Combination, Hash> combinations;
};

}  // namespace

std::array<std::uint64_t, 5> combination_of(const Spelling& spelling) {
  ModifierSet modifiers = spelling.modifiers;
  if (is_transparent(spelling.opcode)) {
    for (const Modifier m : kPlacement) modifiers.remove(m);
  }
  Combination c{};
  for (std::size_t i = 0; i < 4; ++i) c[i] = modifiers.words[i];
  for (unsigned i = 0; i < spelling.type_count; ++i)
    c[4] |= std::uint64_t(spelling.types[i]) << (8 * i);
  return c;
}

bool is_defined(const Spelling& spelling) {
  static std::array<OpcodeForms, std::size_t(Opcode::kCount)> all;
  OpcodeForms& forms = all[std::size_t(spelling.opcode)];
  std::call_once(forms.once, [&] {
    for_each_form(spelling.opcode, [&](const Spelling& s, const std::string&) {
      forms.combinations.insert(combination_of(s));
    });
  });
  return forms.combinations.empty() || forms.combinations.contains(combination_of(spelling));
}

std::vector<std::string> forms_of(Opcode opcode) {
  std::vector<std::string> forms;
  for_each_form(opcode, [&](const Spelling&, const std::string& text) { forms.push_back(text); });
  return forms;
}

std::vector<std::string_view> patterns_of(Opcode opcode) {
  std::vector<std::string_view> patterns;
  for (const Pattern& pattern : kPatterns) {
    if (pattern.opcode == opcode) patterns.push_back(pattern.words);
  }
  return patterns;
}

}  // namespace attest::emulator
