// How an instruction is spelled: its opcode, its types and its modifiers as a set, in any order.
// Knows names only. What a spelling means, and whether that combination exists, is asked of the
// select_NAME functions of the instruction set in use.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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
  std::uint64_t words[3] = {0, 0, 0};
  [[gnu::always_inline]] constexpr bool has(Modifier m) const {
    return (words[unsigned(m) / 64] >> (unsigned(m) % 64)) & 1;
  }
  [[gnu::always_inline]] constexpr void add(Modifier m) {
    words[unsigned(m) / 64] |= std::uint64_t{1} << (unsigned(m) % 64);
  }
};

enum class Rounding : std::uint8_t { nearest, zero, down, up };

struct Spelling {
  Opcode opcode = Opcode::kCount;
  ptx::Type types[4] = {};  // in the order written
  unsigned type_count = 0;
  ModifierSet modifiers;
  unsigned vector = 1;
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

/// Reads an instruction's opcode and modifiers. On failure `problem` says what is not known.
struct SpellingResult {
  Spelling spelling;
  std::string problem;
};
SpellingResult spell(const ptx::Instruction& instruction);

/// The instruction as written: "fma.rn.ftz.f32".
std::string written(const ptx::Instruction& instruction);

}  // namespace attest::emulator
