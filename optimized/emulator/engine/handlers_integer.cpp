// Which integer and bit instructions exist, and which function each type and modifier means.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

namespace attest::emulator::ATTEST_ISA {

Handler select_add_float(const Spelling& s);  // handlers_float.cpp
Handler select_sub_float(const Spelling& s);
Handler select_mul_float(const Spelling& s);
Handler select_mad_float(const Spelling& s);
Handler select_div_float(const Spelling& s);
Handler select_abs_float(const Spelling& s);
Handler select_neg_float(const Spelling& s);
Handler select_extreme_float(const Spelling& s, bool maximum);

namespace {

/// The carry of extended arithmetic lives in predicate 0 of every frame.
template <class T, bool kSubtract, bool kTake, bool kGive>
const Op* with_carry(const Op& op, Warp& w) {
  const u8* a = slot<T>(w, op.a);
  const u8* b = slot<T>(w, op.b);
  u8* d = target<T>(op, w);
  const u32 carries = w.predicates[0];
  u32 out = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const T x = read<T>(a, l), y = read<T>(b, l);
    const T in = kTake ? T((carries >> l) & 1) : T(0);
    const T r = kSubtract ? T(x - y - in) : T(x + y + in);
    const bool carry = kSubtract ? x < y || (in && x == y) : r < x || (in && r == x);
    out |= u32(carry) << l;
    write<T>(d, l, r);
  }
  commit<T>(op, w);
  if (kGive) write_predicate(w, 0, out);
  return &op + 1;
}

template <bool kSubtract, bool kTake>
Handler select_carry(const Spelling& s) {
  const bool give = s.has(M::cc);
  switch (s.type()) {
    case Type::b32:
    case Type::u32:
    case Type::s32:
      return give ? with_carry<u32, kSubtract, kTake, true>
                  : with_carry<u32, kSubtract, kTake, false>;
    case Type::b64:
    case Type::u64:
    case Type::s64:
      return give ? with_carry<u64, kSubtract, kTake, true>
                  : with_carry<u64, kSubtract, kTake, false>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_add(const Spelling& s) {
  if (s.has(M::u16x2) || s.has(M::s16x2)) return lanewise<pair_add<u32>>;
  if (s.has(M::f32x2)) return select_add_float(s);
  if (s.has(M::cc)) return select_carry<false, false>(s);
  if (s.has(M::sat) && s.type() == Type::s32) return lanewise<add_sat>;
  switch (s.type()) {
    ATTEST_CASES_BITS(add)
    default:
      break;
  }
  return select_add_float(s);
}
Handler select_addc(const Spelling& s) {
  return select_carry<false, true>(s);
}
Handler select_sub(const Spelling& s) {
  if (s.has(M::f32x2)) return select_sub_float(s);
  if (s.has(M::cc)) return select_carry<true, false>(s);
  if (s.has(M::sat) && s.type() == Type::s32) return lanewise<sub_sat>;
  switch (s.type()) {
    ATTEST_CASES_BITS(sub)
    default:
      break;
  }
  return select_sub_float(s);
}
Handler select_subc(const Spelling& s) {
  return select_carry<true, true>(s);
}

Handler select_mul(const Spelling& s) {
  if (s.has(M::wide)) {
    switch (s.type()) {
      case Type::u16:
        return lanewise<mul_wide<u16>>;
      case Type::s16:
        return lanewise<mul_wide<s16>>;
      case Type::u32:
        return lanewise<mul_wide<u32>>;
      case Type::s32:
        return lanewise<mul_wide<s32>>;
      default:
        return nullptr;
    }
  }
  if (s.has(M::hi)) {
    switch (s.type()) {
      ATTEST_CASES_INTEGERS(mul_hi)
      default:
        return nullptr;
    }
  }
  if (s.has(M::lo)) {
    switch (s.type()) {
      ATTEST_CASES_BITS(mul_lo)
      default:
        return nullptr;
    }
  }
  return select_mul_float(s);
}
Handler select_mad(const Spelling& s) {
  if (s.has(M::wide)) {
    switch (s.type()) {
      case Type::u16:
        return lanewise<mad_wide<u16>>;
      case Type::s16:
        return lanewise<mad_wide<s16>>;
      case Type::u32:
        return lanewise<mad_wide<u32>>;
      case Type::s32:
        return lanewise<mad_wide<s32>>;
      default:
        return nullptr;
    }
  }
  if (s.has(M::hi)) {
    if (s.has(M::sat)) return s.type() == Type::s32 ? lanewise<mad_hi_sat> : nullptr;
    switch (s.type()) {
      ATTEST_CASES_INTEGERS(mad_hi)
      default:
        return nullptr;
    }
  }
  if (s.has(M::lo)) {
    switch (s.type()) {
      ATTEST_CASES_BITS(mad_lo)
      default:
        return nullptr;
    }
  }
  return select_mad_float(s);
}
Handler select_mul24(const Spelling& s) {
  if (s.type() == Type::u32)
    return s.has(M::hi) ? lanewise<mul24_hi<u32>> : lanewise<mul24_lo<u32>>;
  if (s.type() == Type::s32)
    return s.has(M::hi) ? lanewise<mul24_hi<s32>> : lanewise<mul24_lo<s32>>;
  return nullptr;
}
Handler select_mad24(const Spelling& s) {
  if (s.has(M::sat)) return lanewise<mad24_hi_sat>;
  if (s.type() == Type::u32)
    return s.has(M::hi) ? lanewise<mad24_hi<u32>> : lanewise<mad24_lo<u32>>;
  if (s.type() == Type::s32)
    return s.has(M::hi) ? lanewise<mad24_hi<s32>> : lanewise<mad24_lo<s32>>;
  return nullptr;
}
Handler select_div(const Spelling& s) {
  switch (s.type()) {
    ATTEST_CASES_INTEGERS(divide)
    default:
      return select_div_float(s);
  }
}
Handler select_rem(const Spelling& s) {
  switch (s.type()) {
    ATTEST_CASES_INTEGERS(remainder)
    default:
      return nullptr;
  }
}
Handler select_abs(const Spelling& s) {
  switch (s.type()) {
    case Type::s16:
      return lanewise<absolute<s16>>;
    case Type::s32:
      return lanewise<absolute<s32>>;
    case Type::s64:
      return lanewise<absolute<s64>>;
    default:
      return select_abs_float(s);
  }
}
Handler select_neg(const Spelling& s) {
  switch (s.type()) {
    case Type::s16:
      return lanewise<negate<s16>>;
    case Type::s32:
      return lanewise<negate<s32>>;
    case Type::s64:
      return lanewise<negate<s64>>;
    default:
      return select_neg_float(s);
  }
}
template <bool kMaximum>
Handler packed_extreme(const Spelling& s) {
  if (s.has(M::u16x2))
    return s.has(M::relu) ? nullptr : lanewise<pair_extreme<u16, kMaximum, false>>;
  return s.has(M::relu) ? lanewise<pair_extreme<s16, kMaximum, true>>
                        : lanewise<pair_extreme<s16, kMaximum, false>>;
}
Handler select_min(const Spelling& s) {
  if (s.has(M::u16x2) || s.has(M::s16x2)) return packed_extreme<false>(s);
  if (s.has(M::relu) && s.type() == Type::s32) return lanewise<smaller_relu<s32>>;
  switch (s.type()) {
    ATTEST_CASES_INTEGERS(smaller)
    default:
      return select_extreme_float(s, false);
  }
}
Handler select_max(const Spelling& s) {
  if (s.has(M::u16x2) || s.has(M::s16x2)) return packed_extreme<true>(s);
  if (s.has(M::relu) && s.type() == Type::s32) return lanewise<larger_relu<s32>>;
  switch (s.type()) {
    ATTEST_CASES_INTEGERS(larger)
    default:
      return select_extreme_float(s, true);
  }
}
Handler select_sad(const Spelling& s) {
  switch (s.type()) {
    ATTEST_CASES_INTEGERS(sad)
    default:
      return nullptr;
  }
}
bool is_word(Type type) {
  return type == Type::u32 || type == Type::s32;
}
Handler select_dp4a(const Spelling& s) {
  const bool a = s.types[0] == Type::s32, b = s.types[1] == Type::s32;
  if (s.type_count != 2 || !is_word(s.types[0]) || !is_word(s.types[1])) return nullptr;
  if (a) return b ? lanewise<dot4<s8, s8>> : lanewise<dot4<s8, u8>>;
  return b ? lanewise<dot4<u8, s8>> : lanewise<dot4<u8, u8>>;
}
Handler select_dp2a(const Spelling& s) {
  const bool a = s.types[0] == Type::s32, b = s.types[1] == Type::s32;
  if (s.type_count != 2 || !is_word(s.types[0]) || !is_word(s.types[1])) return nullptr;
  if (s.has(M::hi)) {
    if (a) return b ? lanewise<dot2<s16, s8, true>> : lanewise<dot2<s16, u8, true>>;
    return b ? lanewise<dot2<u16, s8, true>> : lanewise<dot2<u16, u8, true>>;
  }
  if (a) return b ? lanewise<dot2<s16, s8, false>> : lanewise<dot2<s16, u8, false>>;
  return b ? lanewise<dot2<u16, s8, false>> : lanewise<dot2<u16, u8, false>>;
}

Handler select_and_(const Spelling& s) {
  switch (s.type()) {
    case Type::pred:
      return kPlain[std::size_t(Plain::predicate_logic)];
      ATTEST_CASES_BITS(bit_and)
    default:
      return nullptr;
  }
}
Handler select_or_(const Spelling& s) {
  switch (s.type()) {
    case Type::pred:
      return kPlain[std::size_t(Plain::predicate_logic)];
      ATTEST_CASES_BITS(bit_or)
    default:
      return nullptr;
  }
}
Handler select_xor_(const Spelling& s) {
  switch (s.type()) {
    case Type::pred:
      return kPlain[std::size_t(Plain::predicate_logic)];
      ATTEST_CASES_BITS(bit_xor)
    default:
      return nullptr;
  }
}
Handler select_not_(const Spelling& s) {
  switch (s.type()) {
    case Type::pred:
      return kPlain[std::size_t(Plain::predicate_logic)];
      ATTEST_CASES_BITS(bit_not)
    default:
      return nullptr;
  }
}
Handler select_cnot(const Spelling& s) {
  switch (s.type()) {
    ATTEST_CASES_BITS(c_not)
    default:
      return nullptr;
  }
}
Handler select_lop3(const Spelling& s) {
  return s.type() == Type::b32 ? lanewise<lop3> : nullptr;
}
Handler select_shl(const Spelling& s) {
  switch (s.type()) {
    ATTEST_CASES_BITS(shift_left)
    default:
      return nullptr;
  }
}
Handler select_shr(const Spelling& s) {
  switch (s.type()) {
    case Type::b16:
      return lanewise<shift_right<u16>>;
    case Type::b32:
      return lanewise<shift_right<u32>>;
    case Type::b64:
      return lanewise<shift_right<u64>>;
      ATTEST_CASES_INTEGERS(shift_right)
    default:
      return nullptr;
  }
}
Handler select_shf(const Spelling& s) {
  if (s.has(M::l))
    return s.has(M::wrap) ? lanewise<funnel<true, true>> : lanewise<funnel<true, false>>;
  return s.has(M::wrap) ? lanewise<funnel<false, true>> : lanewise<funnel<false, false>>;
}
Handler select_bfi(const Spelling& s) {
  if (s.type() == Type::b32) return lanewise<insert_field<u32>>;
  return s.type() == Type::b64 ? lanewise<insert_field<u64>> : nullptr;
}
Handler select_bfe(const Spelling& s) {
  switch (s.type()) {
    case Type::u32:
      return lanewise<extract_field<u32>>;
    case Type::s32:
      return lanewise<extract_field<s32>>;
    case Type::u64:
      return lanewise<extract_field<u64>>;
    case Type::s64:
      return lanewise<extract_field<s64>>;
    default:
      return nullptr;
  }
}
Handler select_bfind(const Spelling& s) {
  const bool shift = s.has(M::shiftamt);
  switch (s.type()) {
    case Type::u32:
      return shift ? lanewise<find_leading<u32, true>> : lanewise<find_leading<u32, false>>;
    case Type::s32:
      return shift ? lanewise<find_leading<s32, true>> : lanewise<find_leading<s32, false>>;
    case Type::u64:
      return shift ? lanewise<find_leading<u64, true>> : lanewise<find_leading<u64, false>>;
    case Type::s64:
      return shift ? lanewise<find_leading<s64, true>> : lanewise<find_leading<s64, false>>;
    default:
      return nullptr;
  }
}
Handler select_szext(const Spelling& s) {
  if (s.type() == Type::s32)
    return s.has(M::clamp) ? lanewise<extend_low<s32, true>> : lanewise<extend_low<s32, false>>;
  return s.has(M::clamp) ? lanewise<extend_low<u32, true>> : lanewise<extend_low<u32, false>>;
}
Handler select_bmsk(const Spelling& s) {
  return s.has(M::clamp) ? lanewise<bit_mask<true>> : lanewise<bit_mask<false>>;
}
Handler select_brev(const Spelling& s) {
  if (s.type() == Type::b32) return lanewise<reverse_u32>;
  return s.type() == Type::b64 ? lanewise<reverse_u64> : nullptr;
}
Handler select_clz(const Spelling& s) {
  if (s.type() == Type::b32) return lanewise<leading_zeros_u32>;
  return s.type() == Type::b64 ? lanewise<leading_zeros_u64> : nullptr;
}
Handler select_popc(const Spelling& s) {
  if (s.type() == Type::b32) return lanewise<ones_u32>;
  return s.type() == Type::b64 ? lanewise<ones_u64> : nullptr;
}
Handler select_prmt(const Spelling& s) {
  if (s.has(M::f4e)) return lanewise<permute_mode<Permute::f4e>>;
  if (s.has(M::b4e)) return lanewise<permute_mode<Permute::b4e>>;
  if (s.has(M::rc8)) return lanewise<permute_mode<Permute::rc8>>;
  if (s.has(M::ecl)) return lanewise<permute_mode<Permute::ecl>>;
  if (s.has(M::ecr)) return lanewise<permute_mode<Permute::ecr>>;
  if (s.has(M::rc16)) return lanewise<permute_mode<Permute::rc16>>;
  return lanewise<permute>;
}

}  // namespace attest::emulator::ATTEST_ISA
