// Which f32 and f64 instructions exist, and which function each modifier means. 16-bit types are
// passed on to handlers_half.cpp.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_approx.hpp"
#include "optimized/emulator/engine/semantics_compare.hpp"

namespace attest::emulator::ATTEST_ISA {

Handler select_arithmetic_half(const Spelling& s, Opcode operation);  // handlers_half.cpp
Handler select_fma_half(const Spelling& s);
Handler select_extreme_half(const Spelling& s, bool maximum);
Handler select_sign_half(const Spelling& s, bool negate);
Handler select_approximate_half(const Spelling& s);
Handler select_mixed(const Spelling& s);  // handlers_mixed.cpp
Handler select_twin(const Spelling& s);

#define ATTEST_DIRECTED_F64(NEAREST, DIRECTED)   \
  switch (s.rounding()) {                        \
    case Rounding::nearest:                      \
      return lanewise<NEAREST>;                  \
    case Rounding::zero:                         \
      return lanewise<DIRECTED<Rounding::zero>>; \
    case Rounding::down:                         \
      return lanewise<DIRECTED<Rounding::down>>; \
    case Rounding::up:                           \
      return lanewise<DIRECTED<Rounding::up>>;   \
  }

Handler select_add_float(const Spelling& s) {
  if (s.has(M::f32x2)) return select_twin(s);
  if (s.type_count == 2) return select_mixed(s);
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLAGS, add_f32)
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(add_f64, add_directed_f64)
  return select_arithmetic_half(s, Opcode::add);
}
Handler select_sub_float(const Spelling& s) {
  if (s.has(M::f32x2)) return select_twin(s);
  if (s.type_count == 2) return select_mixed(s);
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLAGS, sub_f32)
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(sub_f64, sub_directed_f64)
  return select_arithmetic_half(s, Opcode::sub);
}
Handler select_mul_float(const Spelling& s) {
  if (s.has(M::f32x2)) return select_twin(s);
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLAGS, mul_f32)
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(mul_f64, mul_directed_f64)
  return select_arithmetic_half(s, Opcode::mul);
}
Handler select_fma(const Spelling& s) {
  if (s.has(M::f32x2)) return select_twin(s);
  if (s.type_count == 2) return select_mixed(s);
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLAGS, fma_f32)
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(fma_f64, fma_directed_f64)
  return select_fma_half(s);
}
Handler select_mad_float(const Spelling& s) {
  if (s.type() == Type::f32 || s.type() == Type::f64) return select_fma(s);
  return nullptr;
}
Handler select_div_float(const Spelling& s) {
  if (s.type() == Type::f32) {
    if (s.has(M::approx))
      return s.has(M::ftz) ? lanewise<div_approx<true>> : lanewise<div_approx<false>>;
    ATTEST_ROUNDINGS(ATTEST_FLUSH, div_f32)
  }
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(div_f64, div_directed_f64)
  return nullptr;
}
Handler select_rcp(const Spelling& s) {
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLUSH, rcp_f32)
  if (s.type() == Type::f64 && !s.has(M::approx)) ATTEST_DIRECTED_F64(rcp_f64, rcp_directed_f64)
  return s.type() == Type::f64 ? lanewise<gross_reciprocal<false>> : nullptr;
}
Handler select_sqrt(const Spelling& s) {
  if (s.type() == Type::f32) ATTEST_ROUNDINGS(ATTEST_FLUSH, sqrt_f32)
  if (s.type() == Type::f64) ATTEST_DIRECTED_F64(sqrt_f64, sqrt_directed_f64)
  return nullptr;
}
Handler select_rsqrt(const Spelling& s) {
  if (s.type() == Type::f64)
    return s.has(M::ftz) ? lanewise<gross_reciprocal<true>> : lanewise<rsqrt_f64>;
  if (s.type() != Type::f32) return nullptr;
  return s.has(M::ftz) ? lanewise<rsqrt_f32<true>> : lanewise<rsqrt_f32<false>>;
}
Handler select_ex2(const Spelling& s) {
  if (s.type() != Type::f32) return select_approximate_half(s);
  return s.has(M::ftz) ? lanewise<ex2_f32<true>> : lanewise<ex2_f32<false>>;
}
Handler select_lg2(const Spelling& s) {
  if (s.type() != Type::f32) return nullptr;
  return s.has(M::ftz) ? lanewise<lg2_f32<true>> : lanewise<lg2_f32<false>>;
}
Handler select_sin(const Spelling& s) {
  if (s.type() != Type::f32) return nullptr;
  return s.has(M::ftz) ? lanewise<sine_f32<false, true>> : lanewise<sine_f32<false, false>>;
}
Handler select_cos(const Spelling& s) {
  if (s.type() != Type::f32) return nullptr;
  return s.has(M::ftz) ? lanewise<sine_f32<true, true>> : lanewise<sine_f32<true, false>>;
}
Handler select_tanh(const Spelling& s) {
  return s.type() == Type::f32 ? lanewise<tanh_f32> : select_approximate_half(s);
}
Handler select_abs_float(const Spelling& s) {
  if (s.type() == Type::f32)
    return s.has(M::ftz) ? lanewise<abs_f32<true>> : lanewise<abs_f32<false>>;
  return s.type() == Type::f64 ? lanewise<abs_f64> : select_sign_half(s, false);
}
Handler select_neg_float(const Spelling& s) {
  if (s.type() == Type::f32)
    return s.has(M::ftz) ? lanewise<neg_f32<true>> : lanewise<neg_f32<false>>;
  return s.type() == Type::f64 ? lanewise<neg_f64> : select_sign_half(s, true);
}
Handler select_copysign(const Spelling& s) {
  if (s.type() == Type::f32) return lanewise<copysign_f32>;
  return s.type() == Type::f64 ? lanewise<copysign_f64> : nullptr;
}

namespace {
template <bool kMaximum, bool kFlush>
Handler extreme(const Spelling& s) {
  if (s.operands == 4) {
    if (s.has(M::abs))
      return s.has(M::NaN) ? lanewise<extreme_of_three<kMaximum, kFlush, true, true>>
                           : lanewise<extreme_of_three<kMaximum, kFlush, false, true>>;
    return s.has(M::NaN) ? lanewise<extreme_of_three<kMaximum, kFlush, true, false>>
                         : lanewise<extreme_of_three<kMaximum, kFlush, false, false>>;
  }
  if (s.has(M::abs) && !s.has(M::xorsign)) return nullptr;  // only with three operands
  if (s.has(M::xorsign)) {
    return s.has(M::NaN) ? lanewise<extreme_f32<kMaximum, kFlush, true, true>>
                         : lanewise<extreme_f32<kMaximum, kFlush, false, true>>;
  }
  return s.has(M::NaN) ? lanewise<extreme_f32<kMaximum, kFlush, true, false>>
                       : lanewise<extreme_f32<kMaximum, kFlush, false, false>>;
}
}  // namespace

Handler select_extreme_float(const Spelling& s, bool maximum) {
  if (s.type() == Type::f32) {
    if (maximum) return s.has(M::ftz) ? extreme<true, true>(s) : extreme<true, false>(s);
    return s.has(M::ftz) ? extreme<false, true>(s) : extreme<false, false>(s);
  }
  if (s.type() == Type::f64)
    return maximum ? lanewise<extreme_f64<true>> : lanewise<extreme_f64<false>>;
  return select_extreme_half(s, maximum);
}

namespace {
template <Class kClass>
Handler tested(const Spelling& s) {
  if (s.type() == Type::f32) return comparing<test_f32<kClass>>;
  return s.type() == Type::f64 ? comparing<test_f64<kClass>> : nullptr;
}
}  // namespace

Handler select_testp(const Spelling& s) {
  if (s.has(M::finite)) return tested<Class::finite>(s);
  if (s.has(M::infinite)) return tested<Class::infinite>(s);
  if (s.has(M::number)) return tested<Class::number>(s);
  if (s.has(M::notanumber)) return tested<Class::notanumber>(s);
  if (s.has(M::normal)) return tested<Class::normal>(s);
  return s.has(M::subnormal) ? tested<Class::subnormal>(s) : nullptr;
}

}  // namespace attest::emulator::ATTEST_ISA
