// Follows undefined values one instruction of the text at a time, while a warp holds some.
#include "optimized/emulator/engine/checks/undefined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/checks/undefined_bits.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {

using ptx::Instruction;
using ptx::Operand;
using ptx::Register;
using Role = Undefined::Role;
using Shadow = Undefined::Shadow;
using Step = Undefined::Step;
using Values = Undefined::Values;

namespace {

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

/// The instruction that `op` belongs to uses values of the origin.
void tell(Undefined& u, Warp& w, const Op& op, u32 index) {
  Undefined::Origin& origin = u.origins[index];
  if (!origin.told) {
    const Instruction& i = w.frame->code->function->body[op.origin];
    note(w, *origin.op, origin.lane, "initcheck",
         fmt::format("{}; the value is used at {} ({})", origin.what, line_of(w, op), written(i)));
  }
  origin.told = true;
  for (auto& [frame, values] : u.frames) {
    for (Register r = 0; r < values.by_register.size(); ++r) {
      if (values.by_register[r] && values.by_register[r]->origin == index)
        drop_undefined(values, r);
    }
    std::erase_if(values.doubts, [&](const Undefined::Doubt& d) { return d.origin == index; });
  }
}

/// Executes one instruction on the undefined bits of registers.
class Follow {
 public:
  Follow(const Op& op, Warp& w, Undefined& u, Values& values)
      : op_(op),
        w_(w),
        u_(u),
        values_(values),
        code_(*w.frame->code),
        i_(code_.function->body[op.origin]),
        step_(step_of(u, *code_.function, op.origin)) {
    leave_doubts();
    if (i_.guard == ptx::kNoRegister) return;
    guarded_ = lanes_of(i_.guard) & w.active;
    if (op.guard != kNone)
      on_ &= op.guard_negated ? ~w.predicates[op.guard] : w.predicates[op.guard];
    if (guarded_ != 0) origin_ = values_.by_register[i_.guard]->origin;
  }

  void run(bool jumps) {
    if (jumps) return jump();
    switch (step_.role) {
      case Role::passes:
      case Role::selects:
        return i_.operands.size() == 2 && is_vector(0) ? unpack() : pass();
      case Role::loads:
        use(i_.guard, guarded_);
        for (const Register r : step_.reads) use(r, on_);
        return clear();
      case Role::stores:
        return store();
      case Role::shuffles:
        use(i_.guard, guarded_);
        for (std::size_t n = 2; n < i_.operands.size(); ++n) use(i_.operands[n].reg, on_);
        return;
      case Role::combines:
        return combine();
      case Role::matrices:
        return matrices();
      case Role::uses:
        use(i_.guard, guarded_);
        for (const Register r : step_.reads) use(r, on_);
        return clear();
    }
  }

 private:
  const Shadow* shadow_of(Register r) const {
    return r < values_.by_register.size() ? values_.by_register[r].get() : nullptr;
  }
  u32 lanes_of(Register r) const {
    const Shadow* s = shadow_of(r);
    return s ? s->lanes : 0;
  }
  bool is_vector(std::size_t n) const { return i_.operands[n].kind == Operand::Kind::vector; }

  void use(Register r, u32 lanes) {
    if ((lanes_of(r) & lanes) != 0) tell(u_, w_, op_, values_.by_register[r]->origin);
  }
  void clear() {
    for (const Register r : step_.writes) deliver(r, nullptr);
  }

  /// Lanes that stand outside of where their doubt reigns have left it.
  void leave_doubts() {
    for (Undefined::Doubt& d : values_.doubts) {
      if (op_.origin < d.begin || op_.origin >= d.end)
        d.lanes &= ~w_.active;
      else if ((d.lanes & w_.active) != 0)
        doubtful_ |= d.lanes & w_.active, origin_ = d.origin;
    }
    std::erase_if(values_.doubts, [](const Undefined::Doubt& d) { return d.lanes == 0; });
  }

  /// The register now holds these bits; all are undefined where it is not known who writes.
  void deliver(Register r, const u64* bits) {
    if (r >= values_.by_register.size()) return;
    if (bits == nullptr && doubtful_ == 0 && guarded_ == 0 && shadow_of(r) == nullptr) return;
    const u64 width = bits_of_register(w_, r);
    u64 all[kLanes];
    for (u32 l = 0; l < kLanes; ++l) {
      const bool doubtful = ((doubtful_ | guarded_) >> l) & 1;
      all[l] = doubtful ? width : bits ? bits[l] & width : 0;
    }
    put_undefined(u_, w_, r, on_ | guarded_, all, origin_);
  }

  void jump() {
    if (guarded_ == 0) return;
    const bool computes = step_.role == Role::passes || step_.role == Role::selects;
    if (step_.meeting == 0 && !computes) return use(i_.guard, guarded_);
    if (i_.opcode != "bra") return clear();  // skips it: what it writes depends on the guard
    doubtful_ |= guarded_;
    for (u32 n = op_.origin + 1; n < step_.meeting; ++n) {
      for (const Register r : step_of(u_, *code_.function, n).writes) deliver(r, nullptr);
    }
    values_.doubts.push_back({op_.origin + 1, step_.meeting, guarded_, origin_});
  }

  /// The operands of the only operation are those of the text.
  bool is_alone() const {
    const Op* const end = code_.ops.data() + code_.ops.size();
    return &op_ + 1 == end || (&op_ + 1)->origin != op_.origin;
  }

  /// Operand n of the text (0: the first source) in lane l.
  u64 value_of(u32 n, u32 l, bool& known) const {
    const Operand& o = i_.operands[n + 1];
    known = true;
    if (o.kind == Operand::Kind::immediate) return u64(o.immediate);
    known = false;
    if (o.kind != Operand::Kind::reg || n >= 3 || !is_alone()) return 0;
    const u32 slot = n == 0 ? op_.a : n == 1 ? op_.b : op_.c;
    const ptx::Type type = code_.function->registers[o.reg].type;
    known = true;
    if (type == ptx::Type::pred) {
      const bool negated = n == 0 && step_.role != Role::selects && op_.immediate != 0;
      return ((w_.predicates[slot] >> l) & 1) ^ u64(negated);
    }
    if (ptx::size_of(type) == 8) {
      u64 wide;
      __builtin_memcpy(&wide, w_.wide[slot & 1] + slot + l * 8, sizeof wide);
      return wide;
    }
    u32 narrow;
    __builtin_memcpy(&narrow, w_.narrow[slot & 1] + slot + l * 4, sizeof narrow);
    return narrow;
  }

  u64 undefined_in(const Operand& o, u32 l) {
    if (o.kind == Operand::Kind::vector) {  // mov packs it, the first part lowest
      u64 sum = 0;
      const u32 width = u32(ptx::size_of(step_.spelling.type())) * 8 / u32(o.elements.size());
      for (std::size_t n = 0; n < o.elements.size(); ++n)
        sum |= undefined_in(o.elements[n], l) << (n * width);
      return sum;
    }
    const Shadow* s = shadow_of(o.reg);
    if (s == nullptr || s->bits[l] == 0) return 0;
    origin_ = s->origin;
    return s->bits[l];
  }

  u32 lanes_read() const {
    u32 lanes = 0;
    for (const Register r : step_.reads) lanes |= lanes_of(r);
    return lanes & on_;
  }

  void pass() {
    const u32 lanes = lanes_read();
    if (lanes == 0) return clear();
    const bool computes = i_.opcode != "set" && i_.opcode != "setp";
    u64 bits[kLanes] = {};
    for (u32 left = lanes; left; left &= left - 1) {
      const u32 l = u32(__builtin_ctz(left));
      OperandBits in;
      in.count = u32(std::min<std::size_t>(i_.operands.size() - 1, OperandBits::kMost));
      for (u32 n = 0; n < in.count; ++n) {
        in.undefined[n] = undefined_in(i_.operands[n + 1], l);
        in.value[n] = computes ? value_of(n, l, in.known[n]) : 0;
      }
      bits[l] =
          step_.role == Role::selects ? selected(in, l) : undefined_result(i_, step_.spelling, in);
    }
    for (const Register r : step_.reads) {
      if ((lanes_of(r) & on_) != 0) origin_ = values_.by_register[r]->origin;
    }
    for (const Register r : step_.writes) deliver(r, bits);
  }

  /// selp d, a, b, p: what is not chosen does not matter.
  u64 selected(const OperandBits& in, u32 l) const {
    if (in.undefined[2] != 0) return ~u64{0};
    if (!is_alone()) return in.undefined[0] | in.undefined[1];
    const u32 chosen = w_.predicates[op_.c] ^ u32(op_.immediate);
    return in.undefined[(chosen >> l) & 1 ? 0 : 1];
  }

  /// mov {a, b}, c: parts of c, lowest first.
  void unpack() {
    const auto& parts = i_.operands[0].elements;
    const u32 width = u32(ptx::size_of(step_.spelling.type())) * 8 / u32(parts.size());
    u64 whole[kLanes];
    for (u32 l = 0; l < kLanes; ++l) whole[l] = undefined_in(i_.operands[1], l);
    for (const Operand& part : parts) {
      deliver(part.reg, whole);
      for (u64& bits : whole) bits = width >= 64 ? 0 : bits >> width;
    }
  }

  /// vote, match, redux: what one lane gives makes what all get undefined, but for a ballot, whose
  /// bits are a lane's each. The member mask has to be defined.
  void combine() {
    use(i_.guard, guarded_);
    const std::size_t last = i_.operands.size() - 1;
    use(i_.operands[last].reg, on_);
    const Operand& from = i_.operands[1];
    const u32 lanes = lanes_of(from.reg) & on_;
    if (lanes == 0) return clear();
    origin_ = values_.by_register[from.reg]->origin;
    u64 bits[kLanes];
    const bool ballot = has(i_, "ballot");
    for (u64& b : bits) b = ballot ? u64(lanes) : ~u64{0};
    for (const Register r : step_.writes) deliver(r, bits);
  }

  void matrices() {
    use(i_.guard, guarded_);
    if (w_.active != w_.live) return;  // waits for the others
    const bool stores = i_.opcode == "stmatrix" || has(i_, "store");
    const Operand& address = i_.operands[0];
    if (stores) use(address.reg, on_);
    if (i_.opcode == "wmma" && stores && i_.operands.size() > 2) use(i_.operands[2].reg, on_);
    pass_matrices(op_, w_, step_);
  }

  void store() {
    use(i_.guard, guarded_);
    if (i_.operands.size() != 2) return;
    use(i_.operands[0].reg, on_);
    u32 first = 0;
    const u32 width = u32(ptx::size_of(step_.spelling.type()));
    std::fill(std::begin(u_.stored), std::end(u_.stored), 0u);
    for (const Operand& part : parts_of(i_.operands[1])) {
      if (step_.to_call) use(part.reg, on_);
      if ((lanes_of(part.reg) & on_) != 0) u_.stored_origin = values_.by_register[part.reg]->origin;
      for (u32 left = lanes_of(part.reg) & on_; left; left &= left - 1) {
        const u32 l = u32(__builtin_ctz(left));
        for (u32 byte = 0; byte < width; ++byte) {
          if ((values_.by_register[part.reg]->bits[l] >> (8 * byte)) & 0xff)
            u_.stored[l] |= 1u << (first + byte);
        }
        if (u_.stored[l] != 0) w_.watching->hollow |= 1u << l;
      }
      first += width;
    }
  }

  const Op& op_;
  Warp& w_;
  Undefined& u_;
  Values& values_;
  const Code& code_;
  const Instruction& i_;
  const Step& step_;
  u32 on_ = w_.active, guarded_ = 0, doubtful_ = 0, origin_ = 0;
};

}  // namespace

void use_stored(const Op& op, Warp& w) {
  Undefined& u = w.block->checks->undefined;
  tell(u, w, op, u.stored_origin);
  show_tracking(u, w);
}

void track_undefined(const Op& op, Warp& w) {
  Undefined& u = w.block->checks->undefined;
  const InstructionSet& isa = *w.block->launch->isa;
  const Handler join = isa.plain[std::size_t(Plain::join)],
                jump = isa.plain[std::size_t(Plain::bra_conditional)];
  if (op.run == join) return;
  const bool first = &op == w.frame->code->ops.data() || (&op - 1)->origin != op.origin ||
                     (&op - 1)->run == join || (&op - 1)->run == jump;
  if (!first) return;
  w.watching->hollow = 0;
  u.stored_pieces.clear();
  const auto it = u.frames.find(w.frame);
  if (it == u.frames.end() || it->second.count + it->second.doubts.size() == 0) return;
  if (it->second.by_register.size() != w.frame->code->function->registers.size()) return;
  Follow(op, w, u, it->second).run(op.run == jump);
  if (it->second.count + it->second.doubts.size() == 0) show_tracking(u, w);
}

}  // namespace attest::emulator
