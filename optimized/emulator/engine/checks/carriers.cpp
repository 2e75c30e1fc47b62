// Follows loaded values through moves to their uses.
#include "optimized/emulator/engine/checks/carriers.hpp"

#include <algorithm>
#include <span>

namespace attest::emulator {
namespace {

using ptx::Instruction;
using ptx::Operand;

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

u32 element_bytes(const Instruction& i) {
  for (const std::string& m : i.modifiers) {
    if (const auto type = ptx::type_named(m)) return u32(ptx::size_of(*type));
  }
  return 0;
}

std::span<const Operand> parts_of(const Operand& o) {
  return o.kind == Operand::Kind::vector ? std::span<const Operand>(o.elements) : std::span(&o, 1);
}

bool is_load(const Instruction& i) {
  return i.opcode == "ld" && !has(i, "param") && !has(i, "const") && !i.operands.empty();
}
bool is_plain_move(const Instruction& i) {
  return i.opcode == "mov" && i.operands.size() == 2 && i.operands[0].kind == Operand::Kind::reg &&
         i.operands[0].second == ptx::kNoRegister && i.operands[1].kind == Operand::Kind::reg;
}

class Travels {
 public:
  Travels(const ptx::Function& f, const RegisterUses& uses)
      : function_(f),
        uses_(uses),
        definitions_(f.registers.size()),
        origin_(f.registers.size(), kNone),
        bytes_(f.registers.size()),
        stored_(f.registers.size()) {}

  std::vector<u32> find() {
    for (std::size_t n = 0; n < function_.body.size(); ++n) define(n);
    for (u32 r = 0; r < origin_.size(); ++r) {
      if (definitions_[r] != 1) origin_[r] = kNone;
    }
    for (std::size_t n = 0; n < function_.body.size(); ++n) use(n);
    std::vector<u32> sources(origin_.size(), kNone);
    for (u32 r = 0; r < origin_.size(); ++r) {
      const u32 source = source_of(r);
      if (source != kNone && stored_[source]) sources[r] = source;
    }
    return sources;
  }

 private:
  void define(std::size_t n) {
    const Instruction& i = function_.body[n];
    for (const ptx::Register r : uses_.writes(n)) ++definitions_[r];
    if (is_load(i)) {
      for (const Operand& part : parts_of(i.operands[0])) {
        if (part.kind != Operand::Kind::reg) continue;
        origin_[part.reg] = part.reg, bytes_[part.reg] = element_bytes(i);
      }
    } else if (is_plain_move(i) && i.guard == ptx::kNoRegister) {
      origin_[i.operands[0].reg] = i.operands[1].reg;  // settled below
    }
  }

  /// The loaded register behind r, through moves, or kNone.
  u32 source_of(u32 r) const {
    for (u32 steps = 0; r != kNone && origin_[r] != r && steps < 64; ++steps) r = origin_[r];
    return r != kNone && origin_[r] == r ? r : kNone;
  }

  void drop(u32 r) {
    if (const u32 source = source_of(r); source != kNone) origin_[source] = kNone;
  }

  void use(std::size_t n) {
    const Instruction& i = function_.body[n];
    if (i.opcode == "st" && i.operands.size() == 2) {
      if (i.operands[0].reg != ptx::kNoRegister) drop(i.operands[0].reg);
      if (i.guard != ptx::kNoRegister) drop(i.guard);
      for (const Operand& part : parts_of(i.operands[1])) {
        if (part.kind != Operand::Kind::reg) continue;
        const u32 source = source_of(part.reg);
        if (source == kNone) continue;
        if (element_bytes(i) > bytes_[source])
          drop(part.reg);
        else
          stored_[source] = 1;
      }
      return;
    }
    if (is_plain_move(i) && i.guard == ptx::kNoRegister && definitions_[i.operands[0].reg] == 1)
      return;  // what becomes of the copy is what becomes of the value
    for (const ptx::Register r : uses_.reads(n)) drop(r);
  }

  const ptx::Function& function_;
  const RegisterUses& uses_;
  std::vector<u32> definitions_, origin_, bytes_;
  std::vector<u8> stored_;
};

}  // namespace

std::vector<u32> carried_values(const ptx::Function& f, const RegisterUses& uses) {
  // What is carried is kept per warp and instruction: another activation would overwrite it.
  const bool calls = std::any_of(f.body.begin(), f.body.end(),
                                 [](const Instruction& i) { return i.opcode == "call"; });
  if (calls && !f.entry) return std::vector<u32>(f.registers.size(), kNone);
  return Travels(f, uses).find();
}

}  // namespace attest::emulator
