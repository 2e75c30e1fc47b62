// What one execution of an instruction is worth, by its spelling alone: which unit does how many
// operations, and which way its bytes go. Knows nothing of how often anything is executed.
#pragma once
#include "optimized/emulator/profile.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

struct Cost {
  std::uint64_t Totals::*unit = nullptr;  // what the operations are added to
  std::uint32_t per_lane = 0;             // operations of each thread
  std::uint32_t per_warp = 0;             // of the warp as a whole: tensor cores
  bool reads = false, writes = false;     // global memory
  bool barrier = false;                   // waits for the threads of the block
};

/// Opcodes that are not in the table cost one control instruction; `known` then says false.
Cost cost_of(const ptx::Instruction& instruction);
bool has_cost(std::string_view opcode);

}  // namespace attest::emulator
