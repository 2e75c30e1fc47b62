// The instruction sets of the host for which the handlers are compiled, and the choice among them.
// All three give the same bits; they differ in speed only.
#pragma once
#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {

/// The handlers the decoder places by itself, beside those it asks a spelling for.
enum class Plain : u8 {
  guarded,          // runs `inner` for the lanes of the guard
  uncounted,        // runs `inner`, which is no instruction of the text
  join,             // a block leader
  bra,              // unconditional
  bra_conditional,  // on predicate a
  copy_narrow,      // d = a
  copy_wide,
  widen_unsigned,  // wide d = narrow a
  widen_signed,
  truncate,         // narrow d = wide a
  predicate_logic,  // choice: 0 and, 1 or, 2 xor, 3 not, 4 copy; a, b: predicates
  predicate_constant,
  select_narrow,  // d = c ? a : b
  select_wide,
  special_narrow,  // choice: which special register
  special_wide,
  frame_address,  // wide d = immediate + local base of the frame
  frame_address_narrow,
  pack_wide,  // wide d = a | b << 32
  high_word,  // narrow d = wide a >> 32
  nothing,
  kCount
};

enum class Special : u8 {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  globaltimer,
  total_smem_size,
  dynamic_smem_size,
  envreg1,
  envreg2,
  zero,
  one,
  kCount
};

/// Width of a memory element and how it fills its register.
enum class Element : std::uint8_t { byte, signed_byte, half, signed_half, word, twin, kCount };

struct InstructionSet {
  const char* name;
  Handler (*select[std::size_t(Opcode::kCount)])(const Spelling&);
  Handler plain[std::size_t(Plain::kCount)];
  /// Loads and stores by element, space and whether addresses are 64-bit.
  Handler (*load)(Element, Space, bool wide_address);
  Handler (*store)(Element, Space, bool wide_address);
  /// Runs the warp from `op` for at most `budget` operations, which is reduced by those executed.
  const Op* (*run)(Warp&, const Op* op, s64& budget);
};

/// Every conversion there is, compiled for the oldest set only; the hot ones are in each set's own.
namespace baseline {
Handler select_cvt_any(const Spelling& s);
}

namespace baseline {
const InstructionSet& instruction_set();
}
namespace avx2 {
const InstructionSet& instruction_set();
}
namespace avx512 {
const InstructionSet& instruction_set();
}

/// The widest set this machine has, or the one named by the environment variable ATTEST_ISA.
/// Read once per device configuration.
const InstructionSet& choose_instruction_set();

}  // namespace attest::emulator
