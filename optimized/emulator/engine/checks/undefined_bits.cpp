// The rules by which undefined bits pass through instructions. See undefined_bits.hpp.
#include "optimized/emulator/engine/checks/undefined_bits.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace attest::emulator {
namespace {

using ptx::Type;
using M = Modifier;

u64 low_bits(u32 count) {
  return count >= 64 ? ~u64{0} : (u64{1} << count) - 1;
}

u64 any_of(const OperandBits& in) {
  u64 sum = 0;
  for (u32 n = 0; n < in.count; ++n) sum |= in.undefined[n];
  return sum;
}

bool is_float(Type t) {
  switch (t) {
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
    case Type::f32:
    case Type::f64:
      return true;
    default:
      return false;
  }
}
bool is_signed(Type t) {
  return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64;
}
u32 bits_of(Type t) {
  return u32(ptx::size_of(t)) * 8;
}

/// Each element of the result is undefined as a whole when it is in part.
u64 by_elements(u64 bits, u32 width) {
  u64 result = 0;
  for (u32 at = 0; at < 64; at += width) {
    const u64 mask = low_bits(width) << at;
    if ((bits & mask) != 0) result |= mask;
  }
  return result;
}

/// Sums and products: a bit depends on none above it.
u64 upwards(u64 bits) {
  return bits == 0 ? 0 : ~(low_bits(u32(__builtin_ctzll(bits))));
}

/// Any function of up to three bits, by its table: undefined where the undefined ones can change
/// what comes out.
u64 by_table(const OperandBits& in, u32 operands, u32 table) {
  u64 can_be[2] = {0, 0};
  for (u32 index = 0; index < 8; ++index) {
    u64 possible = ~u64{0};
    for (u32 n = 0; n < operands; ++n) {
      const u64 wanted = (index >> (2 - n)) & 1 ? in.value[n] : ~in.value[n];
      possible &= in.undefined[n] | wanted;
    }
    can_be[(table >> index) & 1] |= possible;
  }
  return can_be[0] & can_be[1];
}

bool all_known(const OperandBits& in, u32 operands) {
  return std::all_of(in.known, in.known + operands, [](bool k) { return k; });
}
/// Operand n has a value that is known and defined.
bool is_given(const OperandBits& in, u32 n) {
  return n < in.count && in.known[n] && in.undefined[n] == 0;
}

u64 whole(const OperandBits& in) {
  return any_of(in) ? ~u64{0} : 0;
}

u64 logic(const OperandBits& in, u32 operands, u32 table) {
  return all_known(in, operands) ? by_table(in, operands, table) : any_of(in);
}

/// Of an element shifted towards lower bits, what its sign repeats.
u64 extended(u64 bits, u32 width, bool sign) {
  bits &= low_bits(width);
  return sign && width != 0 && ((bits >> (width - 1)) & 1) ? bits | ~low_bits(width) : bits;
}

u64 shifted(Opcode opcode, const Spelling& s, const OperandBits& in) {
  if (!is_given(in, 1)) return whole(in);
  const u32 width = bits_of(s.type()), count = u32(std::min<u64>(in.value[1] & 0xffffffff, width));
  const u64 bits = in.undefined[0];
  if (opcode == Opcode::shl) return count >= 64 ? 0 : bits << count;
  const u64 wide = extended(bits, width, is_signed(s.type()));
  if (count >= 64) return is_signed(s.type()) && (wide >> 63) ? ~u64{0} : 0;
  return is_signed(s.type()) ? u64(s64(wide) >> count) : wide >> count;
}

u64 funnel_shifted(const Spelling& s, const OperandBits& in) {
  if (!is_given(in, 2)) return whole(in);
  const u32 asked = u32(in.value[2]);
  const u32 count = s.has(M::wrap) ? asked & 31 : std::min(asked, 32u);
  const u64 both = (in.undefined[1] & 0xffffffff) << 32 | (in.undefined[0] & 0xffffffff);
  return s.has(M::l) ? (both << count) >> 32 : both >> count;
}

u64 permuted(const Spelling& s, const OperandBits& in) {
  const bool indexed = !(s.has(M::f4e) || s.has(M::b4e) || s.has(M::rc8) || s.has(M::ecl) ||
                         s.has(M::ecr) || s.has(M::rc16));
  if (!indexed || !is_given(in, 2)) return whole(in);
  const u64 both = (in.undefined[1] & 0xffffffff) << 32 | (in.undefined[0] & 0xffffffff);
  u64 result = 0;
  for (u32 n = 0; n < 4; ++n) {
    const u32 pick = u32(in.value[2] >> (4 * n)) & 15;
    u64 byte = (both >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * n);
  }
  return result;
}

u64 field_of(const Spelling& s, const OperandBits& in) {
  if (!is_given(in, 1) || !is_given(in, 2)) return whole(in);
  const u32 at = u32(in.value[1]) & 0xff, length = u32(in.value[2]) & 0xff;
  const u32 width = bits_of(s.type());
  if (at + length > width) return whole(in);  // the sign comes from the last bit there is
  return extended(at >= 64 ? 0 : (in.undefined[0] & low_bits(width)) >> at, length,
                  is_signed(s.type()));
}

u64 inserted(const OperandBits& in) {
  if (!is_given(in, 2) || !is_given(in, 3)) return whole(in);
  const u32 at = u32(in.value[2]) & 0xff, length = u32(in.value[3]) & 0xff;
  const u64 mask = at >= 64 ? 0 : low_bits(length) << at;
  return (in.undefined[1] & ~mask) | (at >= 64 ? 0 : (in.undefined[0] << at) & mask);
}

/// Formats in the order that cvt names them: how many elements of how many bits.
struct Elements {
  std::string_view name;
  u32 count, bits;
};
constexpr std::array kPacked{Elements{"f16x2", 2, 16}, Elements{"bf16x2", 2, 16},
                             Elements{"e4m3x2", 2, 8}, Elements{"e5m2x2", 2, 8},
                             Elements{"e2m3x2", 2, 8}, Elements{"e3m2x2", 2, 8},
                             Elements{"e2m1x2", 2, 4}, Elements{"ue8m0x2", 2, 8}};

std::vector<Elements> formats_of(const ptx::Instruction& i) {
  std::vector<Elements> formats;
  for (const std::string& m : i.modifiers) {
    const auto packed = std::find_if(kPacked.begin(), kPacked.end(),
                                     [&](const Elements& e) { return e.name == m; });
    if (packed != kPacked.end())
      formats.push_back(*packed);
    else if (const auto type = ptx::type_named(m))
      formats.push_back({m, 1, bits_of(*type)});
  }
  return formats;
}

u64 converted(const ptx::Instruction& i, const Spelling& s, const OperandBits& in) {
  const std::vector<Elements> formats = formats_of(i);
  if (formats.size() < 2 || s.has(M::pack)) return whole(in);
  const Elements to = formats[0], from = formats[1];
  if (to.count == 2) {
    u64 result = 0;
    for (u32 e = 0; e < 2; ++e) {
      // Two operands: the first becomes the upper element.
      const u64 element = from.count == 2
                              ? (in.undefined[0] >> (e * from.bits)) & low_bits(from.bits)
                              : in.undefined[in.count >= 2 ? 1 - e : 0];
      if (element != 0) result |= low_bits(to.bits) << (e * to.bits);
    }
    return result;
  }
  const auto a = ptx::type_named(to.name), b = ptx::type_named(from.name);
  if (!a || !b || is_float(*a) || is_float(*b) || s.has(M::sat)) return whole(in);
  return extended(in.undefined[0], from.bits, is_signed(*b)) & low_bits(to.bits);
}

u64 reversed(u64 bits, u32 width) {
  u64 result = 0;
  for (u32 n = 0; n < width; ++n) result |= ((bits >> n) & 1) << (width - 1 - n);
  return result;
}

/// Elements of packed arithmetic: 0 when it is none.
u32 packed_width(const Spelling& s) {
  if (s.has(M::f32x2)) return 32;
  if (s.has(M::u16x2) || s.has(M::s16x2)) return 16;
  return s.type() == Type::f16x2 || s.type() == Type::bf16x2 ? 16 : 0;
}

u64 arithmetic(const Spelling& s, const OperandBits& in) {
  if (const u32 width = packed_width(s)) return by_elements(any_of(in), width);
  const bool plain = !is_float(s.type()) && !s.has(M::sat) && !s.has(M::hi) && !s.has(M::cc);
  return plain ? upwards(any_of(in)) : whole(in);
}

}  // namespace

u64 undefined_result(const ptx::Instruction& i, const Spelling& s, const OperandBits& in) {
  switch (s.opcode) {
    case Opcode::mov:
      return in.undefined[0];
    case Opcode::and_:
      return logic(in, 2, 0xc0);
    case Opcode::or_:
      return logic(in, 2, 0xfc);
    case Opcode::xor_:
    case Opcode::not_:
      return any_of(in);
    case Opcode::lop3:
      if (s.has(M::and_) || s.has(M::or_) || !is_given(in, 3)) return whole(in);
      return logic(in, 3, u32(in.value[3]));
    case Opcode::shl:
    case Opcode::shr:
      return shifted(s.opcode, s, in);
    case Opcode::shf:
      return funnel_shifted(s, in);
    case Opcode::prmt:
      return permuted(s, in);
    case Opcode::bfe:
      return field_of(s, in);
    case Opcode::bfi:
      return inserted(in);
    case Opcode::brev:
      return reversed(in.undefined[0], bits_of(s.type()));
    case Opcode::cvt:
      return converted(i, s, in);
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::mad:
    case Opcode::fma:
      return arithmetic(s, in);
    default:
      break;
  }
  const u32 width = packed_width(s);
  return width != 0 ? by_elements(any_of(in), width) : whole(in);
}

}  // namespace attest::emulator
