// Follows undefined values one instruction of the text at a time, while a warp holds some.
#include "optimized/emulator/engine/checks/undefined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/liveness.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Register;
using Role = Undefined::Role;
using Step = Undefined::Step;
using Value = Undefined::Value;
using Values = Undefined::Values;

/// Results are undefined where an operand is, and nothing else happens. Any other instruction uses
/// what it reads.
constexpr std::array kPasses{
    "abs",  "add",   "addc", "bfe",  "bfi",   "bfind", "brev",  "clz",   "copysign", "cos",
    "cvt",  "cvta",  "div",  "dp2a", "dp4a",  "ex2",   "fma",   "fns",   "lg2",      "lop3",
    "mad",  "mad24", "madc", "max",  "min",   "mov",   "mul",   "mul24", "neg",      "not",
    "popc", "prmt",  "rcp",  "rem",  "rsqrt", "sad",   "set",   "setp",  "shf",      "shl",
    "shr",  "sin",   "slct", "sqrt", "sub",   "subc",  "szext", "tanh",  "testp",    "xor"};

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

Role role_of(const Instruction& i) {
  if (i.opcode == "ld" || i.opcode == "ldu") return Role::loads;
  if (i.opcode == "st") return Role::stores;
  if (i.opcode == "shfl") return Role::shuffles;
  if (i.opcode == "selp") return Role::selects;
  if (i.opcode == "and" || i.opcode == "or") return Role::masks;
  return std::find(kPasses.begin(), kPasses.end(), i.opcode) != kPasses.end() ? Role::passes
                                                                              : Role::uses;
}

const Step& step_of(Undefined& u, const Instruction& i) {
  const auto [it, fresh] = u.steps.try_emplace(&i);
  Step& step = it->second;
  if (!fresh) return step;
  step.role = role_of(i);
  step.is_private = has(i, "shared") || has(i, "shared::cta") || has(i, "local");
  ptx::Function alone;  // without its guard, which is looked at apart
  alone.body.push_back(i);
  alone.body[0].guard = ptx::kNoRegister;
  const RegisterUses uses(alone);
  const auto reads = uses.reads(0), writes = uses.writes(0);
  step.reads.assign(reads.begin(), reads.end()), step.writes.assign(writes.begin(), writes.end());
  return step;
}

Values& values_of(Undefined& u, const Warp& w) {
  Values& values = u.frames[w.frame];
  const std::size_t count = w.frame->code->function->registers.size();
  if (values.by_register.size() != count) values = {std::vector<Value>(count), w.index, 0};
  values.warp = w.index;
  return values;
}

void show_tracking(Undefined& u, Warp& w) {
  u32 count = 0;
  for (const auto& [frame, values] : u.frames) count += values.warp == w.index ? values.count : 0;
  w.watching->tracks = count != 0;
  if (count == 0) w.watching->hollow = 0;
}

/// The register's `on` lanes now hold what `lanes` of them say.
void put(Values& values, Register r, u32 on, u32 lanes, u32 origin) {
  if (r >= values.by_register.size()) return;
  Value& v = values.by_register[r];
  const u32 before = v.lanes;
  v.lanes = (v.lanes & ~on) | lanes;
  if (lanes != 0) v.origin = origin;
  values.count += u32(before == 0 && v.lanes != 0) - u32(before != 0 && v.lanes == 0);
}

u32 origin_index(Undefined& u, const Op& op) {
  const auto it = std::find_if(u.origins.begin(), u.origins.end(),
                               [&](const Undefined::Origin& o) { return o.op == &op; });
  return u32(it - u.origins.begin());
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
      if (values.by_register[r].origin == index) put(values, r, kAllLanes, 0, 0);
    }
  }
}

/// Executes one instruction on the undefined lanes of registers.
class Follow {
 public:
  Follow(const Op& op, Warp& w, Undefined& u, Values& values)
      : op_(op),
        w_(w),
        u_(u),
        values_(values),
        code_(*w.frame->code),
        i_(code_.function->body[op.origin]),
        step_(step_of(u, i_)) {
    if (i_.guard == ptx::kNoRegister) return;
    doubtful_ = lanes_of(i_.guard) & w.active;
    if (op.guard != kNone)
      on_ &= op.guard_negated ? ~w.predicates[op.guard] : w.predicates[op.guard];
  }

  void run(bool jumps) {
    if (jumps) return use(i_.guard, w_.active);
    switch (step_.role) {
      case Role::passes:
        return pass([&](Register r) { return lanes_of(r); });
      case Role::selects:
        return select();
      case Role::masks:
        return mask();
      case Role::loads:
        for (const Register r : step_.reads) use(r, on_);
        return pass([](Register) { return 0u; });
      case Role::stores:
        return store();
      case Role::shuffles:
        use(i_.guard, doubtful_);
        for (std::size_t n = 2; n < i_.operands.size(); ++n) use(i_.operands[n].reg, on_);
        return;
      case Role::uses:
        use(i_.guard, doubtful_);
        for (const Register r : step_.reads) use(r, on_);
        return pass([](Register) { return 0u; });
    }
  }

 private:
  u32 lanes_of(Register r) const {
    return r < values_.by_register.size() ? values_.by_register[r].lanes : 0;
  }

  void use(Register r, u32 lanes) {
    if ((lanes_of(r) & lanes) != 0) tell(u_, w_, op_, values_.by_register[r].origin);
  }

  template <class Lanes>
  void pass(const Lanes& lanes) {
    u32 sum = doubtful_, origin = doubtful_ ? values_.by_register[i_.guard].origin : 0;
    for (const Register r : step_.reads) {
      const u32 more = lanes(r) & on_;
      if (more != 0) origin = values_.by_register[r].origin;
      sum |= more;
    }
    for (const Register r : step_.writes) put(values_, r, on_, sum, origin);
  }

  /// The operands of the only operation are those of the text.
  bool is_alone() const {
    const Op* const end = code_.ops.data() + code_.ops.size();
    return &op_ + 1 == end || (&op_ + 1)->origin != op_.origin;
  }

  /// selp d, a, b, p: what is not chosen does not matter.
  void select() {
    const bool known = is_alone() && i_.operands.size() == 4;
    const u32 chosen = known ? w_.predicates[op_.c] ^ u32(op_.immediate) : 0;
    const Register a = known ? i_.operands[1].reg : ptx::kNoRegister,
                   b = known ? i_.operands[2].reg : ptx::kNoRegister,
                   p = known ? i_.operands[3].reg : ptx::kNoRegister;
    pass([&](Register r) {
      if (!known || r == p) return lanes_of(r);
      return lanes_of(r) & ((r == a ? chosen : 0) | (r == b ? ~chosen : 0));
    });
  }

  /// Lanes in which an operand alone decides what `and` or `or` gives.
  u32 deciding(bool is_and, u32 operand, bool predicate, bool negated) const {
    if (predicate) {
      const u32 p = w_.predicates[operand] ^ (negated ? ~0u : 0u);
      return is_and ? ~p : p;
    }
    const u32* words = reinterpret_cast<const u32*>(w_.narrow[operand & 1] + operand);
    u32 lanes = 0;
    for (u32 l = 0; l < kLanes; ++l) lanes |= u32(words[l] == (is_and ? 0u : ~0u)) << l;
    return lanes;
  }

  /// and, or: a defined operand may settle the result.
  void mask() {
    const bool predicate = has(i_, "pred"), words = has(i_, "b32");
    const bool known = is_alone() && i_.operands.size() == 3 && (predicate || words);
    if (!known) return pass([&](Register r) { return lanes_of(r); });
    const bool is_and = i_.opcode == "and";
    const Register a = i_.operands[1].reg, b = i_.operands[2].reg;
    const u32 settled_by_a = deciding(is_and, op_.a, predicate, op_.immediate != 0) & ~lanes_of(a),
              settled_by_b = deciding(is_and, op_.b, predicate, false) & ~lanes_of(b);
    pass([&](Register r) { return lanes_of(r) & ~(settled_by_a | settled_by_b); });
  }

  void store() {
    use(i_.guard, doubtful_);
    if (i_.operands.size() != 2) return;
    use(i_.operands[0].reg, on_);
    const Operand& value = i_.operands[1];
    const std::vector<Operand> one{value};
    const auto& parts = value.kind == Operand::Kind::vector ? value.elements : one;
    for (std::size_t n = 0; n < std::min(parts.size(), std::size(u_.stored)); ++n) {
      if (!step_.is_private) use(parts[n].reg, on_);
      u_.stored[n] = step_.is_private ? lanes_of(parts[n].reg) & on_ : 0;
      w_.watching->hollow |= u_.stored[n];
    }
  }

  const Op& op_;
  Warp& w_;
  Undefined& u_;
  Values& values_;
  const Code& code_;
  const Instruction& i_;
  const Step& step_;
  u32 on_ = w_.active, doubtful_ = 0;
};

}  // namespace

void forget_undefined(Block& block) {
  Undefined& u = block.checks->undefined;
  u.frames.clear();
  u.origins.clear();
  for (Watching& v : block.checks->watching) v.tracks = v.hollow = 0;
}

bool is_news(Block& block, const Op& op) {
  Undefined& u = block.checks->undefined;
  const u32 index = origin_index(u, op);
  return index == u.origins.size() || !u.origins[index].told;
}

void load_undefined(const Op& op, Warp& w, u32 lane, const u32* lanes, std::string what) {
  Undefined& u = w.block->checks->undefined;
  const u32 index = origin_index(u, op);
  if (index == u.origins.size()) u.origins.push_back({&op, lane, std::move(what)});
  Values& values = values_of(u, w);
  const Operand& to = w.frame->code->function->body[op.origin].operands[0];
  const std::vector<Operand> one{to};
  const auto& parts = to.kind == Operand::Kind::vector ? to.elements : one;
  for (std::size_t n = 0; n < parts.size(); ++n)
    put(values, parts[n].reg, lanes[n], lanes[n], index);
  show_tracking(u, w);
}

void shuffle_undefined(const Op& op, Warp& w, const u32* source, u32 absent) {
  Undefined& u = w.block->checks->undefined;
  const Instruction& i = w.frame->code->function->body[op.origin];
  const Register to = i.operands[0].reg, from = i.operands[1].reg;
  if (absent != 0 && !is_news(*w.block, op)) absent = 0;
  Values& values = values_of(u, w);
  const Value taken = from < values.by_register.size() ? values.by_register[from] : Value{};
  u32 lanes = absent, origin = taken.origin;
  for (u32 left = w.mask & ~absent; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    lanes |= ((taken.lanes >> source[l]) & 1) << l;
  }
  if (absent != 0) {
    const u32 lane = u32(__builtin_ctz(absent)), of = source[lane];
    origin = origin_index(u, op);
    if (origin == u.origins.size()) {
      const bool left = (w.existing & ~w.live) >> of & 1;
      u.origins.push_back(
          {&op, lane,
           fmt::format("takes the value of lane {}, which {}: what it gets is undefined", of,
                       left                 ? "has exited"
                       : (w.mask >> of & 1) ? "its member mask leaves out"
                                            : "does not take part")});
    }
  }
  put(values, to, w.mask, lanes, origin);
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
  const auto it = u.frames.find(w.frame);
  if (it == u.frames.end() || it->second.count == 0) return;
  if (it->second.by_register.size() != w.frame->code->function->registers.size()) return;
  Follow(op, w, u, it->second).run(op.run == jump);
  if (it->second.count == 0) show_tracking(u, w);
}

}  // namespace attest::emulator
