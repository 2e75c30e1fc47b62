// Instructions by their operand pattern, and those made of several handlers: comparisons, moves.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/decode.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

Type doubled(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      throw Unsupported{".wide wants a 16- or 32-bit integer"};
  }
}

/// The type a pattern letter stands for. `none` for a predicate.
Type type_of_letter(char letter, const Spelling& s) {
  switch (letter) {
    case 'T':
      return s.types[0];
    case 't':
      return s.types[0];
    case 'U':
    case 'u':
      return s.types[1];
    case 'W':
      return s.has(Modifier::wide) ? doubled(s.types[0]) : s.types[0];
    case 'n':
      return Type::b32;
    case 'l':
      return Type::b64;
    default:
      return Type::none;
  }
}

/// How a comparison reduces to eq, ne, lt, le and num.
struct Relation {
  Modifier name, base;
  bool swapped, negated;
};
constexpr Relation kRelations[] = {
    {Modifier::eq, Modifier::eq, false, false},
    {Modifier::ne, Modifier::ne, false, false},
    {Modifier::lt, Modifier::lt, false, false},
    {Modifier::le, Modifier::le, false, false},
    {Modifier::gt, Modifier::lt, true, false},
    {Modifier::ge, Modifier::le, true, false},
    {Modifier::lo, Modifier::lt, false, false},
    {Modifier::ls, Modifier::le, false, false},
    {Modifier::hi, Modifier::lt, true, false},
    {Modifier::hs, Modifier::le, true, false},
    // Unordered ones are the complement of the opposite ordered one.
    {Modifier::equ, Modifier::ne, false, true},
    {Modifier::neu, Modifier::eq, false, true},
    {Modifier::ltu, Modifier::le, true, true},
    {Modifier::leu, Modifier::lt, true, true},
    {Modifier::gtu, Modifier::le, false, true},
    {Modifier::geu, Modifier::lt, false, true},
    {Modifier::num, Modifier::num, false, false},
    {Modifier::nan, Modifier::num, false, true},
};

}  // namespace

void Decoder::by_pattern(const ptx::Instruction& i, const Spelling& s) {
  std::string_view pattern = row_of(s.opcode).operands;
  if (s.type() == Type::pred) return predicate_logic(i, s);
  const Handler handler = select(s.opcode, s);
  std::vector<char> letters;
  for (char c : pattern) {
    if (c != ' ') letters.push_back(c);
  }
  if (i.operands.size() > letters.size())
    throw Unsupported{fmt::format("it has {} operands", i.operands.size())};
  std::vector<u32> in;
  bool negated = false;
  for (std::size_t n = 1; n < i.operands.size(); ++n) {
    if (letters[n] == 'p')
      in.push_back(predicate(i.operands[n], negated));
    else
      in.push_back(source(i.operands[n], type_of_letter(letters[n], s)));
  }
  const bool gives_predicate = letters[0] == 'p';
  const Type result = type_of_letter(letters[0], s);
  const u32 d =
      gives_predicate ? predicate_destination(i.operands[0]) : destination(i.operands[0], result);
  const u32* more = in.size() > 3 ? list({in.begin() + 3, in.end()}) : nullptr;
  Op& op = emit(handler);
  op.d = d;
  if (in.size() > 0) op.a = in[0];
  if (in.size() > 1) op.b = in[1];
  if (in.size() > 2) op.c = in[2];
  op.list = more;
  if (negated) op.immediate = s64(kAllLanes);
  if (!gives_predicate) finish_destination(i.operands[0], result, d);
}

void Decoder::predicate_logic(const ptx::Instruction& i, const Spelling& s) {
  if (i.operands.size() != (s.opcode == Opcode::not_ ? 2 : 3))
    throw Unsupported{fmt::format("it has {} operands", i.operands.size())};
  const u32 a = plain_predicate(i.operands[1]);
  const u32 b = i.operands.size() > 2 ? plain_predicate(i.operands[2]) : a;
  const u32 d = predicate_destination(i.operands[0]);
  Op& op = emit(select(s.opcode, s));
  op.d = d, op.a = a, op.b = b;
  switch (s.opcode) {
    case Opcode::and_:
      op.choice = 0;
      break;
    case Opcode::or_:
      op.choice = 1;
      break;
    case Opcode::xor_:
      op.choice = 2;
      break;
    case Opcode::not_:
      op.choice = 3;
      break;
    default:
      throw Unsupported{"predicates have no such operation"};
  }
}

/// Predicate `to` = a compared with b; of the upper halves of packed operands when asked.
void Decoder::comparison(const Operand& a, const Operand& b, Type type, const Spelling& s, u32 to,
                         bool upper_half) {
  const auto relation = std::find_if(std::begin(kRelations), std::end(kRelations),
                                     [&](const Relation& r) { return s.has(r.name); });
  if (relation == std::end(kRelations)) throw Unsupported{"it names no comparison"};
  u32 left = source(a, type), right = source(b, type);
  Type element = type;
  if (type == Type::f16x2) element = Type::f16;
  if (type == Type::bf16x2) element = Type::bf16;
  if (upper_half) {
    for (u32* side : {&left, &right}) {
      const u32 d = narrow_temporary();
      Op& op = emit(select_simple(Opcode::shr, Type::b32));
      op.d = d, op.a = *side, op.b = narrow_constant(16);
      *side = d;
    }
  }
  if (relation->swapped) std::swap(left, right);
  Spelling plain;
  plain.opcode = Opcode::setp;
  plain.types[0] = element, plain.type_count = 1;
  plain.modifiers.add(relation->base);
  if (s.has(Modifier::ftz)) plain.modifiers.add(Modifier::ftz);
  Op& op = emit(select(Opcode::setp, plain));
  op.d = to, op.a = left, op.b = right;
  if (relation->negated) op.immediate = s64(kAllLanes);
}

/// p = p combined with c by .and, .or or .xor.
void Decoder::combine(const Spelling& s, u32 p, const Operand& c) {
  const u32 with = plain_predicate(c);
  Op& op = emit(Plain::predicate_logic);
  op.d = op.a = p, op.b = with;
  op.choice = s.has(Modifier::and_) ? 0 : s.has(Modifier::or_) ? 1 : 2;
}

void Decoder::setp(const ptx::Instruction& i, const Spelling& s) {
  const Operand& to = i.operands[0];
  const bool has_second = to.second != ptx::kNoRegister;
  const bool combined = i.operands.size() > 3;
  const Type type = s.types[s.type_count ? s.type_count - 1 : 0];
  const bool packed = type == Type::f16x2 || type == Type::bf16x2;
  if (to.kind == Operand::Kind::reg && !has_second && !combined && !packed) {
    comparison(i.operands[1], i.operands[2], type, s, predicate_destination(to), false);
    return;
  }
  // Results go to temporaries first: c may be one of the destinations.
  const u32 p = predicate_temporary(), q = predicate_temporary();
  comparison(i.operands[1], i.operands[2], type, s, p, false);
  if (packed) {
    comparison(i.operands[1], i.operands[2], type, s, q, true);
  } else {
    Op& op = emit(Plain::predicate_logic);
    op.d = q, op.a = op.b = p, op.choice = 3;
  }
  if (combined) {
    combine(s, p, i.operands[3]);
    combine(s, q, i.operands[3]);
  }
  const auto deliver = [&](u32 d, u32 from) {
    Op& op = emit(Plain::predicate_logic);
    op.d = d, op.a = op.b = from, op.choice = 4;
  };
  if (has_second) deliver(predicate_slot(to.second), q);
  deliver(predicate_destination(to), p);
}

void Decoder::select_by_predicate(u32 d, u32 a, u32 b, u32 p, bool negated, bool wide) {
  Op& op = emit(wide ? Plain::select_wide : Plain::select_narrow);
  op.d = d, op.a = a, op.b = b, op.c = p;
  op.immediate = negated ? s64(kAllLanes) : 0;
}

void Decoder::set(const ptx::Instruction& i, const Spelling& s) {
  if (s.type_count != 2) throw Unsupported{"it wants two types"};
  const Type to = s.types[0], type = s.types[1];
  const auto one = [](Type t) -> u32 {
    switch (t) {
      case Type::f32:
        return 0x3f800000u;
      case Type::f16:
      case Type::f16x2:
        return 0x3c00u;
      case Type::bf16:
      case Type::bf16x2:
        return 0x3f80u;
      default:
        return ~0u;
    }
  };
  const bool packed = type == Type::f16x2 || type == Type::bf16x2;
  const u32 d = destination(i.operands[0], to), p = predicate_temporary();
  comparison(i.operands[1], i.operands[2], type, s, p, false);
  if (i.operands.size() > 3) combine(s, p, i.operands[3]);
  if (!packed) {
    select_by_predicate(d, narrow_constant(one(to)), narrow_constant(0), p, false, false);
    finish_destination(i.operands[0], to, d);
    return;
  }
  const u32 q = predicate_temporary(), low = narrow_temporary(), high = narrow_temporary();
  comparison(i.operands[1], i.operands[2], type, s, q, true);
  if (i.operands.size() > 3) combine(s, q, i.operands[3]);
  select_by_predicate(low, narrow_constant(one(to) & 0xffff), narrow_constant(0), p, false, false);
  select_by_predicate(high, narrow_constant(one(to) << 16), narrow_constant(0), q, false, false);
  Op& op = emit(select_simple(Opcode::or_, Type::b32));
  op.d = d, op.a = low, op.b = high;
}

void Decoder::mov(const ptx::Instruction& i, const Spelling& s) {
  const Operand& to = i.operands[0];
  const Operand& from = i.operands[1];
  if (to.kind == Operand::Kind::vector) return unpack(to.elements, from, s.type());
  if (s.type() == Type::pred) {
    const u32 p = plain_predicate(from), d = predicate_destination(to);
    Op& op = emit(Plain::predicate_logic);
    op.d = d, op.a = op.b = p, op.choice = 4;
    return;
  }
  const bool wide = ptx::size_of(s.type()) == 8;
  if (from.kind == Operand::Kind::vector) {
    const u32 packed = pack(from.elements, s.type()), d = destination(to, s.type());
    Op& op = emit(wide ? Plain::copy_wide : Plain::copy_narrow);
    op.d = d, op.a = packed;
    finish_destination(to, s.type(), d);
    return;
  }
  const u32 d = destination(to, s.type());
  if (from.kind == Operand::Kind::special) {
    special(from, wide);
    code_.ops.back().d = d;  // straight to its destination
  } else {
    const u32 a = source(from, s.type());
    Op& op = emit(wide ? Plain::copy_wide : Plain::copy_narrow);
    op.d = d, op.a = a;
  }
  finish_destination(to, s.type(), d);
}

/// Combines parts, first one lowest, into one slot.
u32 Decoder::pack(const std::vector<Operand>& parts, Type type) {
  const std::size_t part_bytes = ptx::size_of(type) / std::max<std::size_t>(parts.size(), 1);
  const auto permute = [&](u32 a, u32 b, u32 selector) {
    const u32 d = narrow_temporary();
    Op& op = emit(select_simple(Opcode::prmt, Type::b32));
    op.d = d, op.a = a, op.b = b, op.c = narrow_constant(selector);
    return d;
  };
  const auto halves = [&](const Operand& low, const Operand& high) {
    return permute(source(low, Type::b16), source(high, Type::b16), 0x5410);
  };
  const auto words = [&](u32 low, u32 high) {
    const u32 d = wide_temporary();
    Op& op = emit(Plain::pack_wide);
    op.d = d, op.a = low, op.b = high;
    return d;
  };
  if (parts.size() == 2 && part_bytes == 4) {
    const u32 low = source(parts[0], Type::b32), high = source(parts[1], Type::b32);
    return words(low, high);
  }
  if (parts.size() == 2 && part_bytes == 2) return halves(parts[0], parts[1]);
  if (parts.size() == 2 && part_bytes == 1)
    return permute(source(parts[0], Type::b32), source(parts[1], Type::b32), 0x0040);
  if (parts.size() == 4 && part_bytes == 2) {
    const u32 low = halves(parts[0], parts[1]), high = halves(parts[2], parts[3]);
    return words(low, high);
  }
  if (parts.size() == 4 && part_bytes == 1) {
    const u32 low = permute(source(parts[0], Type::b32), source(parts[1], Type::b32), 0x0040);
    const u32 high = permute(source(parts[2], Type::b32), source(parts[3], Type::b32), 0x0040);
    return permute(low, high, 0x5410);
  }
  throw Unsupported{fmt::format("{} parts of {} bytes cannot be packed", parts.size(), part_bytes)};
}

void Decoder::unpack(const std::vector<Operand>& parts, const Operand& from, Type type) {
  const std::size_t part_bytes = ptx::size_of(type) / std::max<std::size_t>(parts.size(), 1);
  u32 whole = source(from, type);
  const auto give = [&](const Operand& part, Plain how, u32 a) {
    if (part.kind == Operand::Kind::sink) return;
    Op& op = emit(how);
    op.d = slot_of(part.reg), op.a = a;
  };
  const auto shifted = [&](const Operand& part, u32 a, u32 bits) {
    if (part.kind == Operand::Kind::sink) return;
    Op& op = emit(select_simple(Opcode::shr, Type::b32));
    op.d = slot_of(part.reg), op.a = a, op.b = narrow_constant(bits);
  };
  if (parts.size() == 2 && part_bytes == 4) {
    give(parts[0], Plain::truncate, whole);
    give(parts[1], Plain::high_word, whole);
  } else if (parts.size() == 2 && part_bytes <= 2) {
    shifted(parts[0], whole, 0);
    shifted(parts[1], whole, u32(part_bytes) * 8);
  } else if (parts.size() == 4 && part_bytes == 2) {
    const u32 low = narrow_temporary(), high = narrow_temporary();
    for (const auto& [d, how] :
         {std::pair{low, Plain::truncate}, std::pair{high, Plain::high_word}}) {
      Op& op = emit(how);
      op.d = d, op.a = whole;
    }
    for (u32 n = 0; n < 4; ++n) shifted(parts[n], n < 2 ? low : high, n % 2 * 16);
  } else if (parts.size() == 4 && part_bytes == 1) {
    for (u32 n = 0; n < 4; ++n) shifted(parts[n], whole, n * 8);
  } else {
    throw Unsupported{
        fmt::format("{} parts of {} bytes cannot be unpacked", parts.size(), part_bytes)};
  }
}

void Decoder::cvta(const ptx::Instruction& i, const Spelling& s) {
  const bool to = s.has(Modifier::to);
  u64 window = 0;
  if (s.has(Modifier::shared) || s.has(Modifier::shared_cta)) window = kSharedWindow;
  if (s.has(Modifier::local)) window = kLocalWindow;
  // The addresses of parameters and of device memory are generic already.
  const u32 d = destination(i.operands[0], Type::b64);
  const u32 a = source(i.operands[1], Type::b64);
  if (window == 0) {
    Op& op = emit(Plain::copy_wide);
    op.d = d, op.a = a;
  } else {
    Op& op = emit(select_simple(to ? Opcode::sub : Opcode::add, Type::u64));
    op.d = d, op.a = a, op.b = wide_constant(window);
  }
  finish_destination(i.operands[0], Type::b64, d);
}

}  // namespace attest::emulator
