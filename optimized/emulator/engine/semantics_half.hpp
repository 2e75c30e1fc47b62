// What the f16 and bf16 instructions compute, single and packed, one lane at a time.
// Values are bit patterns; both formats are described by one traits type each.
#pragma once
#include "optimized/emulator/engine/semantics_compare.hpp"

namespace attest::emulator::ATTEST_ISA {

/// binary16 with 5 exponent bits.
struct F16 {
  static constexpr u16 kNaN = 0x7fff, kInfinity = 0x7c00, kOne = 0x3c00, kHighest = 0x7bff;
  ATTEST_INLINE float widen(u16 h) {
    const u32 magnitude = h & 0x7fffu;
    // Re-biasing by a multiplication handles subnormals exactly: 2^112 = 2^(127 - 15).
    const float scaled = bits_as<float>(magnitude << 13) * 0x1p112f;
    const u32 special = (magnitude << 13) | 0x7f800000u;
    const u32 r = magnitude >= 0x7c00u ? special : bits_as<u32>(scaled);
    return bits_as<float>(r | u32(h & 0x8000u) << 16);
  }
  /// Nearest even. Error: half an ulp of f16. Special: NaN is 0x7fff; overflow is infinity.
  ATTEST_INLINE u16 narrow(float x) {
    const u32 b = bits_as<u32>(x), sign = (b >> 16) & 0x8000u, magnitude = b & 0x7fffffffu;
    // Subnormal results: adding 0.5 leaves the rounded significand in the low bits.
    const u32 tiny = bits_as<u32>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
    const u32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    u32 r = magnitude < 0x38800000u ? tiny : normal;
    r = magnitude >= 0x477ff000u ? 0x7c00u : r;  // 65520 and beyond round to infinity
    r = magnitude > 0x7f800000u ? 0x7fffu : r | sign;
    return u16(r);
  }
  static constexpr u32 kDropped = 13;
};

/// bfloat16: the upper half of a float.
struct BF16 {
  static constexpr u16 kNaN = 0x7fff, kInfinity = 0x7f80, kOne = 0x3f80, kHighest = 0x7f7f;
  ATTEST_INLINE float widen(u16 h) { return bits_as<float>(u32(h) << 16); }
  ATTEST_INLINE u16 narrow(float x) {
    const u32 b = bits_as<u32>(x);
    const u32 r = (b + 0x7fffu + ((b >> 16) & 1)) >> 16;
    return u16((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r);
  }
  static constexpr u32 kDropped = 16;
};

/// Towards zero, down or up. A float becomes the 16-bit value at or next to it.
template <class H, Rounding kMode>
ATTEST_INLINE u16 narrow_directed(float x) {
  if constexpr (kMode == Rounding::nearest) return H::narrow(x);
  if (is_nan(x)) return H::kNaN;
  const u16 r = H::narrow(x);
  const float back = H::widen(r);
  const bool negative = bits_as<u32>(x) >> 31;
  const bool above = back > x, below = back < x;
  if (kMode == Rounding::zero)
    return negative ? (below ? u16(r - 1) : r) : (above ? u16(r - 1) : r);
  if (kMode == Rounding::down) return above ? u16(negative ? r + 1 : r - 1) : r;
  return below ? u16(negative ? r - 1 : r + 1) : r;
}

/// An exact sum of two doubles, as a float that rounds to 16 bits as the exact value would:
/// rounding to odd twice keeps more than p + 2 bits and the sticky bit.
ATTEST_INLINE float odd_float(Exact x) {
  const u64 b = bits_as<u64>(x.high);
  const bool inexact = x.low != 0 && !is_nan(x.low);
  const u64 step = (x.low > 0) == (x.high > 0) ? 1 : u64(-1);
  const double odd = bits_as<double>(inexact && !(b & 1) ? b + step : b);
  const float f = float(odd);
  const u32 fb = bits_as<u32>(f);
  const bool infinite = (fb & 0x7f800000u) == 0x7f800000u;
  const double d = f;
  const bool larger = (d > odd) == (odd > 0);  // also when a finite value became infinite
  const bool inexact_float = d != odd && !is_nan(odd);
  return bits_as<float>(inexact_float && (!(fb & 1) || infinite) ? (larger ? fb - 1 : fb + 1) : fb);
}

template <class H>
ATTEST_INLINE bool is_nan16(u16 a) {
  return (a & 0x7fffu) > H::kInfinity;
}
template <class H, bool kFlush>
ATTEST_INLINE u16 operand16(u16 a) {
  return kFlush && (a & H::kInfinity) == 0 ? u16(a & 0x8000u) : a;
}
template <class H, bool kFlush, bool kSaturate, bool kRelu>
ATTEST_INLINE u16 result16(u16 r) {
  if (kFlush) r = operand16<H, true>(r);
  if (kSaturate) r = is_nan16<H>(r) || (r & 0x8000u) ? u16(0) : r > H::kOne ? H::kOne : r;
  if (kRelu && !is_nan16<H>(r) && (r & 0x8000u)) r = 0;
  return r;
}
enum class Half : u8 { add, sub, mul };
// A sum or product of two 16-bit floats rounds correctly through float: 24 >= 2 * 11 + 2.
template <class H, Half kOperation, bool kFlush, bool kSaturate>
ATTEST_INLINE u16 arith16(u16 a, u16 b) {
  const float x = H::widen(operand16<H, kFlush>(a)), y = H::widen(operand16<H, kFlush>(b));
  const float r = kOperation == Half::add ? x + y : kOperation == Half::sub ? x - y : x * y;
  return result16<H, kFlush, kSaturate, false>(H::narrow(r));
}
// add, sub and fma of 16-bit operands and an f32 one: exact but for the last rounding, in f32.
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE float add_mixed(u16 a, float c) {
  return add_f32<kMode, false, kSaturate>(H::widen(a), c);
}
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE float sub_mixed(u16 a, float c) {
  return sub_f32<kMode, false, kSaturate>(H::widen(a), c);
}
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE float fma_mixed(u16 a, u16 b, float c) {
  return fma_f32<kMode, false, kSaturate>(H::widen(a), H::widen(b), c);
}
template <class H, bool kFlush, bool kSaturate, bool kRelu>
ATTEST_INLINE u16 fma16(u16 a, u16 b, u16 c) {
  const double product =
      double(H::widen(operand16<H, kFlush>(a))) * double(H::widen(operand16<H, kFlush>(b)));
  const float r = odd_float(exact_sum(product, H::widen(operand16<H, kFlush>(c))));
  return result16<H, kFlush, kSaturate, kRelu>(H::narrow(r));
}
template <class H, bool kMaximum, bool kFlush, bool kNaN, bool kXorsign>
ATTEST_INLINE u16 extreme16(u16 a, u16 b) {
  const float r = extreme_f32<kMaximum, false, kNaN, kXorsign>(H::widen(operand16<H, kFlush>(a)),
                                                               H::widen(operand16<H, kFlush>(b)));
  return H::narrow(r);
}
template <class H, bool kFlush>
ATTEST_INLINE u16 neg16(u16 a) {
  return is_nan16<H>(a) ? H::kNaN : operand16<H, kFlush>(u16(a ^ 0x8000u));
}
template <class H, bool kFlush>
ATTEST_INLINE u16 abs16(u16 a) {
  return is_nan16<H>(a) ? H::kNaN : operand16<H, kFlush>(u16(a & 0x7fffu));
}
template <class H, bool kFlush>
ATTEST_INLINE bool equal16(u16 a, u16 b) {
  return H::widen(operand16<H, kFlush>(a)) == H::widen(operand16<H, kFlush>(b));
}
template <class H, bool kFlush>
ATTEST_INLINE bool unequal16(u16 a, u16 b) {
  return unequal_f32<false>(H::widen(operand16<H, kFlush>(a)), H::widen(operand16<H, kFlush>(b)));
}
template <class H, bool kFlush>
ATTEST_INLINE bool less16(u16 a, u16 b) {
  return H::widen(operand16<H, kFlush>(a)) < H::widen(operand16<H, kFlush>(b));
}
template <class H, bool kFlush>
ATTEST_INLINE bool less_equal16(u16 a, u16 b) {
  return H::widen(operand16<H, kFlush>(a)) <= H::widen(operand16<H, kFlush>(b));
}
template <class H>
ATTEST_INLINE bool ordered16(u16 a, u16 b) {
  return !is_nan16<H>(a) && !is_nan16<H>(b);
}

/// Applies a 16-bit function to both halves of packed operands.
template <u16 (*F)(u16)>
ATTEST_INLINE u32 pair1(u32 a) {
  return u32(F(u16(a))) | u32(F(u16(a >> 16))) << 16;
}
template <u16 (*F)(u16, u16)>
ATTEST_INLINE u32 pair2(u32 a, u32 b) {
  return u32(F(u16(a), u16(b))) | u32(F(u16(a >> 16), u16(b >> 16))) << 16;
}
template <u16 (*F)(u16, u16, u16)>
ATTEST_INLINE u32 pair3(u32 a, u32 b, u32 c) {
  return u32(F(u16(a), u16(b), u16(c))) | u32(F(u16(a >> 16), u16(b >> 16), u16(c >> 16))) << 16;
}

}  // namespace attest::emulator::ATTEST_ISA
