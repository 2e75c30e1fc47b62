// Which bits of an instruction's result are undefined when some of its operands' are. Pure; knows
// no registers and no lanes.
#pragma once
#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/engine/spelling.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

/// The operands of one lane behind the destination: which of their bits are undefined, and what
/// they hold. `known` is false for those whose value cannot be told.
struct OperandBits {
  static constexpr u32 kMost = 5;
  u64 undefined[kMost] = {}, value[kMost] = {};
  bool known[kMost] = {};
  u32 count = 0;
};

/// The undefined bits of what `i` gives; more of them where the rule is not known more closely.
/// Bits above the result's width mean nothing.
u64 undefined_result(const ptx::Instruction& i, const Spelling& spelling, const OperandBits& in);

}  // namespace attest::emulator
