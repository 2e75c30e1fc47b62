// Decodes a function: layout of its frame, one instruction after another, branch targets.
#include "optimized/emulator/engine/decode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/carriers.hpp"
#include "optimized/emulator/engine/order.hpp"

namespace attest::emulator {
namespace {

constexpr u64 kFrameBytesMax = u64{1} << 31;

const Op* report_unsupported(const Op& op, Warp& w) {
  return fault(w, op, u32(__builtin_ctz(w.active)), "unsupported", w.frame->code->notes[op.cache]);
}

const Op* execute_fence(const Op& op, Warp& w) {
  order_fence(w, w.mask, op.choice ? Reach::block : Reach::device);
  return &op + 1;
}

bool ends_flow(const ptx::Instruction& i) {
  return i.guard == ptx::kNoRegister &&
         (i.opcode == "bra" || i.opcode == "ret" || i.opcode == "exit");
}

std::string why_undefined(const Spelling& s) {
  const bool together = s.opcode == Opcode::shfl || s.opcode == Opcode::vote ||
                        s.opcode == Opcode::match || s.opcode == Opcode::redux;
  if (together && !s.has(Modifier::sync)) return "warps no longer run in step; use the .sync form";
  for (unsigned n = 0; n < s.type_count; ++n) {
    if (s.types[n] == ptx::Type::b128) return "128-bit registers are not implemented";
  }
  return "PTX has no such combination of types and modifiers";
}

/// Hints to caches, debuggers and allocators of registers.
bool changes_nothing(Opcode opcode) {
  return opcode == Opcode::applypriority || opcode == Opcode::discard ||
         opcode == Opcode::prefetch || opcode == Opcode::prefetchu || opcode == Opcode::brkpt ||
         opcode == Opcode::pmevent || opcode == Opcode::griddepcontrol ||
         opcode == Opcode::setmaxnreg;
}

/// How many operands an instruction has at least, by its row's pattern.
std::size_t least_operands(std::string_view pattern) {
  if (pattern.front() == '*') return pattern.size() > 1 ? std::size_t(pattern[1] - '0') : 0;
  return std::size_t(std::count_if(pattern.begin(), pattern.end(),
                                   [](char c) { return c != ' ' && c != 't' && c != 'u'; }));
}

}  // namespace

Decoder::Decoder(const LoadedModuleState& module, Program& program, Code& code,
                 const InstructionSet& isa)
    : module_(module), program_(program), code_(code), function_(*code.function), isa_(isa) {
  lay_out_frame();
}

/// Gives every .local and .param of the function a place in the frame. Done before any body is
/// decoded, since callers need to know where arguments go.
void Decoder::lay_out_frame() {
  // A frame beyond what a thread may have is refused at the launch; it must only not wrap around.
  u64 top = 0;
  const auto add = [&](const std::string& name, u64 bytes, u32 alignment) {
    const u64 step = std::max(alignment, 1u);
    top = std::min<u64>((top + step - 1) / step * step, kFrameBytesMax);
    names_[name] = {Space::local, top, u32(std::min<u64>(bytes, kFrameBytesMax)), true, false};
    top = std::min<u64>(top + bytes, kFrameBytesMax);
    return names_[name].value;
  };
  const auto add_formal = [&](const ptx::Parameter& p) -> Passing {
    if (p.reg != ptx::kNoRegister)
      return {true, p.reg, u32(ptx::size_of(p.type))};  // the slot comes later
    const u32 alignment = std::max(p.alignment, u32(std::min<u32>(p.bytes, 8)));
    return {false, u32(add(p.name, p.bytes, alignment & (~alignment + 1))), p.bytes};
  };
  code_.parameters.clear(), code_.results.clear();
  if (function_.entry) {
    for (std::size_t i = 0; i < function_.parameters.size(); ++i) {
      names_[function_.parameters[i].name] = {Space::param, program_.parameter_offsets[i],
                                              function_.parameters[i].bytes, false, false};
    }
  } else {
    for (const ptx::Parameter& p : function_.parameters) code_.parameters.push_back(add_formal(p));
    for (const ptx::Parameter& p : function_.results) code_.results.push_back(add_formal(p));
  }
  for (const ptx::Variable& v : function_.variables) {
    if (v.space == ptx::Space::local || v.space == ptx::Space::param)
      add(v.name, v.bytes, v.alignment);
    if (v.space == ptx::Space::shared)
      names_[v.name] = {Space::shared, program_.shared.at(own_name(code_.index, v.name)),
                        u32(v.bytes), false, false};
  }
  code_.frame_bytes = u32((top + 15) / 16 * 16);
}

void Decoder::decode() {
  const RegisterUses uses(function_);
  slots_ = assign_slots(function_, uses);
  carried_ = carried_values(function_, uses);
  std::unordered_map<u32, u32> numbers;
  for (u32& value : carried_) {
    if (value == kNone) continue;
    const auto [it, fresh] = numbers.emplace(value, program_.carried_count);
    program_.carried_count += fresh ? 1 : 0;
    value = it->second;
  }
  for (auto* formals : {&code_.parameters, &code_.results}) {
    for (Passing& p : *formals) {
      if (p.in_register) p.at = slot_of(p.at);
    }
  }
  const u32 count = u32(function_.body.size());
  first_op_.assign(count + 1, 0);
  for (u32 i = 0; i < count; ++i) instruction(i);
  first_op_[count] = u32(code_.ops.size());
  current_ = count ? count - 1 : 0;
  emit(isa_.select[std::size_t(Opcode::ret)](Spelling{}));  // never run off the end
  for (const Fixup& f : fixups_) {
    const u32 to =
        f.past_end ? first_op_[f.instruction + 1] : first_op_[std::min(f.instruction, count)];
    code_.ops[f.op].target = code_.ops.data() + to;
  }
  code_.narrow_slots = slots_.narrow + narrow_most_;
  code_.wide_slots = slots_.wide + wide_most_;
  code_.predicate_slots = slots_.predicates + predicates_most_;
}

void Decoder::instruction(u32 index) {
  const ptx::Instruction& i = function_.body[index];
  current_ = index;
  narrow_used_ = wide_used_ = predicates_used_ = 0;
  const bool leader = std::binary_search(function_.leaders.begin(), function_.leaders.end(), index);
  // Lanes that fall into a label may meet others there. Branches check before they jump.
  if (leader && index > 0 && !ends_flow(function_.body[index - 1])) emit(Plain::join);
  first_op_[index] = u32(code_.ops.size());
  const u32 first = first_op_[index];
  const SpellingResult spelled = spell(i);
  if (!spelled.problem.empty()) {
    unsupported(i, first, spelled.problem);
    return;
  }
  if (!is_defined(spelled.spelling)) {
    unsupported(i, first, why_undefined(spelled.spelling));
    return;
  }
  try {
    dispatch(i, spelled.spelling);
    finish_instruction(i, first);
  } catch (const Unsupported& problem) {
    unsupported(i, first, problem.why);
  }
}

void Decoder::unsupported(const ptx::Instruction& i, u32 first, const std::string& why) {
  code_.ops.resize(first);
  std::erase_if(fixups_, [&](const Fixup& f) { return f.op >= first; });
  if (i.guard != ptx::kNoRegister && class_of(i.guard) == SlotClass::predicate)
    skip_unless_guarded(i);
  code_.notes.push_back(
      fmt::format("the emulator does not execute '{}': {}; compile the kernel without it, or run "
                  "it on a GPU",
                  written(i), why));
  emit(&report_unsupported).cache = u32(code_.notes.size() - 1);
}

/// Control operations look at all lanes of the fragment, so their guard is a branch around them.
void Decoder::skip_unless_guarded(const ptx::Instruction& i) {
  if (i.guard == ptx::kNoRegister) return;
  fixups_.push_back({u32(code_.ops.size()), current_, true});
  Op& op = emit(Plain::bra_conditional);
  op.guard = predicate_slot(i.guard);
  op.guard_negated = !i.guard_negated;
  op.flags |= kUncounted;
}

/// Wraps the operations of a guarded instruction; counts one operation per instruction.
void Decoder::finish_instruction(const ptx::Instruction& i, u32 first) {
  const Handler jump = isa_.plain[std::size_t(Plain::bra_conditional)];
  const bool skipped = first < code_.ops.size() && code_.ops[first].run == jump;
  for (u32 n = first; n < code_.ops.size(); ++n) {
    Op& op = code_.ops[n];
    if (op.run == jump) continue;
    const bool counted = n + 1 == code_.ops.size();
    if (!counted) op.flags |= kUncounted;
    if (i.guard != ptx::kNoRegister && !skipped && i.opcode != "bra") {
      op.inner = op.run;
      op.run = isa_.plain[std::size_t(Plain::guarded)];
      op.guard = predicate_slot(i.guard);
      op.guard_negated = i.guard_negated;
    } else if (!counted) {
      op.inner = op.run;
      op.run = isa_.plain[std::size_t(Plain::uncounted)];
    }
  }
  if (skipped && i.opcode != "bra") emit(Plain::join);
}

void Decoder::dispatch(const ptx::Instruction& i, const Spelling& s) {
  if (i.operands.size() < least_operands(row_of(s.opcode).operands))
    throw Unsupported{"it has too few operands"};
  if (changes_nothing(s.opcode)) {
    emit(Plain::nothing);
    return;
  }
  switch (s.opcode) {
    case Opcode::setp:
      return setp(i, s);
    case Opcode::set:
      return set(i, s);
    case Opcode::mov:
      return mov(i, s);
    case Opcode::cvta:
      return cvta(i, s);
    case Opcode::ld:
    case Opcode::ldu:
      return load(i, s);
    case Opcode::st:
      return store(i, s);
    case Opcode::atom:
    case Opcode::red:
      return atomic(i, s);
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
    case Opcode::isspacep:
      return warp_operation(i, s);
    case Opcode::mma:
    case Opcode::wmma:
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
    case Opcode::movmatrix:
      return matrix(i, s);
    case Opcode::madc:
      return extended_product(i, s);
    case Opcode::mad:
      return s.has(Modifier::cc) ? extended_product(i, s) : by_pattern(i, s);
    case Opcode::lop3:
      return s.has(Modifier::and_) || s.has(Modifier::or_) ? table_and_predicate(i, s)
                                                           : by_pattern(i, s);
    default:
      return dispatch_control(i, s);
  }
}

/// What decides who runs next, and what others may see; anything else goes by its pattern.
void Decoder::dispatch_control(const ptx::Instruction& i, const Spelling& s) {
  switch (s.opcode) {
    case Opcode::bar:
    case Opcode::barrier:
      return barrier(i, s);
    case Opcode::cp:
      return async_copy(i, s);
    case Opcode::mbarrier:
      return mbarrier(i, s);
    case Opcode::alloca:
    case Opcode::stacksave:
    case Opcode::stackrestore:
      return stack(i, s);
    case Opcode::bra:
      return branch(i);
    case Opcode::brx:
      return branch_to_one_of(i);
    case Opcode::call:
      return call(i);
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::nanosleep:
      skip_unless_guarded(i);
      emit(select(s.opcode, s));
      return;
    case Opcode::membar:
    case Opcode::fence:
      // Whoever orders accesses for other blocks means to tell them something.
      program_.communicates |= !s.has(Modifier::cta);
      emit(&execute_fence).choice = s.has(Modifier::cta) ? 1 : 0;
      return;
    default:
      return composed(i, s);
  }
}

}  // namespace attest::emulator
