// Control flow: branches, calls and their arguments, room on the stack.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

const Op* beyond_labels(const Op& op, Warp& w) {
  return fault(w, op, u32(__builtin_ctz(w.active)), "memcheck", w.frame->code->notes[op.cache]);
}

}  // namespace

void Decoder::stack(const ptx::Instruction& i, const Spelling& s) {
  skip_unless_guarded(i);
  const std::vector<Operand>& o = i.operands;
  if (s.opcode == Opcode::stackrestore) {
    const u32 a = source(o[0], Type::b64);
    emit(select(s.opcode, s)).a = a;
    return;
  }
  const u32 size = s.opcode == Opcode::alloca && o.size() > 1 ? source(o[1], Type::b64) : 0;
  const u32 d = destination(o[0], Type::b64);
  Op& op = emit(select(s.opcode, s));
  op.d = d, op.a = size;
  op.immediate = o.size() > 2 ? std::max<s64>(o[2].immediate, 1) : 8;
  finish_destination(o[0], Type::b64, d);
}

void Decoder::branch(const ptx::Instruction& i) {
  if (i.operands[0].kind != Operand::Kind::label) throw Unsupported{"its target is no label"};
  fixups_.push_back({u32(code_.ops.size()), u32(i.operands[0].immediate), false});
  if (i.guard == ptx::kNoRegister) {
    emit(Plain::bra);
    return;
  }
  Op& op = emit(Plain::bra_conditional);
  op.guard = predicate_slot(i.guard);
  op.guard_negated = i.guard_negated;
}

/// brx.idx: one comparison and one branch per label; an index beyond the list is a fault.
void Decoder::branch_to_one_of(const ptx::Instruction& i) {
  const Operand& targets = i.operands[1];
  if (targets.kind != Operand::Kind::vector) throw Unsupported{"it names no list of labels"};
  skip_unless_guarded(i);
  const u32 index = source(i.operands[0], Type::b32), chosen = predicate_temporary();
  Spelling equal;
  equal.opcode = Opcode::setp;
  equal.types[0] = Type::b32, equal.type_count = 1;
  equal.modifiers.add(Modifier::eq);
  for (std::size_t n = 0; n < targets.elements.size(); ++n) {
    if (targets.elements[n].kind != Operand::Kind::label)
      throw Unsupported{"one of its targets is no label"};
    Op& compare = emit(select(Opcode::setp, equal));
    compare.d = chosen, compare.a = index, compare.b = narrow_constant(u32(n));
    fixups_.push_back({u32(code_.ops.size()), u32(targets.elements[n].immediate), false});
    Op& jump = emit(Plain::bra_conditional);
    jump.guard = chosen;
    jump.flags |= kUncounted;
  }
  code_.notes.push_back(
      fmt::format("the index is not below {}, the number of labels", targets.elements.size()));
  emit(&beyond_labels).cache = u32(code_.notes.size() - 1);
}

Passing Decoder::passing(const Operand& o) {
  if (o.kind == Operand::Kind::symbol) {
    const Place place = find_name(o.name);
    if (!place.in_frame) throw Unsupported{"an argument is no .param"};
    return {false, u32(place.value), place.bytes};
  }
  if (o.kind == Operand::Kind::reg) {
    return {true, slot_of(o.reg), class_of(o.reg) == SlotClass::wide ? 8u : 4u};
  }
  if (o.kind == Operand::Kind::immediate) return {true, wide_constant(u64(o.immediate)), 8};
  throw Unsupported{"an argument is of an unknown kind"};
}

void Decoder::call(const ptx::Instruction& i) {
  CallSite site;
  std::size_t n = 0;
  const std::vector<Operand>& o = i.operands;
  if (o[0].kind == Operand::Kind::arguments && o.size() > 1) {
    for (const Operand& result : o[n].elements) site.results.push_back(passing(result));
    ++n;
  }
  if (n >= o.size()) throw Unsupported{"it names no function"};
  const Operand& callee = o[n++];
  if (n < o.size() && o[n].kind == Operand::Kind::arguments) {
    for (const Operand& argument : o[n].elements) site.arguments.push_back(passing(argument));
  }
  skip_unless_guarded(i);
  if (callee.kind == Operand::Kind::reg) {
    site.address = source(callee, Type::b64);
    site.name = "(by address)";
  } else {
    site.name = callee.name;
    const auto it = module_.functions.find(callee.name);
    if (it == module_.functions.end())
      throw Unsupported{fmt::format("the function '{}' is not declared", callee.name)};
    const auto code = program_.codes.find(it->second);
    if (code != program_.codes.end()) {
      site.target = code->second.get();
    } else if (callee.name == "vprintf") {
      site.builtin = Builtin::vprintf;
    } else if (callee.name == "__assertfail") {
      site.builtin = Builtin::assertfail;
    } else if (callee.name == "malloc") {
      site.builtin = Builtin::malloc;
    } else if (callee.name == "free") {
      site.builtin = Builtin::free;
    } else {
      site.builtin = Builtin::unknown;
    }
  }
  code_.calls.push_back(std::move(site));
  emit(&emulator::call).cache = u32(code_.calls.size() - 1);
}

}  // namespace attest::emulator
