// Which registers of a function may share a slot: live ranges from the flow graph, then a linear
// scan. Compilers write PTX in near-SSA form with thousands of registers; a warp needs far fewer.
#pragma once
#include <vector>

#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

enum class SlotClass : u8 { narrow, wide, predicate };
SlotClass slot_class(ptx::Type type);

struct SlotAssignment {
  std::vector<u32> slot;  // by register: index within its class
  u32 narrow = 0, wide = 0, predicates = 0;
};

/// Operand positions that an instruction writes; all other registers it mentions are read.
struct RegisterUse {
  std::vector<ptx::Register> reads, writes;
};
RegisterUse access_of(const ptx::Instruction& instruction);

SlotAssignment assign_slots(const ptx::Function& function);

}  // namespace attest::emulator
