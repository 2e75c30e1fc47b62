// Reads opcodes and modifiers against opcodes.def.
#include "optimized/emulator/engine/spelling.hpp"

#include <array>
#include <unordered_map>

namespace attest::emulator {
namespace {

/// C++ keywords carry a trailing underscore in opcodes.def.
std::string_view plain(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

constexpr OpcodeRow kRows[] = {
#define OPCODE(name, where, operands, modifiers, precision, meaning) \
  {#name, operands, modifiers, precision, meaning},
#include "optimized/emulator/engine/opcodes.def"
};

constexpr std::string_view kModifierNames[] = {
#define MODIFIER(id, text) text,
#include "optimized/emulator/engine/opcodes.def"
};
static_assert(std::size(kModifierNames) <= 192, "ModifierSet has three words");

const std::unordered_map<std::string_view, Opcode>& opcodes_by_name() {
  static const auto map = [] {
    std::unordered_map<std::string_view, Opcode> m;
    for (std::size_t i = 0; i < std::size(kRows); ++i) m.emplace(plain(kRows[i].name), Opcode(i));
    return m;
  }();
  return map;
}

const std::unordered_map<std::string_view, Modifier>& modifiers_by_name() {
  static const auto map = [] {
    std::unordered_map<std::string_view, Modifier> m;
    for (std::size_t i = 0; i < std::size(kModifierNames); ++i) {
      m.emplace(kModifierNames[i], Modifier(i));
    }
    return m;
  }();
  return map;
}

/// The modifiers each row allows, as sets.
const std::array<ModifierSet, std::size(kRows)>& allowed_modifiers() {
  static const auto sets = [] {
    std::array<ModifierSet, std::size(kRows)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string_view rest = kRows[i].modifiers;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        all[i].add(modifiers_by_name().at(rest.substr(0, end)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return all;
  }();
  return sets;
}

/// Formats without a register type of their own are held in plain bits.
ptx::Type bits_holding(std::string_view format) {
  if (format == "e4m3x2" || format == "e5m2x2") return ptx::Type::b16;
  if (format == "tf32" || format == "u16x2" || format == "s16x2") return ptx::Type::b32;
  return ptx::Type::none;
}

/// Cache hints change no result; they are accepted wherever PTX allows modifiers.
bool is_hint(std::string_view modifier) {
  return modifier.starts_with("L1::") || modifier.starts_with("L2::") || modifier == "unified";
}

}  // namespace

const OpcodeRow& row_of(Opcode opcode) {
  return kRows[std::size_t(opcode)];
}

SpellingResult spell(const ptx::Instruction& instruction) {
  SpellingResult result;
  const auto opcode = opcodes_by_name().find(instruction.opcode);
  if (opcode == opcodes_by_name().end()) {
    result.problem = "the opcode '" + instruction.opcode + "' is not in opcodes.def";
    return result;
  }
  Spelling& spelling = result.spelling;
  spelling.opcode = opcode->second;
  for (const std::string& text : instruction.modifiers) {
    if (is_hint(text)) continue;
    const auto known = modifiers_by_name().find(text);
    if (known != modifiers_by_name().end() &&
        allowed_modifiers()[std::size_t(spelling.opcode)].has(known->second)) {
      spelling.modifiers.add(known->second);
      const ptx::Type held = bits_holding(text);
      if (held != ptx::Type::none && spelling.type_count < std::size(spelling.types)) {
        spelling.types[spelling.type_count++] = held;
      }
      if (text == "v2") spelling.vector = 2;
      if (text == "v4") spelling.vector = 4;
      if (text == "v8") spelling.vector = 8;
      continue;
    }
    const auto type = ptx::type_named(text);
    if (type && spelling.type_count < std::size(spelling.types)) {
      spelling.types[spelling.type_count++] = *type;
      continue;
    }
    result.problem = "the modifier '." + text + "' of '" + instruction.opcode + "' is not known";
  }
  return result;
}

std::string written(const ptx::Instruction& instruction) {
  std::string text = instruction.opcode;
  for (const std::string& modifier : instruction.modifiers) text += "." + modifier;
  return text;
}

}  // namespace attest::emulator
