// Operands: registers, constants, special registers, names and addresses become slots.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "optimized/emulator/engine/decode.hpp"
#include "optimized/emulator/engine/worst.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr u32 kNarrowBytes = sizeof(Splat<u32>), kWideBytes = sizeof(Splat<u64>);
bool is_wide(Type type) {
  return ptx::size_of(type) == 8;
}
bool is_signed(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

struct SpecialName {
  std::string_view name;
  Special which;
};
constexpr std::array kSpecials{
    SpecialName{"tid.x", Special::tid_x},
    SpecialName{"tid.y", Special::tid_y},
    SpecialName{"tid.z", Special::tid_z},
    SpecialName{"ntid.x", Special::ntid_x},
    SpecialName{"ntid.y", Special::ntid_y},
    SpecialName{"ntid.z", Special::ntid_z},
    SpecialName{"ctaid.x", Special::ctaid_x},
    SpecialName{"ctaid.y", Special::ctaid_y},
    SpecialName{"ctaid.z", Special::ctaid_z},
    SpecialName{"nctaid.x", Special::nctaid_x},
    SpecialName{"nctaid.y", Special::nctaid_y},
    SpecialName{"nctaid.z", Special::nctaid_z},
    SpecialName{"laneid", Special::laneid},
    SpecialName{"warpid", Special::warpid},
    SpecialName{"nwarpid", Special::nwarpid},
    SpecialName{"smid", Special::smid},
    SpecialName{"nsmid", Special::nsmid},
    SpecialName{"gridid", Special::gridid},
    SpecialName{"lanemask_eq", Special::lanemask_eq},
    SpecialName{"lanemask_le", Special::lanemask_le},
    SpecialName{"lanemask_lt", Special::lanemask_lt},
    SpecialName{"lanemask_ge", Special::lanemask_ge},
    SpecialName{"lanemask_gt", Special::lanemask_gt},
    SpecialName{"clock", Special::clock},
    SpecialName{"clock64", Special::clock},
    SpecialName{"clock_hi", Special::clock_hi},
    SpecialName{"globaltimer", Special::globaltimer},
    SpecialName{"globaltimer_lo", Special::globaltimer},
    SpecialName{"globaltimer_hi", Special::clock_hi},
    SpecialName{"total_smem_size", Special::total_smem_size},
    SpecialName{"dynamic_smem_size", Special::dynamic_smem_size},
    SpecialName{"reserved_smem_offset_1", Special::zero},
    SpecialName{"envreg1", Special::envreg1},
    SpecialName{"envreg2", Special::envreg2},
    // Without clusters every block is a cluster of its own.
    SpecialName{"is_explicit_cluster", Special::zero},
    SpecialName{"cluster_ctarank", Special::zero},
    SpecialName{"cluster_nctarank", Special::one},
    SpecialName{"cluster_ctaid.x", Special::zero},
    SpecialName{"cluster_ctaid.y", Special::zero},
    SpecialName{"cluster_ctaid.z", Special::zero},
    SpecialName{"cluster_nctaid.x", Special::one},
    SpecialName{"cluster_nctaid.y", Special::one},
    SpecialName{"cluster_nctaid.z", Special::one},
    SpecialName{"clusterid.x", Special::ctaid_x},
    SpecialName{"clusterid.y", Special::ctaid_y},
    SpecialName{"clusterid.z", Special::ctaid_z},
    SpecialName{"nclusterid.x", Special::nctaid_x},
    SpecialName{"nclusterid.y", Special::nctaid_y},
    SpecialName{"nclusterid.z", Special::nctaid_z},
};

}  // namespace

Op& Decoder::emit(Handler handler) {
  if (handler == nullptr)
    throw Unsupported{"this combination of types and modifiers is not defined"};
  Op op{};
  op.run = handler;
  op.origin = current_;
  op.guard = kNone;
  op.count = 1;
  code_.ops.push_back(op);
  return code_.ops.back();
}

u32 Decoder::narrow_constant(u32 value) {
  const auto [it, fresh] = narrow_constants_.emplace(value, u32(code_.narrow_constants.size()));
  if (fresh) {
    auto& splat = code_.narrow_constants.emplace_back();
    std::fill(std::begin(splat.lanes), std::end(splat.lanes), value);
  }
  return it->second * kNarrowBytes | 1;
}
u32 Decoder::wide_constant(u64 value) {
  const auto [it, fresh] = wide_constants_.emplace(value, u32(code_.wide_constants.size()));
  if (fresh) {
    auto& splat = code_.wide_constants.emplace_back();
    std::fill(std::begin(splat.lanes), std::end(splat.lanes), value);
  }
  return it->second * kWideBytes | 1;
}
u32 Decoder::narrow_temporary() {
  narrow_most_ = std::max(narrow_most_, ++narrow_used_);
  return (slots_.narrow + narrow_used_ - 1) * kNarrowBytes;
}
u32 Decoder::wide_temporary() {
  wide_most_ = std::max(wide_most_, ++wide_used_);
  return (slots_.wide + wide_used_ - 1) * kWideBytes;
}
u32 Decoder::predicate_temporary() {
  predicates_most_ = std::max(predicates_most_, ++predicates_used_);
  return slots_.predicates + predicates_used_ - 1;
}

SlotClass Decoder::class_of(ptx::Register r) const {
  if (r >= function_.registers.size()) throw Unsupported{"a register is wanted"};
  const Type type = function_.registers[r].type;
  if (type == Type::b128) throw Unsupported{"128-bit registers are not implemented"};
  return slot_class(type);
}
u32 Decoder::slot_of(ptx::Register r) const {
  switch (class_of(r)) {
    case SlotClass::narrow:
      return slots_.slot[r] * kNarrowBytes;
    case SlotClass::wide:
      return slots_.slot[r] * kWideBytes;
    case SlotClass::predicate:
      return slots_.slot[r];
  }
  return 0;
}

u32 Decoder::predicate_slot(ptx::Register r) const {
  if (class_of(r) != SlotClass::predicate) throw Unsupported{"a predicate is wanted"};
  return slot_of(r);
}

u32 Decoder::immediate_of(u64 bits, Type type) {
  if (is_wide(type)) return wide_constant(bits);
  const std::size_t bytes = ptx::size_of(type);
  u32 value = u32(bits);
  if (bytes == 2) value &= 0xffff;
  if (bytes == 1) value &= 0xff;
  return narrow_constant(value);
}

u32 Decoder::special(const Operand& o, bool wide) {
  const auto it = std::find_if(kSpecials.begin(), kSpecials.end(),
                               [&](const SpecialName& s) { return s.name == o.name; });
  if (it == kSpecials.end())
    throw Unsupported{fmt::format("the special register '%{}' is not implemented", o.name)};
  const u32 d = wide ? wide_temporary() : narrow_temporary();
  Op& op = emit(wide ? Plain::special_wide : Plain::special_narrow);
  op.d = d;
  op.choice = u8(it->which);
  return d;
}

Place Decoder::find_name(const std::string& name) const {
  if (const auto it = names_.find(name); it != names_.end()) return it->second;
  if (const auto it = program_.shared.find(name); it != program_.shared.end())
    return {Space::shared, it->second, 0, false, false};
  if (const auto it = module_.variables.find(name); it != module_.variables.end()) {
    return {Space::global, it->second.begin, u32(it->second.end - it->second.begin), false, false};
  }
  if (const auto it = module_.functions.find(name); it != module_.functions.end()) {
    return {Space::global, module_.address_of_function(it->second), 0, false, true};
  }
  throw Unsupported{fmt::format("the name '{}' is not defined in this module", name)};
}

/// The address a name stands for, in a slot.
u32 Decoder::place_value(const Place& place, s64 addend, bool wide) {
  u64 value = place.value + u64(addend);
  if (place.space == Space::param) value += kParamWindow;
  if (place.in_frame && !function_.entry) {
    const u32 d = wide ? wide_temporary() : narrow_temporary();
    Op& op = emit(wide ? Plain::frame_address : Plain::frame_address_narrow);
    op.d = d;
    op.immediate = s64(value);
    return d;
  }
  return wide ? wide_constant(value) : narrow_constant(u32(value));
}

u32 Decoder::source(const Operand& o, Type type) {
  const bool wide = is_wide(type);
  switch (o.kind) {
    case Operand::Kind::reg: {
      const SlotClass c = class_of(o.reg);
      if (c == SlotClass::predicate)
        throw Unsupported{"a predicate stands where a value is wanted"};
      const u32 slot = slot_of(o.reg);
      if ((c == SlotClass::wide) == wide) return slot;
      const u32 d = wide ? wide_temporary() : narrow_temporary();
      Op& op = emit(!wide             ? Plain::truncate
                    : is_signed(type) ? Plain::widen_signed
                                      : Plain::widen_unsigned);
      op.d = d, op.a = slot;
      return d;
    }
    case Operand::Kind::immediate:
      return immediate_of(u64(o.immediate), type);
    case Operand::Kind::special:
      return special(o, wide);
    case Operand::Kind::symbol:
      return place_value(find_name(o.name), o.immediate, wide);
    case Operand::Kind::vector:
      return pack(o.elements, type);
    default:
      throw Unsupported{"an operand is of a kind that does not belong here"};
  }
}

u32 Decoder::predicate(const Operand& o, bool& negated) {
  negated = o.negated;
  if (o.kind == Operand::Kind::immediate) {
    const u32 d = predicate_temporary();
    Op& op = emit(Plain::predicate_constant);
    op.d = d, op.immediate = o.immediate ? s64(kAllLanes) : 0;
    return d;
  }
  if (o.kind != Operand::Kind::reg || class_of(o.reg) != SlotClass::predicate)
    throw Unsupported{"a predicate is wanted"};
  return slot_of(o.reg);
}
u32 Decoder::plain_predicate(const Operand& o) {
  bool negated = false;
  const u32 p = predicate(o, negated);
  if (!negated) return p;
  const u32 d = predicate_temporary();
  Op& op = emit(Plain::predicate_logic);
  op.d = d, op.a = op.b = p, op.choice = 3;
  return d;
}
u32 Decoder::predicate_destination(const Operand& o) {
  if (o.kind == Operand::Kind::sink) return predicate_temporary();
  if (o.kind != Operand::Kind::reg || class_of(o.reg) != SlotClass::predicate)
    throw Unsupported{"the result is a predicate"};
  return slot_of(o.reg);
}

u32 Decoder::destination(const Operand& o, Type type) {
  const bool wide = is_wide(type);
  if (o.kind == Operand::Kind::sink) return wide ? wide_temporary() : narrow_temporary();
  if (o.kind == Operand::Kind::vector) return wide ? wide_temporary() : narrow_temporary();
  if (o.kind != Operand::Kind::reg) throw Unsupported{"the destination is no register"};
  const SlotClass c = class_of(o.reg);
  if (c == SlotClass::predicate) throw Unsupported{"the destination is a predicate"};
  if ((c == SlotClass::wide) == wide) return slot_of(o.reg);
  return wide ? wide_temporary() : narrow_temporary();
}
void Decoder::finish_destination(const Operand& o, Type type, u32 slot) {
  if (o.kind == Operand::Kind::vector) {
    Operand whole;
    whole.kind = Operand::Kind::sink;
    for (std::size_t n = 0; n < o.elements.size(); ++n) {
      // Only halves of 32-bit results occur (packed conversions).
      if (o.elements.size() != 2 || is_wide(type))
        throw Unsupported{"results of this shape cannot be unpacked"};
      Op& op = emit(select_simple(Opcode::shr, Type::b32));
      op.d = slot_of(o.elements[n].reg), op.a = slot, op.b = narrow_constant(n == 0 ? 0 : 16);
    }
    return;
  }
  if (o.kind != Operand::Kind::reg) return;
  const bool wide = is_wide(type), wide_register = class_of(o.reg) == SlotClass::wide;
  if (wide == wide_register) return;
  Op& op = emit(wide              ? Plain::truncate
                : is_signed(type) ? Plain::widen_signed
                                  : Plain::widen_unsigned);
  op.d = slot_of(o.reg), op.a = slot;
}

Address Decoder::address(const Operand& o, Space space) {
  if (o.kind != Operand::Kind::address || !o.elements.empty())
    throw Unsupported{"this kind of address is not implemented"};
  Address a;
  a.space = space;
  a.displacement = o.immediate;
  if (o.reg != ptx::kNoRegister) {
    a.base = slot_of(o.reg);
    a.wide = class_of(o.reg) == SlotClass::wide;
    const bool needs_wide =
        space == Space::global || space == Space::generic || space == Space::constant;
    if (needs_wide && !a.wide) {
      const u32 d = wide_temporary();
      Op& op = emit(Plain::widen_unsigned);
      op.d = d, op.a = a.base;
      a.base = d, a.wide = true;
    }
    return a;
  }
  if (o.name.empty()) {
    a.base = wide_constant(0);
    return a;
  }
  const Place place = find_name(o.name);
  if (place.in_frame) a.space = Space::local;
  if (place.space == Space::param) a.space = Space::param;
  if (place.space == Space::shared && space == Space::generic) a.space = Space::shared;
  a.wide = a.space == Space::global || a.space == Space::generic || a.space == Space::constant;
  if (a.space == Space::param)
    a.base = narrow_constant(u32(place.value));
  else
    a.base = place_value(place, 0, a.wide);
  return a;
}

const u32* Decoder::list(std::vector<u32> operands) {
  code_.lists.push_back(std::move(operands));
  return code_.lists.back().data();
}

Handler Decoder::select(Opcode opcode, const Spelling& s) {
  const auto chooser = isa_.select[std::size_t(opcode)];
  Handler handler = program_.worst ? baseline::select_worst(s) : nullptr;
  if (handler == nullptr && chooser != nullptr) handler = chooser(s);
  if (handler == nullptr)
    throw Unsupported{"this combination of types and modifiers is not implemented"};
  return handler;
}
Handler Decoder::select_simple(Opcode opcode, Type type) {
  Spelling s;
  s.opcode = opcode;
  s.types[0] = type;
  s.type_count = 1;
  return select(opcode, s);
}

}  // namespace attest::emulator
