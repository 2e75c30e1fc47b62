// Asynchronous copies and mbarriers: what their operands become.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/async.hpp"
#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr s64 kGroupsMax = 0x7fffffff;

void need(const ptx::Instruction& i, std::size_t least, std::size_t most) {
  if (i.operands.size() < least || i.operands.size() > most)
    throw Unsupported{fmt::format("it has {} operands", i.operands.size())};
}

bool is_predicate(const ptx::Function& f, const Operand& o) {
  return o.kind == Operand::Kind::reg && o.reg < f.registers.size() &&
         f.registers[o.reg].type == Type::pred;
}

}  // namespace

void Decoder::async_copy(const ptx::Instruction& i, const Spelling& s) {
  if (s.has(Modifier::mbarrier)) return mbarrier(i, s);
  if (s.has(Modifier::commit_group) || s.has(Modifier::wait_all)) {
    need(i, 0, 0);
    skip_unless_guarded(i);
    emit(select(s.opcode, s));
    return;
  }
  if (s.has(Modifier::wait_group)) {
    need(i, 1, 1);
    const Operand& groups = i.operands[0];
    if (groups.kind != Operand::Kind::immediate || groups.immediate < 0 ||
        groups.immediate > kGroupsMax)
      throw Unsupported{"it waits for a number of groups that must be a constant"};
    skip_unless_guarded(i);
    emit(select(s.opcode, s)).immediate = groups.immediate;
    return;
  }
  std::vector<Operand> o = i.operands;
  const auto& m = i.modifiers;
  // A cache policy changes no result.
  if (std::find(m.begin(), m.end(), "L2::cache_hint") != m.end() && o.size() > 3) o.pop_back();
  if (o.size() < 3 || o.size() > 4) throw Unsupported{fmt::format("it has {} operands", o.size())};
  const s64 bytes = o[2].immediate;
  if (o[2].kind != Operand::Kind::immediate || (bytes != 4 && bytes != 8 && bytes != 16))
    throw Unsupported{"it copies 4, 8 or 16 bytes"};
  if (s.has(Modifier::cg) && bytes != 16) throw Unsupported{".cg copies 16 bytes"};
  if (!s.has(Modifier::global) || !(s.has(Modifier::shared) || s.has(Modifier::shared_cta)))
    throw Unsupported{"it copies from global to shared memory"};
  skip_unless_guarded(i);
  const Address to = address(o[0], Space::shared), from = address(o[1], Space::global);
  u32 size = kNone, ignoring = kNone;
  bool negated = false;
  if (o.size() == 4 && is_predicate(function_, o[3]))
    ignoring = predicate(o[3], negated);
  else if (o.size() == 4)
    size = source(o[3], Type::u32);
  if (from.displacement != s64(s32(from.displacement)))
    throw Unsupported{"its address is out of reach"};
  const u32* more = list({u32(s32(from.displacement)), negated ? 1u : 0u});
  Op& op = emit(select(s.opcode, s));
  op.a = to.base, op.immediate = to.displacement, op.choice = to.wide ? 1 : 0;
  op.b = from.base, op.c = size, op.d = ignoring, op.list = more;
  op.count = u8(bytes);
  op.cache = program_.interval_count;
  program_.interval_count += 2;  // whole copies and parts
}

void Decoder::mbarrier(const ptx::Instruction& i, const Spelling& s) {
  const std::vector<Operand>& o = i.operands;
  const bool waits = s.has(Modifier::test_wait) || s.has(Modifier::try_wait);
  if (s.opcode == Opcode::mbarrier && s.has(Modifier::pending_count)) {
    need(i, 2, 2);
    const u32 state = source(o[1], Type::b64), d = destination(o[0], Type::b32);
    Op& op = emit(select(s.opcode, s));
    op.d = d, op.b = state;
    finish_destination(o[0], Type::b32, d);
    return;
  }
  need(i, 1, 4);
  // The object is the first operand that is an address; what stands before it is the result.
  const std::size_t at = o[0].kind == Operand::Kind::address ? 0 : 1;
  need(i, at + 1, at + 3);
  const bool in_shared =
      s.has(Modifier::shared) || s.has(Modifier::shared_cta) || s.has(Modifier::shared_cluster);
  skip_unless_guarded(i);
  const Address object = address(o[at], in_shared ? Space::shared : Space::generic);
  u32 b = kNone, d = kNone;
  const bool state = waits && !s.has(Modifier::parity);
  if (o.size() > at + 1) b = source(o[at + 1], state ? Type::b64 : Type::b32);
  if (waits && (at == 0 || b == kNone)) throw Unsupported{"it has too few operands"};
  const bool wants_count = s.has(Modifier::init) || s.has(Modifier::expect_tx) ||
                           s.has(Modifier::complete_tx) || s.has(Modifier::noComplete);
  if (wants_count && b == kNone) throw Unsupported{"it has too few operands"};
  const bool has_result = at == 1 && o[0].kind != Operand::Kind::sink;
  if (waits)
    d = predicate_destination(o[0]);
  else if (has_result)
    d = destination(o[0], Type::b64);
  Op& op = emit(select(s.opcode, s));
  op.a = object.base, op.immediate = object.displacement;
  op.choice =
      u8((object.wide ? kObjectWide : 0) | (object.space == Space::generic ? kObjectGeneric : 0));
  op.b = b, op.d = d;
  if (!waits && has_result) finish_destination(o[0], Type::b64, d);
}

}  // namespace attest::emulator
