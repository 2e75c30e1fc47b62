// Loads, stores, atomics, and what warps do together.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

Element element_of(Type type) {
  switch (type) {
    case Type::b8:
    case Type::u8:
      return Element::byte;
    case Type::s8:
      return Element::signed_byte;
    case Type::b16:
    case Type::u16:
    case Type::f16:
    case Type::bf16:
      return Element::half;
    case Type::s16:
      return Element::signed_half;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
      return Element::word;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
      return Element::twin;
    default:
      throw Unsupported{"memory has no elements of this type"};
  }
}

bool polls(const Spelling& s) {
  return s.has(Modifier::volatile_) || s.has(Modifier::relaxed) || s.has(Modifier::acquire) ||
         s.has(Modifier::cv);
}

/// Memory that other blocks see, for all the decoder knows.
bool is_common(Space space) {
  return space == Space::global || space == Space::generic;
}

u8 ordering_of(const Spelling& s) {
  const bool acquires = s.has(Modifier::acquire) || s.has(Modifier::acq_rel);
  const bool releases = s.has(Modifier::release) || s.has(Modifier::acq_rel);
  const bool strong =
      polls(s) || acquires || releases || s.opcode == Opcode::atom || s.opcode == Opcode::red;
  // red.and and red.or give single bits a value without looking at the others, as cooperative
  // groups begin their barriers; what is read of them later is judged then.
  const bool sets_bits = s.opcode == Opcode::red && (s.has(Modifier::and_) || s.has(Modifier::or_));
  return u8((strong ? kStrong : 0) | (acquires ? kAcquires : 0) | (releases ? kReleases : 0) |
            (s.has(Modifier::cta) ? kBlockReach : 0) | (sets_bits ? kUnjudged : 0));
}

}  // namespace

void Decoder::describe_access(Op& op, const Spelling& s, Space space, u32 bytes, u8 flags) {
  op.choice = u8(ordering_of(s) | flags);
  op.flags |= kHasMemoryFlags;
  const u8 granule = u8(std::countr_zero(bytes));
  const bool generic = space == Space::generic;
  if (space == Space::shared || generic)
    program_.shared_granule = std::min(program_.shared_granule, granule);
  if (space == Space::global || generic)
    program_.global_granule = std::min(program_.global_granule, granule);
}

std::vector<u32> Decoder::with_carried(const std::vector<u32>& slots,
                                       const std::vector<Operand>& parts) {
  std::vector<u32> all = slots;
  for (const Operand& part : parts)
    all.push_back(part.kind == Operand::Kind::reg ? carried_[part.reg] : kNone);
  const bool any = std::any_of(all.begin() + std::ptrdiff_t(slots.size()), all.end(),
                               [](u32 number) { return number != kNone; });
  return any ? all : slots;
}

Space Decoder::space_of(const Spelling& s, const Operand& address) const {
  if (s.has(Modifier::global)) return Space::global;
  if (s.has(Modifier::constant)) return Space::constant;
  if (s.has(Modifier::shared) || s.has(Modifier::shared_cta)) return Space::shared;
  if (s.has(Modifier::local)) return Space::local;
  if (s.has(Modifier::param) || s.has(Modifier::param_entry) || s.has(Modifier::param_func)) {
    // Parameters of device functions and of calls live in the frame's local memory.
    if (address.reg != ptx::kNoRegister) return function_.entry ? Space::param : Space::local;
    return find_name(address.name).in_frame ? Space::local : Space::param;
  }
  return Space::generic;
}

/// Whether the function compares and swaps at the same register and displacement.
bool Decoder::is_compared_at(const Operand& at) {
  if (!compared_) {
    compared_.emplace();
    for (const ptx::Instruction& each : function_.body) {
      const auto has = [&](std::string_view m) {
        return std::find(each.modifiers.begin(), each.modifiers.end(), m) != each.modifiers.end();
      };
      if (each.opcode == "atom" && has("cas") && each.operands.size() > 1)
        compared_->insert({each.operands[1].reg, each.operands[1].immediate});
    }
  }
  return at.reg != ptx::kNoRegister && compared_->contains({at.reg, at.immediate});
}

void Decoder::load(const ptx::Instruction& i, const Spelling& s) {
  const Type type = s.type();
  const Element element = element_of(type);
  const Address from = address(i.operands[1], space_of(s, i.operands[1]));
  const std::vector<Operand> one{i.operands[0]};
  const bool vector = i.operands[0].kind == Operand::Kind::vector;
  const std::vector<Operand>& parts = vector ? i.operands[0].elements : one;
  if (parts.size() != s.vector)
    throw Unsupported{fmt::format("{} destinations for {} elements", parts.size(), s.vector)};
  std::vector<u32> to;
  for (const Operand& part : parts)
    to.push_back(part.kind == Operand::Kind::sink ? kNone : destination(part, type));
  const std::vector<u32> all = with_carried(to, parts);
  const u32* many = list(all);
  Op& op = emit(isa_.load(element, from.space, from.wide));
  op.a = from.base, op.immediate = from.displacement;
  op.count = u8(parts.size());
  op.d = to[0];
  op.list = many;
  op.cache = program_.interval_count++;
  if (polls(s)) op.flags |= kPolls;
  // Parameters of device functions are local memory that calls fill.
  const bool parameter = from.space == Space::local && !s.has(Modifier::local);
  // The plain read with which loops around atom.cas begin only guesses: atom.cas decides.
  const bool guesses = is_compared_at(i.operands[1]);
  describe_access(op, s, from.space, u32(ptx::size_of(type) * parts.size()),
                  u8((parameter ? kUnjudged : 0) | (all.size() > to.size() ? kCarries : 0) |
                     (guesses ? kStrong : 0)));
  program_.communicates |= polls(s) && is_common(from.space);
  for (std::size_t n = 0; n < parts.size(); ++n) finish_destination(parts[n], type, to[n]);
}

void Decoder::store(const ptx::Instruction& i, const Spelling& s) {
  const Type type = s.type();
  const Element element = element_of(type);
  Address to = address(i.operands[0], space_of(s, i.operands[0]));
  if (s.has(Modifier::param) && to.space == Space::param)
    throw Unsupported{"kernel parameters may not be written"};
  const bool vector = i.operands[1].kind == Operand::Kind::vector;
  const std::vector<Operand> one{i.operands[1]};
  const std::vector<Operand>& parts = vector ? i.operands[1].elements : one;
  if (parts.size() != s.vector)
    throw Unsupported{fmt::format("{} sources for {} elements", parts.size(), s.vector)};
  std::vector<u32> from;
  for (const Operand& part : parts) from.push_back(source(part, type));
  const std::vector<u32> all = with_carried(from, parts);
  const u32* many = list(all);
  Op& op = emit(isa_.store(element, to.space, to.wide));
  op.a = to.base, op.immediate = to.displacement;
  op.count = u8(parts.size());
  op.d = from[0];
  op.list = many;
  op.cache = program_.interval_count++;
  program_.communicates |= (polls(s) || s.has(Modifier::release)) && is_common(to.space);
  describe_access(op, s, to.space, u32(ptx::size_of(type) * parts.size()),
                  u8(kValues | (all.size() > from.size() ? kCarries : 0)));
}

void Decoder::atomic(const ptx::Instruction& i, Spelling s) {
  const bool has_result = s.opcode == Opcode::atom;
  const std::size_t first = has_result ? 1 : 0;
  if (i.operands.size() < first + 2) throw Unsupported{"it has too few operands"};
  const Type type = s.type();
  const Space space =
      s.has(Modifier::shared) || s.has(Modifier::shared_cta) ? Space::shared : Space::generic;
  const Address at = address(i.operands[first], space);
  const unsigned parts = s.vector;
  const auto part_of = [&](const Operand& o, unsigned n) -> const Operand& {
    if (parts == 1) return o;
    if (o.kind != Operand::Kind::vector || o.elements.size() != parts)
      throw Unsupported{fmt::format("{} elements are wanted", parts)};
    return o.elements[n];
  };
  if (at.space == Space::shared) s.modifiers.add(Modifier::shared);
  program_.communicates |= is_common(at.space);
  s.vector = at.wide ? 2 : 1;
  const bool compares = s.has(Modifier::cas);
  if (compares && i.operands.size() < first + 3) throw Unsupported{"it has too few operands"};
  // The elements of a vector are updated one by one, as PTX leaves open.
  for (unsigned n = 0; n < parts; ++n) {
    const u32 b = source(part_of(i.operands[first + 1], n), type);
    const u32 c = compares ? source(i.operands[first + 2], type) : kNone;
    const bool wanted = has_result && i.operands[0].kind != Operand::Kind::sink;
    const Operand* to = wanted ? &part_of(i.operands[0], n) : nullptr;
    const u32 d = wanted ? destination(*to, type) : kNone;
    Op& op = emit(select(s.opcode, s));
    op.d = d, op.a = at.base, op.b = b, op.c = c;
    op.immediate = at.displacement + s64(n * ptx::size_of(type));
    op.cache = program_.interval_count++;
    describe_access(op, s, at.space, u32(ptx::size_of(type)), 0);
    if (wanted) finish_destination(*to, type, d);
  }
}

void Decoder::warp_operation(const ptx::Instruction& i, const Spelling& s) {
  const std::vector<Operand>& o = i.operands;
  const auto need = [&](std::size_t count) {
    if (o.size() != count) throw Unsupported{fmt::format("it has {} operands", o.size())};
  };
  const auto second = [&] {
    return o[0].second == ptx::kNoRegister ? kNone : predicate_slot(o[0].second);
  };
  if (s.opcode != Opcode::isspacep) {
    if (!s.has(Modifier::sync))
      throw Unsupported{"warps no longer run in step; use the .sync form"};
    skip_unless_guarded(i);
  }
  switch (s.opcode) {
    case Opcode::shfl: {
      need(5);
      const u32 a = source(o[1], Type::b32), b = source(o[2], Type::b32),
                c = source(o[3], Type::b32), members = source(o[4], Type::b32);
      const u32 d = o[0].kind == Operand::Kind::sink ? kNone : destination(o[0], Type::b32);
      const u32* more = list({members, second()});
      Op& op = emit(select(s.opcode, s));
      op.d = d, op.a = a, op.b = b, op.c = c, op.list = more;
      break;
    }
    case Opcode::vote: {
      need(3);
      bool negated = false;
      const u32 p = predicate(o[1], negated), members = source(o[2], Type::b32);
      const u32 d =
          s.has(Modifier::ballot) ? destination(o[0], Type::b32) : predicate_destination(o[0]);
      Op& op = emit(select(s.opcode, s));
      op.d = d, op.a = p, op.b = members, op.immediate = negated ? s64(kAllLanes) : 0;
      break;
    }
    case Opcode::match:
    case Opcode::redux: {
      need(3);
      const u32 a = source(o[1], s.type()), members = source(o[2], Type::b32),
                d = destination(o[0], Type::b32);
      const u32 agree = second();
      Op& op = emit(select(s.opcode, s));
      op.d = d, op.a = a, op.b = members, op.c = agree;
      break;
    }
    case Opcode::elect: {
      need(2);
      const u32 members = source(o[1], Type::b32),
                d = o[0].kind == Operand::Kind::sink ? kNone : destination(o[0], Type::b32);
      const u32 chosen = second() == kNone ? predicate_temporary() : second();
      Op& op = emit(select(s.opcode, s));
      op.d = d, op.b = members, op.c = chosen;
      break;
    }
    default:
      need(2);
      space_test(i, s);
  }
}

void Decoder::space_test(const ptx::Instruction& i, const Spelling& s) {
  u64 window = 0;
  if (s.has(Modifier::shared) || s.has(Modifier::shared_cta) || s.has(Modifier::shared_cluster))
    window = kSharedWindow;
  if (s.has(Modifier::local)) window = kLocalWindow;
  if (s.has(Modifier::param) || s.has(Modifier::param_entry)) window = kParamWindow;
  // Constants lie among what is global; where, is known by now.
  std::vector<u32> constants{0};  // how many, then begin and end of each
  for (const ptx::Variable& v : module_.module.variables) {
    const auto it = module_.variables.find(v.name);
    if (v.space != ptx::Space::constant || it == module_.variables.end()) continue;
    for (const u64 end : {it->second.begin, it->second.end})
      constants.insert(constants.end(), {u32(end), u32(end >> 32)});
    ++constants[0];
  }
  const u32 a = source(i.operands[1], Type::b64), d = predicate_destination(i.operands[0]);
  const u32* const ranges = list(constants);
  Op& op = emit(select(s.opcode, s));
  op.d = d, op.a = a, op.immediate = s64(window);
  op.list = ranges;
}

void Decoder::barrier(const ptx::Instruction& i, const Spelling& s) {
  const std::vector<Operand>& o = i.operands;
  if (o.empty()) throw Unsupported{"it has no operand"};
  skip_unless_guarded(i);
  if (s.has(Modifier::warp)) {
    const u32 members = source(o[0], Type::b32);
    emit(select(s.opcode, s)).a = members;
    return;
  }
  const bool reduces = s.has(Modifier::red);
  const std::size_t first = reduces ? 1 : 0;
  const std::size_t after = first + (reduces ? 2 : 1);  // operands without a thread count
  const bool counted = o.size() > after;
  if (o.size() < after) throw Unsupported{"it has too few operands"};
  const u32 number = source(o[first], Type::b32);
  const u32 count = counted ? source(o[first + 1], Type::b32) : 0;
  bool negated = false;
  const u32 p = reduces ? predicate(o.back(), negated) : 0;
  u32 d = kNone;
  u8 choice = s.has(Modifier::arrive) ? 4 : 0;
  if (reduces && s.has(Modifier::popc))
    choice = 1, d = destination(o[0], Type::b32);
  else if (reduces)
    choice = s.has(Modifier::and_) ? 2 : 3, d = predicate_destination(o[0]);
  Op& op = emit(select(s.opcode, s));
  op.d = d, op.a = number, op.b = count, op.c = p;
  op.choice = choice;
  op.immediate = negated ? s64(kAllLanes) : 0;
  if (counted) op.flags |= kHasCount;
  if (s.opcode == Opcode::bar || s.has(Modifier::aligned)) op.flags |= kAligned;
}

}  // namespace attest::emulator
