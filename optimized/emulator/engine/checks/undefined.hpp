// Values that nothing defines, on their way through registers: read from memory that nobody wrote,
// or taken by shfl from a lane that does not take part. Having them is no mistake, only using them
// is: branching on them, addressing by them, storing them where others see them. Knows how values
// pass from register to register; not where they came from.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

/// Of one block.
struct Undefined {
  struct Origin {
    const Op* op;
    u32 lane;
    std::string what;  // "reads 4 bytes ... that nothing has written"
    bool told = false;
  };
  /// The lanes in which a register holds such a value. One of its origins stands for all.
  struct Value {
    u32 lanes = 0, origin = 0;
  };
  struct Values {
    std::vector<Value> by_register;
    u32 warp = 0, count = 0;  // of registers that hold some
  };
  /// What an instruction does with values.
  enum class Role : u8 { passes, selects, masks, loads, stores, shuffles, uses };
  struct Step {
    Role role = Role::uses;
    bool is_private = false;  // stores: to shared or local memory
    std::vector<ptx::Register> reads, writes;
  };
  std::vector<Origin> origins;
  std::unordered_map<const Frame*, Values> frames;
  std::unordered_map<const ptx::Instruction*, Step> steps;
  u32 stored[16] = {};  // by element: lanes whose store under way is of such a value
};

/// Before a block starts: nothing is on its way.
void forget_undefined(Block& block);
/// Whether a finding of values from this operation would be new.
bool is_news(Block& block, const Op& op);
/// Element i of what the load delivers is undefined in lanes[i]. `what` is said when it is used.
void load_undefined(const Op& op, Warp& warp, u32 lane, const u32* lanes, std::string what);

}  // namespace attest::emulator
