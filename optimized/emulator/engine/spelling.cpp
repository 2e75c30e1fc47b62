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
static_assert(std::size(kModifierNames) <= 256, "ModifierSet has four words");

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
  constexpr std::pair<std::string_view, ptx::Type> kHeld[] = {
      {"e4m3x2", ptx::Type::b16}, {"e5m2x2", ptx::Type::b16}, {"e2m3x2", ptx::Type::b16},
      {"e3m2x2", ptx::Type::b16}, {"e2m1x2", ptx::Type::b8},  {"ue8m0x2", ptx::Type::b16},
      {"tf32", ptx::Type::b32},   {"u16x2", ptx::Type::b32},  {"s16x2", ptx::Type::b32},
      {"f32x2", ptx::Type::b64}};
  for (const auto& [name, type] : kHeld) {
    if (name == format) return type;
  }
  return ptx::Type::none;
}

/// Cache hints change no result; they are accepted wherever PTX allows modifiers.
bool is_hint(std::string_view modifier) {
  return modifier.starts_with("L1::") || modifier.starts_with("L2::") || modifier == "unified";
}

}  // namespace

std::span<const UnsupportedRow> unsupported_opcodes() {
  static constexpr UnsupportedRow kOpcodes[] = {
#define UNSUPPORTED(opcode, what, instead) {#opcode, what, instead},
#include "optimized/emulator/engine/unsupported.def"
  };
  return kOpcodes;
}

std::span<const UnsupportedRow> unsupported_forms() {
  static constexpr UnsupportedRow kForms[] = {
#define UNSUPPORTED_FORM(spelling, what, instead) {spelling, what, instead},
#include "optimized/emulator/engine/unsupported.def"
  };
  return kForms;
}

const OpcodeRow& row_of(Opcode opcode) {
  return kRows[std::size_t(opcode)];
}

SpellingResult spell(const ptx::Instruction& instruction) {
  SpellingResult result;
  const auto opcode = opcodes_by_name().find(instruction.opcode);
  if (opcode == opcodes_by_name().end()) {
    result.problem = "PTX has no such opcode, or only after 9.0";
    for (const UnsupportedRow& row : unsupported_opcodes()) {
      if (row.spelling == instruction.opcode)
        result.problem = std::string(row.what) + "; " + std::string(row.instead);
    }
    return result;
  }
  result.spelling.opcode = opcode->second;
  result.spelling.operands = unsigned(instruction.operands.size());
  for (const std::string& text : instruction.modifiers) {
    if (!add_word(result.spelling, text))
      result.problem = "the modifier '." + text + "' of '" + instruction.opcode + "' is not known";
  }
  return result;
}

bool add_word(Spelling& spelling, std::string_view word) {
  if (is_hint(word)) return true;
  const auto known = modifiers_by_name().find(word);
  if (known != modifiers_by_name().end() &&
      allowed_modifiers()[std::size_t(spelling.opcode)].has(known->second)) {
    spelling.modifiers.add(known->second);
    const ptx::Type held = bits_holding(word);
    if (held != ptx::Type::none && spelling.type_count < std::size(spelling.types))
      spelling.types[spelling.type_count++] = held;
    if (word == "v2") spelling.vector = 2;
    if (word == "v4") spelling.vector = 4;
    if (word == "v8") spelling.vector = 8;
    return true;
  }
  const auto type = ptx::type_named(word);
  if (!type || spelling.type_count >= std::size(spelling.types)) return false;
  spelling.types[spelling.type_count++] = *type;
  return true;
}

std::string written(const ptx::Instruction& instruction) {
  std::string text = instruction.opcode;
  for (const std::string& modifier : instruction.modifiers) text += "." + modifier;
  return text;
}

}  // namespace attest::emulator
