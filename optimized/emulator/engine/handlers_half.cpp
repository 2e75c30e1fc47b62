// Which f16 and bf16 instructions exist, single and packed, and which function each means.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_approx.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

template <class H, Half kOperation, bool kPacked>
Handler arithmetic(const Spelling& s) {
  if constexpr (kPacked) {
    if (s.has(M::ftz))
      return s.has(M::sat) ? lanewise<pair2<arith16<H, kOperation, true, true>>>
                           : lanewise<pair2<arith16<H, kOperation, true, false>>>;
    return s.has(M::sat) ? lanewise<pair2<arith16<H, kOperation, false, true>>>
                         : lanewise<pair2<arith16<H, kOperation, false, false>>>;
  } else {
    if (s.has(M::ftz))
      return s.has(M::sat) ? lanewise<arith16<H, kOperation, true, true>>
                           : lanewise<arith16<H, kOperation, true, false>>;
    return s.has(M::sat) ? lanewise<arith16<H, kOperation, false, true>>
                         : lanewise<arith16<H, kOperation, false, false>>;
  }
}

template <Half kOperation>
Handler arithmetic_by_type(const Spelling& s) {
  switch (s.type()) {
    case Type::f16:
      return arithmetic<F16, kOperation, false>(s);
    case Type::f16x2:
      return arithmetic<F16, kOperation, true>(s);
    case Type::bf16:
      return arithmetic<BF16, kOperation, false>(s);
    case Type::bf16x2:
      return arithmetic<BF16, kOperation, true>(s);
    default:
      return nullptr;
  }
}

template <class H, bool kPacked, bool kFlush>
Handler fma_flags(const Spelling& s) {
  if constexpr (kPacked) {
    if (s.has(M::sat)) return lanewise<pair3<fma16<H, kFlush, true, false>>>;
    return s.has(M::relu) ? lanewise<pair3<fma16<H, kFlush, false, true>>>
                          : lanewise<pair3<fma16<H, kFlush, false, false>>>;
  } else {
    if (s.has(M::sat)) return lanewise<fma16<H, kFlush, true, false>>;
    return s.has(M::relu) ? lanewise<fma16<H, kFlush, false, true>>
                          : lanewise<fma16<H, kFlush, false, false>>;
  }
}

template <class H, bool kPacked, bool kMaximum, bool kNaN, bool kXorsign>
Handler extreme_flush(const Spelling& s) {
  if constexpr (kPacked) {
    return s.has(M::ftz) ? lanewise<pair2<extreme16<H, kMaximum, true, kNaN, kXorsign>>>
                         : lanewise<pair2<extreme16<H, kMaximum, false, kNaN, kXorsign>>>;
  } else {
    return s.has(M::ftz) ? lanewise<extreme16<H, kMaximum, true, kNaN, kXorsign>>
                         : lanewise<extreme16<H, kMaximum, false, kNaN, kXorsign>>;
  }
}
template <class H, bool kPacked, bool kMaximum>
Handler extreme_of(const Spelling& s) {
  if (s.has(M::xorsign))
    return s.has(M::NaN) ? extreme_flush<H, kPacked, kMaximum, true, true>(s)
                         : extreme_flush<H, kPacked, kMaximum, false, true>(s);
  return s.has(M::NaN) ? extreme_flush<H, kPacked, kMaximum, true, false>(s)
                       : extreme_flush<H, kPacked, kMaximum, false, false>(s);
}
template <bool kMaximum>
Handler extreme_by_type(const Spelling& s) {
  switch (s.type()) {
    case Type::f16:
      return extreme_of<F16, false, kMaximum>(s);
    case Type::f16x2:
      return extreme_of<F16, true, kMaximum>(s);
    case Type::bf16:
      return extreme_of<BF16, false, kMaximum>(s);
    case Type::bf16x2:
      return extreme_of<BF16, true, kMaximum>(s);
    default:
      return nullptr;
  }
}

template <class H>
ATTEST_INLINE u16 ex2_16(u16 a) {
  return H::narrow(ex2_f32<false>(H::widen(a)));
}
template <class H>
ATTEST_INLINE u16 ex2_16_flushed(u16 a) {
  return operand16<H, true>(H::narrow(ex2_f32<false>(H::widen(operand16<H, true>(a)))));
}
template <class H>
ATTEST_INLINE u16 tanh_16(u16 a) {
  return H::narrow(tanh_f32(H::widen(a)));
}

}  // namespace

Handler select_arithmetic_half(const Spelling& s, Opcode operation) {
  if (s.rounding() != Rounding::nearest) return nullptr;
  if (operation == Opcode::add) return arithmetic_by_type<Half::add>(s);
  return operation == Opcode::sub ? arithmetic_by_type<Half::sub>(s)
                                  : arithmetic_by_type<Half::mul>(s);
}
Handler select_fma_half(const Spelling& s) {
  const bool ftz = s.has(M::ftz);
  switch (s.type()) {
    case Type::f16:
      return ftz ? fma_flags<F16, false, true>(s) : fma_flags<F16, false, false>(s);
    case Type::f16x2:
      return ftz ? fma_flags<F16, true, true>(s) : fma_flags<F16, true, false>(s);
    case Type::bf16:
      return fma_flags<BF16, false, false>(s);
    case Type::bf16x2:
      return fma_flags<BF16, true, false>(s);
    default:
      return nullptr;
  }
}
Handler select_extreme_half(const Spelling& s, bool maximum) {
  return maximum ? extreme_by_type<true>(s) : extreme_by_type<false>(s);
}
Handler select_sign_half(const Spelling& s, bool negate) {
  const bool ftz = s.has(M::ftz);
  switch (s.type()) {
    case Type::f16:
      if (ftz) return negate ? lanewise<neg16<F16, true>> : lanewise<abs16<F16, true>>;
      return negate ? lanewise<neg16<F16, false>> : lanewise<abs16<F16, false>>;
    case Type::f16x2:
      if (ftz)
        return negate ? lanewise<pair1<neg16<F16, true>>> : lanewise<pair1<abs16<F16, true>>>;
      return negate ? lanewise<pair1<neg16<F16, false>>> : lanewise<pair1<abs16<F16, false>>>;
    case Type::bf16:
      return negate ? lanewise<neg16<BF16, false>> : lanewise<abs16<BF16, false>>;
    case Type::bf16x2:
      return negate ? lanewise<pair1<neg16<BF16, false>>> : lanewise<pair1<abs16<BF16, false>>>;
    default:
      return nullptr;
  }
}
/// ex2 and tanh of 16-bit floats: computed in f32, then rounded; well inside PTX's 2^-9.9 and 2^-7.
Handler select_approximate_half(const Spelling& s) {
  const bool tanh = s.opcode == Opcode::tanh;
  switch (s.type()) {
    case Type::f16:
      return tanh ? lanewise<tanh_16<F16>> : lanewise<ex2_16<F16>>;
    case Type::f16x2:
      return tanh ? lanewise<pair1<tanh_16<F16>>> : lanewise<pair1<ex2_16<F16>>>;
    case Type::bf16:
      return tanh ? lanewise<tanh_16<BF16>> : lanewise<ex2_16_flushed<BF16>>;
    case Type::bf16x2:
      return tanh ? lanewise<pair1<tanh_16<BF16>>> : lanewise<pair1<ex2_16_flushed<BF16>>>;
    default:
      return nullptr;
  }
}

}  // namespace attest::emulator::ATTEST_ISA
