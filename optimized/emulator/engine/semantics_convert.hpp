// What cvt computes between numbers, one lane at a time. Pure functions.
#pragma once
#include "optimized/emulator/engine/semantics_half.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

namespace attest::emulator::ATTEST_ISA {

template <>
struct UnsignedOf<u8> {
  using type = u8;
  using wide = u16;
};
template <>
struct UnsignedOf<s8> {
  using type = u8;
  using wide = s16;
};

/// Integer to integer: extends or truncates; .sat clamps.
template <class D, class A, bool kSaturate>
ATTEST_INLINE D int_to_int(A a) {
  if constexpr (kSaturate) {
    const __int128 v = a, low = kLowest<D>, high = kHighest<D>;
    return v < low ? kLowest<D> : v > high ? kHighest<D> : D(a);
  }
  return D(a);
}

/// Rounds to an integral value. Domain: all; integers, infinities and NaN return themselves.
/// Error: none. Special: the sign of a zero result is that of x.
template <Rounding kMode>
ATTEST_INLINE double integral(double x) {
  const double magnitude = bits_as<double>(bits_as<u64>(x) & ~(u64{1} << 63));
  const u64 sign = bits_as<u64>(x) & (u64{1} << 63);
  const bool small = magnitude < 0x1p52;
  double r = bits_as<double>(bits_as<u64>((magnitude + 0x1p52) - 0x1p52) | sign);
  if (kMode == Rounding::zero) r = (sign ? r < x : r > x) ? r - (sign ? -1.0 : 1.0) : r;
  if (kMode == Rounding::down) r = r > x ? r - 1.0 : r;
  if (kMode == Rounding::up) r = r < x ? r + 1.0 : r;
  return small ? bits_as<double>((bits_as<u64>(r) & ~(u64{1} << 63)) | sign) : x;
}

/// Float to integer: rounds, clamps to the range of D. Special: NaN gives 0 when neither the source
/// A is an f64 nor D has 64 bits, else the top bit of D alone (PTX ISA 9.0, cvt).
template <class A, class D, Rounding kMode>
ATTEST_INLINE D to_integer(double x) {
  const double r = integral<kMode>(x);
  // 2^(n-1) or 2^n: the first value too large.
  constexpr double high = kIsSigned<D>     ? double(u64(kHighest<D>) + 1)
                          : sizeof(D) == 8 ? 0x1p64
                                           : double(u64(kHighest<D>)) + 1.0;
  constexpr double low = double(kLowest<D>);
  constexpr D of_nan = sizeof(A) == 8 || sizeof(D) == 8 ? D(u64{1} << (8 * sizeof(D) - 1)) : D(0);
  if (is_nan(x)) return of_nan;
  if (r >= high) return kHighest<D>;
  if (r <= low) return kLowest<D>;
  return D(r);
}

/// 64-bit integer to float or double, rounded once. Narrower integers are exact in double.
template <Rounding kMode>
ATTEST_INLINE Exact exact_of(s64 a) {
  // The upper 32 bits and the lower 32 bits are both exact, and so is their sum as two doubles.
  return exact_sum(double(a >> 32) * 0x1p32, double(u64(a) & 0xffffffffu));
}
template <Rounding kMode>
ATTEST_INLINE Exact exact_of(u64 a) {
  return exact_sum(double(a >> 32) * 0x1p32, double(a & 0xffffffffu));
}
template <class A, Rounding kMode>
ATTEST_INLINE float int_to_f32(A a) {
  if constexpr (sizeof(A) == 8)
    return round_exact<kMode>(exact_of<kMode>(a));
  else if constexpr (kMode == Rounding::nearest)
    return float(a);
  else
    return round_exact<kMode>({double(a), 0.0});
}
template <class A, Rounding kMode>
ATTEST_INLINE double int_to_f64(A a) {
  if constexpr (sizeof(A) < 8)
    return double(a);
  else {
    const Exact e = exact_of<kMode>(a);
    const u64 b = bits_as<u64>(e.high);
    const bool negative = b >> 63;
    if (kMode == Rounding::down && e.low < 0) return bits_as<double>(negative ? b + 1 : b - 1);
    if (kMode == Rounding::up && e.low > 0) return bits_as<double>(negative ? b - 1 : b + 1);
    if (kMode == Rounding::zero && (negative ? e.low > 0 : e.low < 0))
      return bits_as<double>(b - 1);
    return e.high;
  }
}
template <class A, Rounding kMode>
ATTEST_INLINE float int_to_f32_saturated(A a) {
  return saturate(int_to_f32<A, kMode>(a));
}
template <class A, Rounding kMode>
ATTEST_INLINE double int_to_f64_saturated(A a) {
  return saturate(int_to_f64<A, kMode>(a));
}
/// Integer to a 16-bit float, rounded once.
template <class H, class A, Rounding kMode, bool kSaturate>
ATTEST_INLINE u16 int_to_16(A a) {
  Exact e{};
  if constexpr (sizeof(A) == 8)
    e = exact_of<kMode>(a);
  else
    e = {double(a), 0.0};
  return result16<H, false, kSaturate, false>(narrow_directed<H, kMode>(odd_float(e)));
}

template <bool kFlush, bool kSaturate>
ATTEST_INLINE float f32_to_f32(float a) {
  return result<kFlush, kSaturate>(operand<kFlush>(a));
}
template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float f32_integral(float a) {
  return result<kFlush, kSaturate>(float(integral<kMode>(operand<kFlush>(a))));
}
template <Rounding kMode, bool kSaturate>
ATTEST_INLINE double f64_integral(double a) {
  const double r = is_nan(a) ? quiet(a) : integral<kMode>(a);
  return kSaturate ? saturate(r) : r;
}
template <bool kSaturate>
ATTEST_INLINE double f64_to_f64(double a) {
  return kSaturate ? saturate(a) : is_nan(a) ? quiet(a) : a;
}
template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float f64_to_f32(double a) {
  return result<kFlush, kSaturate>(round_exact<kMode>({a, 0.0}));
}
template <bool kFlush, bool kSaturate>
ATTEST_INLINE double f32_to_f64(float a) {
  const double r =
      is_nan(a) ? bits_as<double>(u64{0x7fffffffe0000000}) : double(operand<kFlush>(a));
  return kSaturate ? saturate(r) : r;
}
template <class H, Rounding kMode, bool kSaturate, bool kRelu>
ATTEST_INLINE u16 f32_to_16(float a) {
  return result16<H, false, kSaturate, kRelu>(narrow_directed<H, kMode>(a));
}
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE u16 f32_to_16_flushed(float a) {
  return result16<H, false, kSaturate, false>(narrow_directed<H, kMode>(flush(a)));
}
/// .satfinite: what would be infinite becomes the largest finite value.
template <class H>
ATTEST_INLINE u16 finite16(u16 a) {
  return (a & 0x7fffu) == H::kInfinity ? u16(a - 1) : a;
}
template <class H, Rounding kMode, bool kRelu>
ATTEST_INLINE u16 f32_to_16_finite(float a) {
  return finite16<H>(f32_to_16<H, kMode, false, kRelu>(a));
}
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE u16 f64_to_16(double a) {
  return result16<H, false, kSaturate, false>(narrow_directed<H, kMode>(odd_float({a, 0.0})));
}
template <class H, bool kSaturate>
ATTEST_INLINE float to_f32(u16 a) {
  const float r = canonical(H::widen(a));
  return kSaturate ? saturate(r) : r;
}
template <class H, bool kSaturate>
ATTEST_INLINE float to_f32_flushed(u16 a) {
  return flush(to_f32<H, kSaturate>(a));
}
template <class H, bool kSaturate>
ATTEST_INLINE double to_f64(u16 a) {
  return f32_to_f64<false, kSaturate>(H::widen(a));
}
template <class To, class From, Rounding kMode, bool kSaturate>
ATTEST_INLINE u16 convert16(u16 a) {
  return result16<To, false, kSaturate, false>(narrow_directed<To, kMode>(From::widen(a)));
}
template <class H, Rounding kMode, bool kSaturate>
ATTEST_INLINE u16 integral16(u16 a) {
  return result16<H, false, kSaturate, false>(H::narrow(float(integral<kMode>(H::widen(a)))));
}
template <class H, class D, Rounding kMode>
ATTEST_INLINE D int_from_16(u16 a) {
  return to_integer<u16, D, kMode>(H::widen(a));
}
template <class D, Rounding kMode, bool kFlush>
ATTEST_INLINE D int_from_f32(float a) {
  return to_integer<float, D, kMode>(operand<kFlush>(a));
}
template <class D, Rounding kMode>
ATTEST_INLINE D int_from_f64(double a) {
  return to_integer<double, D, kMode>(a);
}

/// Two floats into a packed pair: the first operand becomes the upper half.
template <class H, Rounding kMode, bool kRelu, bool kFinite>
ATTEST_INLINE u32 pack16(float high, float low) {
  const u16 h = f32_to_16<H, kMode, false, kRelu>(high);
  const u16 l = f32_to_16<H, kMode, false, kRelu>(low);
  return u32(kFinite ? finite16<H>(h) : h) << 16 | (kFinite ? finite16<H>(l) : l);
}

/// The magnitude of a float, no NaN, as that of a narrower one with kMantissa bits behind the
/// point: nearest even, overflow to kLargest.
template <u32 kBias, u32 kMantissa, u32 kLargest>
ATTEST_INLINE u32 narrow_magnitude(u32 magnitude) {
  constexpr u32 shift = 23 - kMantissa;
  // Where the unit in the last place of the sum is that of subnormal results.
  constexpr u32 anchor = (127 + 23 + 1 - kBias - kMantissa) << 23;
  const u32 tiny = bits_as<u32>(bits_as<float>(magnitude) + bits_as<float>(anchor)) - anchor;
  const u32 rebased = magnitude - ((127 - kBias) << 23);
  const u32 normal = (rebased + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1)) >> shift;
  const u32 r = magnitude < (128 - kBias) << 23 ? tiny : normal;
  return r > kLargest ? kLargest : r;
}

/// 8-bit floats, kExponent bits of exponent. e4m3 has no infinity: 0x7f is NaN, 0x7e is 448.
template <unsigned kExponent>
struct F8 {
  static constexpr u32 kMantissa = 7 - kExponent;
  static constexpr u32 kBias = (1u << (kExponent - 1)) - 1;
  static constexpr u32 kLargest = kExponent == 4 ? 0x7e : 0x7b;
  /// Exact: every 8-bit float is an f16.
  ATTEST_INLINE u16 widen(u8 b) {
    if constexpr (kExponent == 5) {
      return (b & 0x7f) > 0x7c ? F16::kNaN : u16(u16(b) << 8);
    } else {
      if ((b & 0x7f) == 0x7f) return F16::kNaN;
      // As f16 bits with the exponent 8 too small; the product restores it, subnormals too.
      const u16 small = u16((b & 0x7f) << 7);
      return u16(F16::narrow(F16::widen(small) * 256.0f) | u16(b & 0x80) << 8);
    }
  }
  /// Nearest even, overflow to the largest finite value (.satfinite). Special: NaN is 0x7f.
  template <bool kRelu>
  ATTEST_INLINE u8 narrow(float x) {
    const u32 b = bits_as<u32>(x), magnitude = b & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7f;
    if (kRelu && (b >> 31)) return 0;
    return u8(narrow_magnitude<kBias, kMantissa, kLargest>(magnitude) | (b >> 24 & 0x80));
  }
};
template <class F, bool kRelu>
ATTEST_INLINE u32 widen_pair(u16 a) {
  u16 low = F::widen(u8(a)), high = F::widen(u8(a >> 8));
  if (kRelu)
    low = result16<F16, false, false, true>(low), high = result16<F16, false, false, true>(high);
  return u32(high) << 16 | low;
}
template <class F, bool kRelu>
ATTEST_INLINE u16 narrow_pair(float high, float low) {
  return u16(u16(F::template narrow<kRelu>(high)) << 8 | F::template narrow<kRelu>(low));
}
template <class F, bool kRelu>
ATTEST_INLINE u16 narrow_halves(u32 a) {
  return narrow_pair<F, kRelu>(F16::widen(u16(a >> 16)), F16::widen(u16(a)));
}
/// Floats of four and six bits, which have neither infinities nor NaN: kExponent bits of exponent
/// and kMantissa after the point, in a byte each; of four bits, two share a byte.
template <unsigned kExponent, unsigned kMantissa>
struct Tiny {
  static constexpr u32 kBits = 1 + kExponent + kMantissa;
  static constexpr u32 kBias = (1u << (kExponent - 1)) - 1, kLargest = (1u << (kBits - 1)) - 1;
  static constexpr u32 kStride = kBits == 4 ? 4 : 8;
  ATTEST_INLINE u16 widen(u32 b) {
    // As in F8: the product restores the difference of the biases, 2^(15 - kBias).
    const u16 small = u16((b & kLargest) << (10 - kMantissa));
    constexpr float scale = float(1u << (15 - kBias));
    return u16(F16::narrow(F16::widen(small) * scale) | ((b >> (kBits - 1)) & 1) << 15);
  }
  /// Nearest even, overflow to the largest value. Special: NaN becomes the largest positive one.
  template <bool kRelu>
  ATTEST_INLINE u32 narrow(float x) {
    const u32 b = bits_as<u32>(x), magnitude = b & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return kLargest;
    if (kRelu && (b >> 31)) return 0;
    return narrow_magnitude<kBias, kMantissa, kLargest>(magnitude) | (b >> 31) << (kBits - 1);
  }
};
template <class F, bool kRelu>
ATTEST_INLINE u32 widen_tiny_pair(u16 a) {
  u16 low = F::widen(a), high = F::widen(u32(a) >> F::kStride);
  if (kRelu)
    low = result16<F16, false, false, true>(low), high = result16<F16, false, false, true>(high);
  return u32(high) << 16 | low;
}
template <class F, bool kRelu>
ATTEST_INLINE u16 narrow_tiny_pair(float high, float low) {
  return u16(F::template narrow<kRelu>(high) << F::kStride | F::template narrow<kRelu>(low));
}
/// ue8m0: the exponent of a float alone, 2^(b - 127); 0xff is NaN. The sign is lost.
template <bool kUp, bool kFinite>
ATTEST_INLINE u32 to_exponent(float x) {
  const u32 magnitude = bits_as<u32>(x) & 0x7fffffffu;
  u32 r = magnitude >> 23;
  // 0x00400000 is 2^-127, which code 0 stands for.
  if (kUp && (magnitude & 0x7fffffu) && magnitude > 0x00400000u && magnitude < 0x7f800000u) ++r;
  return kFinite && r == 0xff && magnitude <= 0x7f800000u ? 0xfe : r;
}
template <bool kUp, bool kFinite>
ATTEST_INLINE u16 exponent_pair(float high, float low) {
  return u16(to_exponent<kUp, kFinite>(high) << 8 | to_exponent<kUp, kFinite>(low));
}
template <bool kUp, bool kFinite>
ATTEST_INLINE u16 exponent_halves(u32 a) {
  return exponent_pair<kUp, kFinite>(BF16::widen(u16(a >> 16)), BF16::widen(u16(a)));
}
ATTEST_INLINE u32 from_exponents(u16 a) {
  const auto one = [](u32 b) -> u32 { return b == 0xff ? 0x7fffu : b == 0 ? 0x0040u : b << 7; };
  return one(a >> 8) << 16 | one(a & 0xff);
}
/// cvt.pack: two integers clamped to kBits bits; narrow ones push c upwards.
template <unsigned kBits, bool kSigned>
ATTEST_INLINE u32 clamped(s32 v) {
  constexpr s32 low = kSigned ? -(1 << (kBits - 1)) : 0;
  constexpr s32 high = kSigned ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
  return u32(v < low ? low : v > high ? high : v) & ((1u << kBits) - 1);
}
template <unsigned kBits, bool kSigned>
ATTEST_INLINE u32 pack_two(s32 a, s32 b) {
  return clamped<kBits, kSigned>(a) << kBits | clamped<kBits, kSigned>(b);
}
template <unsigned kBits, bool kSigned>
ATTEST_INLINE u32 pack_into(s32 a, s32 b, u32 c) {
  return c << (2 * kBits) | pack_two<kBits, kSigned>(a, b);
}
/// tf32: a float whose lower 13 bits are zero. rna rounds ties away from zero.
template <Rounding kMode, bool kTiesAway, bool kRelu, bool kFinite>
ATTEST_INLINE u32 to_tf32(float x) {
  const u32 b = bits_as<u32>(x);
  if (is_nan(x)) return 0x7fffffffu;
  if (kRelu && (b >> 31)) return 0;
  // From here on rounding gives an infinity; 0x7f7fe000 is the largest tf32.
  constexpr u32 most = kMode == Rounding::nearest ? 0x7f7ff000u : 0x7f800000u;
  if (kFinite && (b & 0x7fffffffu) >= most) return (b & 0x80000000u) | 0x7f7fe000u;
  if ((b & 0x7f800000u) == 0x7f800000u) return b;
  if (kTiesAway) return (b + 0x1000u) & ~0x1fffu;
  return (kMode == Rounding::nearest ? b + 0xfffu + ((b >> 13) & 1) : b) & ~0x1fffu;
}

}  // namespace attest::emulator::ATTEST_ISA
