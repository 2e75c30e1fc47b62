// cvt: which pairs of types and which roundings exist, and the function each means. Compiled once,
// for the oldest instruction set; handlers_convert_hot.cpp has what kernels use in loops.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_convert.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

/// The rounding to an integer: .rni and its kin.
Rounding integral_rounding(const Spelling& s) {
  if (s.has(M::rzi)) return Rounding::zero;
  if (s.has(M::rmi)) return Rounding::down;
  return s.has(M::rpi) ? Rounding::up : Rounding::nearest;
}
bool is_integral(const Spelling& s) {
  return s.has(M::rni) || s.has(M::rzi) || s.has(M::rmi) || s.has(M::rpi);
}
#define ATTEST_INTEGRAL(F)         \
  switch (integral_rounding(s)) {  \
    case Rounding::nearest:        \
      return F(Rounding::nearest); \
    case Rounding::zero:           \
      return F(Rounding::zero);    \
    case Rounding::down:           \
      return F(Rounding::down);    \
    case Rounding::up:             \
      return F(Rounding::up);      \
  }

template <class D>
Handler int_from(const Spelling& s) {
  const bool sat = s.has(M::sat);
#define ATTEST_FROM_INT(A) \
  return sat ? lanewise<int_to_int<D, A, true>> : lanewise<int_to_int<D, A, false>>
  switch (s.types[1]) {
    case Type::u8:
    case Type::b8:
      ATTEST_FROM_INT(u8);
    case Type::s8:
      ATTEST_FROM_INT(s8);
    case Type::u16:
    case Type::b16:
      ATTEST_FROM_INT(u16);
    case Type::s16:
      ATTEST_FROM_INT(s16);
    case Type::u32:
    case Type::b32:
      ATTEST_FROM_INT(u32);
    case Type::s32:
      ATTEST_FROM_INT(s32);
    case Type::u64:
    case Type::b64:
      ATTEST_FROM_INT(u64);
    case Type::s64:
      ATTEST_FROM_INT(s64);
#define ATTEST_F32_INT(R) \
  s.has(M::ftz) ? lanewise<int_from_f32<D, R, true>> : lanewise<int_from_f32<D, R, false>>
    case Type::f32:
      ATTEST_INTEGRAL(ATTEST_F32_INT) break;
#define ATTEST_F64_INT(R) lanewise<int_from_f64<D, R>>
    case Type::f64:
      ATTEST_INTEGRAL(ATTEST_F64_INT) break;
#define ATTEST_F16_INT(R) lanewise<int_from_16<F16, D, R>>
    case Type::f16:
      ATTEST_INTEGRAL(ATTEST_F16_INT) break;
#define ATTEST_BF16_INT(R) lanewise<int_from_16<BF16, D, R>>
    case Type::bf16:
      ATTEST_INTEGRAL(ATTEST_BF16_INT) break;
    default:
      break;
  }
  return nullptr;
}

template <class A>
Handler float_from_int(const Spelling& s) {
  switch (s.types[0]) {
#define ATTEST_INT_F32(F, R) lanewise<F<A, R>>
    case Type::f32:
      if (s.has(M::sat)) ATTEST_ROUNDINGS(ATTEST_INT_F32, int_to_f32_saturated)
      ATTEST_ROUNDINGS(ATTEST_INT_F32, int_to_f32)
      return nullptr;
    case Type::f64:
      if (s.has(M::sat)) ATTEST_ROUNDINGS(ATTEST_INT_F32, int_to_f64_saturated)
      ATTEST_ROUNDINGS(ATTEST_INT_F32, int_to_f64) return nullptr;
#define ATTEST_INT_F16(F, R) \
  s.has(M::sat) ? lanewise<F<F16, A, R, true>> : lanewise<F<F16, A, R, false>>
    case Type::f16:
      ATTEST_ROUNDINGS(ATTEST_INT_F16, int_to_16) return nullptr;
#define ATTEST_INT_BF16(F, R) lanewise<F<BF16, A, R, false>>
    case Type::bf16:
      ATTEST_ROUNDINGS(ATTEST_INT_BF16, int_to_16) return nullptr;
    default:
      return nullptr;
  }
}

Handler f32_from_float(const Spelling& s) {
  switch (s.types[1]) {
    case Type::f32:
#define ATTEST_F32_INTEGRAL(R) ATTEST_FLAGS(f32_integral, R)
      if (is_integral(s)) ATTEST_INTEGRAL(ATTEST_F32_INTEGRAL)
      if (s.has(M::ftz))
        return s.has(M::sat) ? lanewise<f32_to_f32<true, true>> : lanewise<f32_to_f32<true, false>>;
      return s.has(M::sat) ? lanewise<f32_to_f32<false, true>> : lanewise<f32_to_f32<false, false>>;
    case Type::f64:
      ATTEST_ROUNDINGS(ATTEST_FLAGS, f64_to_f32) return nullptr;
    case Type::f16:
      return s.has(M::sat) ? lanewise<to_f32<F16, true>> : lanewise<to_f32<F16, false>>;
    case Type::bf16:
      return s.has(M::ftz) ? lanewise<to_f32_flushed<BF16, false>> : lanewise<to_f32<BF16, false>>;
    default:
      return nullptr;
  }
}
Handler f64_from_float(const Spelling& s) {
  switch (s.types[1]) {
    case Type::f32:
      if (s.has(M::ftz))
        return s.has(M::sat) ? lanewise<f32_to_f64<true, true>> : lanewise<f32_to_f64<true, false>>;
      return s.has(M::sat) ? lanewise<f32_to_f64<false, true>> : lanewise<f32_to_f64<false, false>>;
    case Type::f64:
#define ATTEST_F64_INTEGRAL(R) \
  s.has(M::sat) ? lanewise<f64_integral<R, true>> : lanewise<f64_integral<R, false>>
      if (is_integral(s)) ATTEST_INTEGRAL(ATTEST_F64_INTEGRAL)
      return s.has(M::sat) ? lanewise<f64_to_f64<true>> : lanewise<f64_to_f64<false>>;
    case Type::f16:
      return s.has(M::sat) ? lanewise<to_f64<F16, true>> : lanewise<to_f64<F16, false>>;
    case Type::bf16:
      return lanewise<to_f64<BF16, false>>;
    default:
      return nullptr;
  }
}
template <class H, class Other>
Handler half_from_float(const Spelling& s) {
  switch (s.types[1]) {
    case Type::f32:
#define ATTEST_F32_HALF(F, R) s.has(M::sat) ? lanewise<F<H, R, true>> : lanewise<F<H, R, false>>
      if (s.has(M::ftz)) ATTEST_ROUNDINGS(ATTEST_F32_HALF, f32_to_16_flushed)
#define ATTEST_F32_FINITE(F, R) s.has(M::relu) ? lanewise<F<H, R, true>> : lanewise<F<H, R, false>>
      if (s.has(M::satfinite)) ATTEST_ROUNDINGS(ATTEST_F32_FINITE, f32_to_16_finite)
#define ATTEST_F32_HALF_FLAGS(F, R)                \
  s.has(M::relu)  ? lanewise<F<H, R, false, true>> \
  : s.has(M::sat) ? lanewise<F<H, R, true, false>> \
                  : lanewise<F<H, R, false, false>>
      ATTEST_ROUNDINGS(ATTEST_F32_HALF_FLAGS, f32_to_16)
      return nullptr;
    case Type::f64:
#define ATTEST_F64_HALF(F, R) s.has(M::sat) ? lanewise<F<H, R, true>> : lanewise<F<H, R, false>>
      ATTEST_ROUNDINGS(ATTEST_F64_HALF, f64_to_16)
      return nullptr;
    case Type::f16:
    case Type::bf16: {
      const bool same = (s.types[1] == Type::f16) == (H::kDropped == F16::kDropped);
#define ATTEST_HALF_INTEGRAL(R) \
  s.has(M::sat) ? lanewise<integral16<H, R, true>> : lanewise<integral16<H, R, false>>
      if (same && is_integral(s)) ATTEST_INTEGRAL(ATTEST_HALF_INTEGRAL)
#define ATTEST_HALF_SAME(F, R) \
  s.has(M::sat) ? lanewise<F<H, H, R, true>> : lanewise<F<H, H, R, false>>
      if (same) ATTEST_ROUNDINGS(ATTEST_HALF_SAME, convert16)
#define ATTEST_HALF_OTHER(F, R) lanewise<F<H, Other, R, false>>
      ATTEST_ROUNDINGS(ATTEST_HALF_OTHER, convert16)
      return nullptr;
    }
    default:
      return nullptr;
  }
}
template <class H>
Handler packed(const Spelling& s) {
  if (s.types[1] != Type::f32) return nullptr;
  const bool relu = s.has(M::relu), finite = s.has(M::satfinite);
#define ATTEST_PACK(R)                                                                       \
  relu ? (finite ? lanewise<pack16<H, R, true, true>> : lanewise<pack16<H, R, true, false>>) \
       : (finite ? lanewise<pack16<H, R, false, true>> : lanewise<pack16<H, R, false, false>>)
  if (s.has(M::rz)) return ATTEST_PACK(Rounding::zero);
  return s.has(M::rn) ? ATTEST_PACK(Rounding::nearest) : nullptr;
}

/// 8-bit pairs to and from f16x2, and from two floats.
template <class F>
Handler eight_bits(const Spelling& s) {
  const bool relu = s.has(M::relu);
  if (!s.has(M::rn)) return nullptr;
  if (s.types[0] == Type::f16x2) {
    return relu ? lanewise<widen_pair<F, true>> : lanewise<widen_pair<F, false>>;
  }
  if (!s.has(M::satfinite)) return nullptr;
  if (s.types[1] == Type::f32) {
    return relu ? lanewise<narrow_pair<F, true>> : lanewise<narrow_pair<F, false>>;
  }
  if (s.types[1] != Type::f16x2) return nullptr;
  return relu ? lanewise<narrow_halves<F, true>> : lanewise<narrow_halves<F, false>>;
}
Handler tensor_float(const Spelling& s) {
  constexpr Rounding nearest = Rounding::nearest, zero = Rounding::zero;
#define ATTEST_TF32(MODE, AWAY)                                                       \
  s.has(M::relu) ? (s.has(M::satfinite) ? lanewise<to_tf32<MODE, AWAY, true, true>>   \
                                        : lanewise<to_tf32<MODE, AWAY, true, false>>) \
                 : (s.has(M::satfinite) ? lanewise<to_tf32<MODE, AWAY, false, true>>  \
                                        : lanewise<to_tf32<MODE, AWAY, false, false>>)
  if (s.has(M::rna)) return ATTEST_TF32(nearest, true);
  return s.has(M::rz) ? ATTEST_TF32(zero, false) : ATTEST_TF32(nearest, false);
}
template <class F>
Handler tiny(const Spelling& s) {
  if (s.types[0] == Type::f16x2)
    return s.has(M::relu) ? lanewise<widen_tiny_pair<F, true>>
                          : lanewise<widen_tiny_pair<F, false>>;
  return s.has(M::relu) ? lanewise<narrow_tiny_pair<F, true>>
                        : lanewise<narrow_tiny_pair<F, false>>;
}
Handler exponents(const Spelling& s) {
  if (s.types[0] == Type::bf16x2) return lanewise<from_exponents>;
#define ATTEST_EXPONENTS(F)                                                                 \
  s.has(M::rp) ? (s.has(M::satfinite) ? lanewise<F<true, true>> : lanewise<F<true, false>>) \
               : (s.has(M::satfinite) ? lanewise<F<false, true>> : lanewise<F<false, false>>)
  return s.types[1] == Type::f32 ? ATTEST_EXPONENTS(exponent_pair)
                                 : ATTEST_EXPONENTS(exponent_halves);
}
Handler packed_integers(const Spelling& s) {
  if (s.has(M::u4)) return lanewise<pack_into<4, false>>;
  if (s.has(M::s4)) return lanewise<pack_into<4, true>>;
  if (s.has(M::u2)) return lanewise<pack_into<2, false>>;
  if (s.has(M::s2)) return lanewise<pack_into<2, true>>;
  switch (s.types[0]) {
    case Type::u16:
      return lanewise<pack_two<16, false>>;
    case Type::s16:
      return lanewise<pack_two<16, true>>;
    case Type::u8:
      return lanewise<pack_into<8, false>>;
    default:
      return lanewise<pack_into<8, true>>;
  }
}

Handler from_integer(const Spelling& s) {
  switch (s.types[1]) {
    case Type::u8:
    case Type::b8:
      return float_from_int<u8>(s);
    case Type::s8:
      return float_from_int<s8>(s);
    case Type::u16:
    case Type::b16:
      return float_from_int<u16>(s);
    case Type::s16:
      return float_from_int<s16>(s);
    case Type::u32:
    case Type::b32:
      return float_from_int<u32>(s);
    case Type::s32:
      return float_from_int<s32>(s);
    case Type::u64:
    case Type::b64:
      return float_from_int<u64>(s);
    case Type::s64:
      return float_from_int<s64>(s);
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_cvt_any(const Spelling& s) {
  if (s.has(M::pack)) return packed_integers(s);
  if (s.type_count != 2) return nullptr;
  if (s.has(M::e2m1x2)) return tiny<Tiny<2, 1>>(s);
  if (s.has(M::e2m3x2)) return tiny<Tiny<2, 3>>(s);
  if (s.has(M::e3m2x2)) return tiny<Tiny<3, 2>>(s);
  if (s.has(M::ue8m0x2)) return exponents(s);
  if (s.has(M::e4m3x2)) return eight_bits<F8<4>>(s);
  if (s.has(M::e5m2x2)) return eight_bits<F8<5>>(s);
  if (s.has(M::tf32)) return tensor_float(s);
  if (s.has(M::rna)) return nullptr;
  switch (s.types[0]) {
    case Type::u8:
    case Type::b8:
      return int_from<u8>(s);
    case Type::s8:
      return int_from<s8>(s);
    case Type::u16:
    case Type::b16:
      return int_from<u16>(s);
    case Type::s16:
      return int_from<s16>(s);
    case Type::u32:
    case Type::b32:
      return int_from<u32>(s);
    case Type::s32:
      return int_from<s32>(s);
    case Type::u64:
    case Type::b64:
      return int_from<u64>(s);
    case Type::s64:
      return int_from<s64>(s);
    case Type::f16x2:
      return packed<F16>(s);
    case Type::bf16x2:
      return packed<BF16>(s);
    default:
      break;
  }
  if (Handler from_int = from_integer(s)) return from_int;
  switch (s.types[0]) {
    case Type::f32:
      return f32_from_float(s);
    case Type::f64:
      return f64_from_float(s);
    case Type::f16:
      return half_from_float<F16, BF16>(s);
    case Type::bf16:
      return half_from_float<BF16, F16>(s);
    default:
      return nullptr;
  }
}

}  // namespace attest::emulator::ATTEST_ISA
