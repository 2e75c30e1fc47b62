// Which registers of a function may share a slot: live ranges from the flow graph, then a linear
// scan. Compilers write PTX in near-SSA form with thousands of registers; a warp needs far fewer.
#pragma once
#include <span>
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

/// Which registers each instruction of a function reads and writes. A guarded one reads what it
/// writes as well.
class RegisterUses {
 public:
  explicit RegisterUses(const ptx::Function& function);
  std::span<const ptx::Register> reads(std::size_t i) const { return range(2 * i); }
  std::span<const ptx::Register> writes(std::size_t i) const { return range(2 * i + 1); }

 private:
  std::span<const ptx::Register> range(std::size_t n) const {
    return std::span(all_).subspan(begins_[n], begins_[n + 1] - begins_[n]);
  }
  std::vector<ptx::Register> all_;
  std::vector<u32> begins_;
};

SlotAssignment assign_slots(const ptx::Function& function, const RegisterUses& uses);

}  // namespace attest::emulator
