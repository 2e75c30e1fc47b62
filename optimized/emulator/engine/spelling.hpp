// How an instruction is spelled: its opcode, its types and its modifiers as a set, in any order.
// Knows names only. What a spelling means, and whether that combination exists, is asked of the
// select_NAME functions of the instruction set in use.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

enum class Opcode : std::uint8_t {
#define OPCODE(name, where, operands, modifiers, precision, meaning) name,
#include "optimized/emulator/engine/opcodes.def"
  kCount
};

enum class Modifier : std::uint8_t {
#define MODIFIER(id, text) id,
#include "optimized/emulator/engine/opcodes.def"
  kCount
};

struct ModifierSet {
  std::uint64_t words[4] = {0, 0, 0, 0};
  [[gnu::always_inline]] constexpr bool has(Modifier m) const {
    return (words[unsigned(m) / 64] >> (unsigned(m) % 64)) & 1;
  }
  [[gnu::always_inline]] constexpr void add(Modifier m) {
    words[unsigned(m) / 64] |= std::uint64_t{1} << (unsigned(m) % 64);
  }
  [[gnu::always_inline]] constexpr void remove(Modifier m) {
    words[unsigned(m) / 64] &= ~(std::uint64_t{1} << (unsigned(m) % 64));
  }
};

enum class Rounding : std::uint8_t { nearest, zero, down, up };

struct Spelling {
  Opcode opcode = Opcode::kCount;
  ptx::Type types[4] = {};  // in the order written
  unsigned type_count = 0;
  ModifierSet modifiers;
  unsigned vector = 1;
  unsigned operands = 0;  // how many the instruction has, the destination included
  [[gnu::always_inline]] bool has(Modifier m) const { return modifiers.has(m); }
  [[gnu::always_inline]] ptx::Type type() const { return types[0]; }
  [[gnu::always_inline]] Rounding rounding() const {
    if (has(Modifier::rz)) return Rounding::zero;
    if (has(Modifier::rm)) return Rounding::down;
    return has(Modifier::rp) ? Rounding::up : Rounding::nearest;
  }
};

/// What one row of opcodes.def says.
struct OpcodeRow {
  std::string_view name, operands, modifiers, precision, meaning;
};
const OpcodeRow& row_of(Opcode opcode);

/// What one row of unsupported.def says.
struct UnsupportedRow {
  std::string_view spelling, what, instead;
};
std::span<const UnsupportedRow> unsupported_opcodes();
std::span<const UnsupportedRow> unsupported_forms();

/// Reads an instruction's opcode and modifiers. On failure `problem` says what is not known.
struct SpellingResult {
  Spelling spelling;
  std::string problem;
};
SpellingResult spell(const ptx::Instruction& instruction);

/// Adds one word after the opcode, without its dot. False when the opcode does not know it.
bool add_word(Spelling& spelling, std::string_view word);

/// Whether PTX defines this combination of types and modifiers: forms.def. True for opcodes that
/// have no row there.
bool is_defined(const Spelling& spelling);

/// What tells two spellings of one opcode apart: modifiers and types, but for where memory is and
/// in which order others see it.
std::array<std::uint64_t, 5> combination_of(const Spelling& spelling);

/// Every combination forms.def defines for the opcode, as written: "rn.ftz.f32". Empty when it has
/// no row there.
std::vector<std::string> forms_of(Opcode opcode);

/// The patterns themselves, as the page prints them.
std::vector<std::string_view> patterns_of(Opcode opcode);

/// The instruction as written: "fma.rn.ftz.f32".
std::string written(const ptx::Instruction& instruction);

}  // namespace attest::emulator
