// What the f32 and f64 instructions compute, one lane at a time, to the bit PTX prescribes.
// Pure functions; written without branches where they are hot, so that they vectorise.
#pragma once
#include "optimized/emulator/engine/lanes.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator::ATTEST_ISA {

template <class To, class From>
ATTEST_INLINE To bits_as(From v) {
  return __builtin_bit_cast(To, v);
}
ATTEST_INLINE bool is_nan(float x) {
  return x != x;
}
ATTEST_INLINE bool is_nan(double x) {
  return x != x;
}

/// PTX: every f32 instruction that gives a NaN gives this one.
ATTEST_INLINE float canonical(float r) {
  return is_nan(r) ? bits_as<float>(0x7fffffffu) : r;
}

/// .ftz: subnormals become zero with their sign.
ATTEST_INLINE float flush(float x) {
  const u32 b = bits_as<u32>(x);
  return bits_as<float>((b & 0x7f800000u) == 0 ? b & 0x80000000u : b);
}
/// .sat: clamps to [+0, 1]; NaN becomes +0.
ATTEST_INLINE float saturate(float x) {
  return x >= 1.0f ? 1.0f : (x > 0.0f ? x : 0.0f);
}
ATTEST_INLINE double saturate(double x) {
  return x >= 1.0 ? 1.0 : (x > 0.0 ? x : 0.0);
}

template <bool kFlush>
ATTEST_INLINE float operand(float x) {
  return kFlush ? flush(x) : x;
}
template <bool kFlush, bool kSaturate>
ATTEST_INLINE float result(float r) {
  r = canonical(r);
  if (kFlush) r = flush(r);
  return kSaturate ? saturate(r) : r;
}

/// An exact value as a double and what is left over: value = high + low, |low| <= ulp(high) / 2.
struct Exact {
  double high, low;
};
/// Knuth's TwoSum. Domain: no overflow; holds for sums of products of floats.
ATTEST_INLINE Exact exact_sum(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// Rounds high + low to float.
/// Domain: any Exact; infinities and NaN in high pass through (low is then ignored).
/// Error: none, it is the correctly rounded value: the nearest float to high is the largest float
/// not above the value or the smallest not below, and one comparison tells which.
/// Special: an exact zero is returned with the sign of high.
template <Rounding kMode>
ATTEST_INLINE float round_exact(Exact x) {
  if constexpr (kMode == Rounding::nearest) {
    // Round to odd, then to nearest: 53 bits are more than 2 * 24 + 2.
    const u64 b = bits_as<u64>(x.high);
    const bool inexact = x.low != 0 && !is_nan(x.low);
    const u64 step = (x.low > 0) == (x.high > 0) ? 1 : u64(-1);
    return float(bits_as<double>(inexact && !(b & 1) ? b + step : b));
  } else {
    const float f = float(x.high);
    const double d = f;
    const bool above = d > x.high || (d == x.high && x.low < 0);
    const bool below = d < x.high || (d == x.high && x.low > 0);
    const u32 b = bits_as<u32>(f);
    const bool negative = b >> 31;
    bool towards_zero = false, away = false;
    if constexpr (kMode == Rounding::down) {
      towards_zero = above && !negative;
      away = above && negative;
    } else if constexpr (kMode == Rounding::up) {
      towards_zero = below && negative;
      away = below && !negative;
    } else {
      towards_zero = negative ? below : above;
    }
    return bits_as<float>(towards_zero ? b - 1 : away ? b + 1 : b);
  }
}

/// p + c rounded once, p and c being doubles that are exact products or values of floats.
/// Special: a sum that cancels exactly is +0, or -0 when rounding down; equal signs keep theirs.
template <Rounding kMode>
ATTEST_INLINE float sum_rounded(double p, double c) {
  const Exact s = exact_sum(p, c);
  const float r = round_exact<kMode>(s);
  if constexpr (kMode == Rounding::down) {
    const bool positive_zeros = !((bits_as<u64>(p) | bits_as<u64>(c)) >> 63);
    return s.high == 0 ? (positive_zeros ? 0.0f : -0.0f) : r;
  }
  return r;
}

template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float add_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  if constexpr (kMode == Rounding::nearest)
    return result<kFlush, kSaturate>(a + b);
  else
    return result<kFlush, kSaturate>(sum_rounded<kMode>(a, b));
}
template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float sub_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  if constexpr (kMode == Rounding::nearest)
    return result<kFlush, kSaturate>(a - b);
  else
    return result<kFlush, kSaturate>(sum_rounded<kMode>(a, -double(b)));
}
template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float mul_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  if constexpr (kMode == Rounding::nearest)
    return result<kFlush, kSaturate>(a * b);
  else
    return result<kFlush, kSaturate>(round_exact<kMode>({double(a) * double(b), 0.0}));
}
template <Rounding kMode, bool kFlush, bool kSaturate>
ATTEST_INLINE float fma_f32(float a, float b, float c) {
  a = operand<kFlush>(a), b = operand<kFlush>(b), c = operand<kFlush>(c);
#ifdef __FMA__
  if constexpr (kMode == Rounding::nearest)
    return result<kFlush, kSaturate>(__builtin_fmaf(a, b, c));
#endif
  return result<kFlush, kSaturate>(sum_rounded<kMode>(double(a) * double(b), c));
}

/// The correctly rounded quotient. The remainder a - q * b is exact in double (at most 48 bits).
template <Rounding kMode, bool kFlush>
ATTEST_INLINE float div_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  const float q = a / b;
  if constexpr (kMode == Rounding::nearest) return result<kFlush, false>(q);
  const bool finite = (bits_as<u32>(a) & 0x7f800000u) != 0x7f800000u &&
                      (bits_as<u32>(b) & 0x7f800000u) != 0x7f800000u && b != 0;
  // An overflowed quotient is judged from the largest float instead.
  const bool infinite = (bits_as<u32>(q) & 0x7fffffffu) == 0x7f800000u;
  const float base = infinite && finite ? bits_as<float>(bits_as<u32>(q) - 1) : q;
  const double left = double(a) - double(base) * double(b);
  const double side = (bits_as<u32>(b) >> 31) ? -left : left;  // sign of exact - base
  const u32 bits = bits_as<u32>(base);
  const bool negative = bits >> 31;
  const bool above = side<0, below = side> 0;
  u32 fixed = bits;
  if (kMode == Rounding::down) fixed = above ? (negative ? bits + 1 : bits - 1) : bits;
  if (kMode == Rounding::up) fixed = below ? (negative ? bits - 1 : bits + 1) : bits;
  if (kMode == Rounding::zero) fixed = (negative ? below : above) ? bits - 1 : bits;
  // base was stepped down from infinity: directed away from zero means infinity again.
  if (infinite && finite) {
    const bool away = (kMode == Rounding::down && negative) || (kMode == Rounding::up && !negative);
    fixed = away ? bits + 1 : bits;
  }
  return result<kFlush, false>(finite ? bits_as<float>(fixed) : q);
}
template <Rounding kMode, bool kFlush>
ATTEST_INLINE float rcp_f32(float a) {
  return div_f32<kMode, kFlush>(1.0f, a);
}
template <Rounding kMode, bool kFlush>
ATTEST_INLINE float sqrt_f32(float a) {
  a = operand<kFlush>(a);
  const float r = __builtin_sqrtf(a);
  if constexpr (kMode == Rounding::nearest) return result<kFlush, false>(r);
  const double left = double(a) - double(r) * double(r);  // exact: at most 49 bits
  u32 bits = bits_as<u32>(r);
  const bool usable = a > 0 && bits != 0x7f800000u;
  if (usable && left < 0 && kMode != Rounding::up) --bits;
  if (usable && left > 0 && kMode == Rounding::up) ++bits;
  return result<kFlush, false>(bits_as<float>(bits));
}
/// div.approx: correctly rounded, except that beyond |b| = 2^126 PTX prescribes 0 (NaN for inf/b).
template <bool kFlush>
ATTEST_INLINE float div_approx(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  const float q = a / b;
  const u32 magnitude = bits_as<u32>(b) & 0x7fffffffu;
  const u32 sign = (bits_as<u32>(a) ^ bits_as<u32>(b)) & 0x80000000u;
  const bool huge = magnitude > 0x7e800000u && magnitude < 0x7f800000u;
  const bool infinite = (bits_as<u32>(a) & 0x7fffffffu) == 0x7f800000u;
  const float beyond = infinite || is_nan(a) ? bits_as<float>(0x7fffffffu) : bits_as<float>(sign);
  return result<kFlush, false>(huge ? beyond : q);
}

template <bool kFlush>
ATTEST_INLINE float abs_f32(float a) {
  return operand<kFlush>(is_nan(a) ? bits_as<float>(0x7fffffffu)
                                   : bits_as<float>(bits_as<u32>(a) & 0x7fffffffu));
}
template <bool kFlush>
ATTEST_INLINE float neg_f32(float a) {
  return operand<kFlush>(is_nan(a) ? bits_as<float>(0x7fffffffu)
                                   : bits_as<float>(bits_as<u32>(a) ^ 0x80000000u));
}
ATTEST_INLINE float copysign_f32(float a, float b) {
  return bits_as<float>((bits_as<u32>(a) & 0x80000000u) | (bits_as<u32>(b) & 0x7fffffffu));
}
ATTEST_INLINE double copysign_f64(double a, double b) {
  return bits_as<double>((bits_as<u64>(a) & (u64{1} << 63)) | (bits_as<u64>(b) & ~(u64{1} << 63)));
}

/// min and max: a number beats NaN unless .NaN; -0 is below +0. .xorsign gives a number the sign of
/// the product; a NaN stays canonical.
template <bool kMaximum, bool kFlush, bool kNaN, bool kXorsign>
ATTEST_INLINE float extreme_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  const u32 sign = (bits_as<u32>(a) ^ bits_as<u32>(b)) & 0x80000000u;
  if (kXorsign) {
    a = bits_as<float>(bits_as<u32>(a) & 0x7fffffffu);
    b = bits_as<float>(bits_as<u32>(b) & 0x7fffffffu);
  }
  const float when_equal = kMaximum ? bits_as<float>(bits_as<u32>(a) & bits_as<u32>(b))
                                    : bits_as<float>(bits_as<u32>(a) | bits_as<u32>(b));
  float r = kMaximum ? (a > b ? a : b) : (a < b ? a : b);
  r = a == b ? when_equal : r;
  const float nan = bits_as<float>(0x7fffffffu);
  r = is_nan(b) ? (kNaN ? nan : a) : r;
  r = is_nan(a) ? (kNaN ? nan : b) : r;
  r = is_nan(r) ? nan : r;
  return kXorsign && !is_nan(r) ? bits_as<float>((bits_as<u32>(r) & 0x7fffffffu) | sign) : r;
}

/// The three-operand forms: .abs takes the magnitudes of all.
template <bool kMaximum, bool kFlush, bool kNaN, bool kMagnitude>
ATTEST_INLINE float extreme_of_three(float a, float b, float c) {
  if (kMagnitude) {
    a = bits_as<float>(bits_as<u32>(a) & 0x7fffffffu);
    b = bits_as<float>(bits_as<u32>(b) & 0x7fffffffu);
    c = bits_as<float>(bits_as<u32>(c) & 0x7fffffffu);
  }
  return extreme_f32<kMaximum, kFlush, kNaN, false>(
      extreme_f32<kMaximum, kFlush, kNaN, false>(a, b), c);
}

/// Applies an f32 function to both halves of a 64-bit pair.
template <float (*F)(float, float)>
ATTEST_INLINE u64 twin2(u64 a, u64 b) {
  const float low = F(bits_as<float>(u32(a)), bits_as<float>(u32(b)));
  const float high = F(bits_as<float>(u32(a >> 32)), bits_as<float>(u32(b >> 32)));
  return u64(bits_as<u32>(high)) << 32 | bits_as<u32>(low);
}
template <float (*F)(float, float, float)>
ATTEST_INLINE u64 twin3(u64 a, u64 b, u64 c) {
  const float low = F(bits_as<float>(u32(a)), bits_as<float>(u32(b)), bits_as<float>(u32(c)));
  const float high =
      F(bits_as<float>(u32(a >> 32)), bits_as<float>(u32(b >> 32)), bits_as<float>(u32(c >> 32)));
  return u64(bits_as<u32>(high)) << 32 | bits_as<u32>(low);
}

// --- f64: the payload of a NaN operand survives, quieted; an invalid operation gives the host's.
ATTEST_INLINE double quiet(double x) {
  return bits_as<double>(bits_as<u64>(x) | 0x0008000000000000u);
}
ATTEST_INLINE double nan_of(double r, double a, double b, double c) {
  if (!is_nan(r)) return r;
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  if (is_nan(c)) return quiet(c);
  return bits_as<double>(u64{0xfff8000000000000});
}
/// Computes F under another rounding mode of the host. The volatile copies keep the computation
/// between the two writes of the control register.
template <Rounding kMode, class F>
ATTEST_INLINE double directed_f64(F compute, double a, double b, double c) {
  const unsigned control = __builtin_ia32_stmxcsr();
  volatile double x = a, y = b, z = c;
  const unsigned mode = kMode == Rounding::down ? 1 : kMode == Rounding::up ? 2 : 3;
  __builtin_ia32_ldmxcsr((control & ~0x6000u) | mode << 13);
  volatile double r = compute(x, y, z);
  __builtin_ia32_ldmxcsr(control);
  return nan_of(r, a, b, c);
}
template <Rounding kMode>
ATTEST_INLINE double add_directed_f64(double a, double b) {
  return directed_f64<kMode>([](double x, double y, double) { return x + y; }, a, b, 0);
}
template <Rounding kMode>
ATTEST_INLINE double sub_directed_f64(double a, double b) {
  return directed_f64<kMode>([](double x, double y, double) { return x - y; }, a, b, 0);
}
template <Rounding kMode>
ATTEST_INLINE double mul_directed_f64(double a, double b) {
  return directed_f64<kMode>([](double x, double y, double) { return x * y; }, a, b, 0);
}
template <Rounding kMode>
ATTEST_INLINE double div_directed_f64(double a, double b) {
  return directed_f64<kMode>([](double x, double y, double) { return x / y; }, a, b, 0);
}
template <Rounding kMode>
ATTEST_INLINE double rcp_directed_f64(double a) {
  return directed_f64<kMode>([](double x, double, double) { return 1.0 / x; }, a, 0, 0);
}
template <Rounding kMode>
ATTEST_INLINE double sqrt_directed_f64(double a) {
  return directed_f64<kMode>([](double x, double, double) { return __builtin_sqrt(x); }, a, 0, 0);
}
template <Rounding kMode>
ATTEST_INLINE double fma_directed_f64(double a, double b, double c) {
  return directed_f64<kMode>([](double x, double y, double z) { return __builtin_fma(x, y, z); }, a,
                             b, c);
}
ATTEST_INLINE double add_f64(double a, double b) {
  return nan_of(a + b, a, b, 0);
}
ATTEST_INLINE double sub_f64(double a, double b) {
  return nan_of(a - b, a, b, 0);
}
ATTEST_INLINE double mul_f64(double a, double b) {
  return nan_of(a * b, a, b, 0);
}
ATTEST_INLINE double fma_f64(double a, double b, double c) {
  return nan_of(__builtin_fma(a, b, c), a, b, c);
}
ATTEST_INLINE double div_f64(double a, double b) {
  return nan_of(a / b, a, b, 0);
}
ATTEST_INLINE double rcp_f64(double a) {
  return nan_of(1.0 / a, a, 0, 0);
}
/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see and give the upper 32 bits of a double only.
/// Domain: all doubles, subnormals as zero. Error: half an ulp of 20 bits after truncation of the
/// operand. Special: +-0 gives +-inf, +-inf gives +-0, the root of a negative NaN.
template <bool kRoot>
ATTEST_INLINE double gross_reciprocal(double a) {
  u64 b = bits_as<u64>(a) & 0xffffffff00000000u;
  if ((b & 0x7ff0000000000000u) == 0) b &= u64{1} << 63;
  const double x = bits_as<double>(b);
  const double r = kRoot ? 1.0 / __builtin_sqrt(x) : 1.0 / x;
  if (is_nan(a) || is_nan(r)) return bits_as<double>(u64{0x7fffffff00000000});
  const u64 full = bits_as<u64>(r);
  const u64 rounded = (full + 0x7fffffffu + ((full >> 32) & 1)) & 0xffffffff00000000u;
  const bool tiny = (rounded & 0x7ff0000000000000u) == 0;
  return bits_as<double>(tiny ? rounded & (u64{1} << 63) : rounded);
}
ATTEST_INLINE double sqrt_f64(double a) {
  return nan_of(__builtin_sqrt(a), a, 0, 0);
}
ATTEST_INLINE double abs_f64(double a) {
  return bits_as<double>(bits_as<u64>(a) & ~(u64{1} << 63));
}
ATTEST_INLINE double neg_f64(double a) {
  return bits_as<double>(bits_as<u64>(a) ^ (u64{1} << 63));
}
template <bool kMaximum>
ATTEST_INLINE double extreme_f64(double a, double b) {
  if (is_nan(a)) return is_nan(b) ? quiet(a) : b;
  if (is_nan(b)) return a;
  if (a == b)
    return bits_as<double>(kMaximum ? bits_as<u64>(a) & bits_as<u64>(b)
                                    : bits_as<u64>(a) | bits_as<u64>(b));
  return (a < b) == kMaximum ? b : a;
}

}  // namespace attest::emulator::ATTEST_ISA
