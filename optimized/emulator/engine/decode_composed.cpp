// Instructions that are made of several simpler ones: extended products, lop3 with a predicate.
#include <fmt/format.h>

#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {

using ptx::Operand;
using ptx::Type;

/// mad.cc and madc: the product, then an addition that gives and takes the carry.
void Decoder::extended_product(const ptx::Instruction& i, const Spelling& s) {
  const Type type = s.type();
  const bool wide = ptx::size_of(type) == 8;
  const u32 a = source(i.operands[1], type), b = source(i.operands[2], type),
            c = source(i.operands[3], type), d = destination(i.operands[0], type),
            product = wide ? wide_temporary() : narrow_temporary();
  Spelling part;
  part.opcode = Opcode::mul;
  part.types[0] = type, part.type_count = 1;
  part.modifiers.add(s.has(Modifier::hi) ? Modifier::hi : Modifier::lo);
  Op& first = emit(select(Opcode::mul, part));
  first.d = product, first.a = a, first.b = b;
  part.opcode = s.opcode == Opcode::madc ? Opcode::addc : Opcode::add;
  part.modifiers = {};
  if (s.has(Modifier::cc)) part.modifiers.add(Modifier::cc);
  Op& second = emit(select(part.opcode, part));
  second.d = d, second.a = product, second.b = c;
  finish_destination(i.operands[0], type, d);
}

/// lop3.and and lop3.or: d by table, and p = (d != 0) combined with q.
void Decoder::table_and_predicate(const ptx::Instruction& i, const Spelling& s) {
  const std::vector<Operand>& o = i.operands;
  if (o.size() != 6) throw Unsupported{fmt::format("it has {} operands", o.size())};
  std::vector<u32> in;
  for (std::size_t n = 1; n < 5; ++n) in.push_back(source(o[n], Type::b32));
  const u32 q = plain_predicate(o[5]), p = predicate_temporary(), d = narrow_temporary();
  const u32* more = list({in[3]});
  Op& table = emit(select_simple(Opcode::lop3, Type::b32));
  table.d = d, table.a = in[0], table.b = in[1], table.c = in[2], table.list = more;
  Spelling compared;
  compared.opcode = Opcode::setp;
  compared.types[0] = Type::b32, compared.type_count = 1;
  compared.modifiers.add(Modifier::ne);
  Op& differs = emit(select(Opcode::setp, compared));
  differs.d = p, differs.a = d, differs.b = narrow_constant(0);
  Op& logic = emit(Plain::predicate_logic);
  logic.d = o[0].second == ptx::kNoRegister ? p : predicate_slot(o[0].second);
  logic.a = p, logic.b = q, logic.choice = s.has(Modifier::and_) ? 0 : 1;
  const u32 to = destination(o[0], Type::b32);
  Op& copy = emit(Plain::copy_narrow);
  copy.d = to, copy.a = d;
  finish_destination(o[0], Type::b32, to);
}

/// createpolicy: a cache policy changes no result, so any value will do.
void Decoder::policy(const ptx::Instruction& i) {
  const u32 d = destination(i.operands[0], Type::b64);
  Op& op = emit(Plain::copy_wide);
  op.d = d, op.a = wide_constant(0);
  finish_destination(i.operands[0], Type::b64, d);
}

void Decoder::composed(const ptx::Instruction& i, const Spelling& s) {
  if (s.opcode == Opcode::createpolicy) return policy(i);
  by_pattern(i, s);
}

}  // namespace attest::emulator
