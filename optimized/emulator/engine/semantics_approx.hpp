// The approximate instructions: ex2, lg2, sin, cos, tanh, rsqrt. PTX allows an error; the engine
// gives the correctly rounded value (up to the stated excess), computed in double from
// multiplications and additions only, each rounded, so that the bits are the same on every machine.
#pragma once
#include "optimized/emulator/engine/semantics_float.hpp"

namespace attest::emulator::ATTEST_ISA {

/// Horner's rule, highest coefficient first, without fused operations.
template <unsigned kCount>
ATTEST_INLINE double polynomial(const double (&c)[kCount], double x) {
  double r = c[0];
  for (unsigned i = 1; i < kCount; ++i) r = r * x + c[i];
  return r;
}

inline constexpr double kRoundToInteger =
    0x1.8p52;  // adding it leaves the nearest integer in the low bits

/// 2^x for x in [-200, 200].
/// Error: below 2^-51 relative: the Taylor series of 2^f, |f| <= 1/2, is cut after f^13
/// ((ln2/2)^14 / 14! < 2^-57) and Horner adds less than 4 roundings of the leading terms.
ATTEST_INLINE double exp2_double(double x) {
  // ln(2)^k / k!, k = 13 .. 0
  constexpr double c[] = {0x1.816193166d0f9p-40, 0x1.c3bd650fc2986p-36,
                          0x1.e8cac7351bb25p-32, 0x1.e4cf5158b8ecap-28,
                          0x1.b5253d395e7c4p-24, 0x1.62c0223a5c824p-20,
                          0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,
                          0x1.5d87fe78a6731p-10, 0x1.3b2ab6fba4e77p-7,
                          0x1.c6b08d704a0c0p-5,  0x1.ebfbdff82c58fp-3,
                          0x1.62e42fefa39efp-1,  0x1p+0};
  const double shifted = x + kRoundToInteger;
  const double n = shifted - kRoundToInteger;
  const u64 exponent = bits_as<u64>(shifted) - bits_as<u64>(kRoundToInteger) + 1023;
  return polynomial(c, x - n) * bits_as<double>(exponent << 52);
}

/// Domain: all floats. Error: 0.5 ulp + 2^-26 ulp. Special: 2^-inf = +0, 2^+-0 = 1, exact at
/// integers.
template <bool kFlush>
ATTEST_INLINE float ex2_f32(float a) {
  a = operand<kFlush>(a);
  float x = a < -200.0f ? -200.0f : a;
  x = x > 200.0f ? 200.0f : x;
  return result<kFlush, false>(float(exp2_double(x)));
}

/// log2 of a positive, finite, normal double.
/// Error: below 2^-50 relative: atanh's series in s = (m-1)/(m+1), |s| < 0.1716, is cut after s^21
/// (0.1716^22 / 23 < 2^-60); away from 1 the exponent dominates and nothing cancels.
ATTEST_INLINE double log2_double(double x) {
  // 2 / (ln(2) (2k+1)), k = 10 .. 0
  constexpr double c[] = {0x1.1964ec6fc9491p-3, 0x1.3703c1f4d0ffep-3, 0x1.5b9ac9b743f0dp-3,
                          0x1.89f3b1694cffep-3, 0x1.c68f568d31760p-3, 0x1.0c9a84994022dp-2,
                          0x1.484b13d7c02a9p-2, 0x1.a61762a7aded9p-2, 0x1.2776c50ef9bfep-1,
                          0x1.ec709dc3a03fdp-1, 0x1.71547652b82fep+1};
  const u64 bits = bits_as<u64>(x);
  // Split at sqrt(2)/2, so that m lies in [sqrt(2)/2, sqrt(2)).
  const u64 shifted = bits - 0x3fe6a09e667f3bcdu;
  const s64 exponent = s64(shifted) >> 52;
  const double m = bits_as<double>(bits - (u64(exponent) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double fraction = s * polynomial(c, s * s);
  return double(s32(exponent)) + fraction;
}

/// Domain: all floats. Error: 0.5 ulp + 2^-25 ulp. Special: log2(+-0) = -inf, negative = NaN.
template <bool kFlush>
ATTEST_INLINE float lg2_f32(float a) {
  a = operand<kFlush>(a);
  const bool usable = a > 0 && a < __builtin_inff();
  const float r = float(log2_double(usable ? double(a) : 1.0));
  const float special = a == 0 ? -__builtin_inff() : a > 0 ? a : bits_as<float>(0x7fffffffu);
  return result<kFlush, false>(usable ? r : special);
}

/// Domain: all floats. Error: 0.5 ulp + 2^-27 ulp. Special: +-0 gives +-inf, negative NaN.
template <bool kFlush>
ATTEST_INLINE float rsqrt_f32(float a) {
  a = operand<kFlush>(a);
  return result<kFlush, false>(a == 0 ? bits_as<float>(bits_as<u32>(a) | 0x7f800000u)
                                      : float(1.0 / __builtin_sqrt(double(a))));
}
ATTEST_INLINE double rsqrt_f64(double a) {
  return nan_of(1.0 / __builtin_sqrt(a), a, 0, 0);
}

/// Domain: all floats. Error: 0.5 ulp + 2^-25 ulp: below 1/4 the Taylor series (cut after x^19,
/// next term 2^-62), above it 1 - 2 / (e^2x + 1), whose cancellation costs two bits of double at
/// most.
ATTEST_INLINE float tanh_f32(float a) {
  // Coefficients of x^19 .. x: -443861162/1856156927625, 6404582/10854718875, ... , -1/3, 1.
  constexpr double c[] = {-443861162.0 / 1856156927625.0,
                          6404582.0 / 10854718875.0,
                          -929569.0 / 638512875.0,
                          21844.0 / 6081075.0,
                          -1382.0 / 155925.0,
                          62.0 / 2835.0,
                          -17.0 / 315.0,
                          2.0 / 15.0,
                          -1.0 / 3.0,
                          1.0};
  const double x = a;
  const double near = x * polynomial(c, x * x);
  double clamped = x < -20.0 ? -20.0 : x;
  clamped = clamped > 20.0 ? 20.0 : clamped;
  const double far = 1.0 - 2.0 / (exp2_double(clamped * 0x1.71547652b82fep+1) + 1.0);  // 2 / ln 2
  const bool small = (bits_as<u32>(a) & 0x7fffffffu) < 0x3e800000u;
  return canonical(float(small ? near : far));
}

/// A finite float as quarter turns: angle = (quadrant + fraction) pi/2, |fraction| <= 1/2.
struct Turn {
  s64 quadrant;
  double angle;  // fraction * pi/2, in radians
};
/// Payne and Hanek: 104 bits of 2/pi, from the first that matters modulo 4, times the significand.
/// Domain: finite |a| > pi/4. Error: 2^-78 turns; no float comes closer than 2^-31 to a multiple of
/// pi/2, so the angle keeps 47 bits.
static inline Turn reduce(float a) {
  // 2/pi = 0.A2F9836E 4E441529 FC2757D1 F534DDC0 DB629599 3C439041 FE5163AB DEBBC561...
  constexpr u32 digits[] = {0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u,
                            0xDB629599u, 0x3C439041u, 0xFE5163ABu, 0xDEBBC561u};
  const u32 bits = bits_as<u32>(a);
  const int exponent = int((bits >> 23) & 0xff) - 150;  // |a| = m * 2^exponent, exponent >= -24
  const u64 m = (bits & 0x7fffffu) | 0x800000u;
  const unsigned skip = exponent > 2 ? unsigned(exponent - 2) : 0;
  const unsigned word = skip / 32, shift = skip % 32;
  unsigned __int128 window = 0;
  for (unsigned i = 0; i < 4; ++i) window = window << 32 | digits[word + i];
  if (shift) window = window << shift | digits[word + 4] >> (32 - shift);
  const unsigned __int128 product = (window >> 24) * m;
  const unsigned point = unsigned(int(skip) + 104 - exponent);  // bits of product after the point
  const u64 quadrant = point == 128
                           ? u64(product >> 127)
                           : u64((product + ((unsigned __int128)1 << (point - 1))) >> point);
  const unsigned __int128 whole = point == 128 ? 0 : (unsigned __int128)quadrant << point;
  const __int128 rest = __int128(product - whole);
  const unsigned __int128 magnitude = (unsigned __int128)(rest < 0 ? -rest : rest);
  const double turns = (double(u64(magnitude >> 64)) * 0x1p64 + double(u64(magnitude))) *
                       bits_as<double>(u64(1023 - point) << 52);
  const double angle = turns * 0x1.921fb54442d18p+0;
  const bool negative = bits >> 31;
  return {negative ? -s64(quadrant) : s64(quadrant), (rest < 0) == negative ? angle : -angle};
}

/// sin and cos on |x| <= pi/4 (1 + 2^-40). Error: 2^-52 relative; Taylor, cut after x^17 and x^18.
ATTEST_INLINE double sin_reduced(double x) {
  constexpr double c[] = {1.0 / 355687428096000.0,
                          -1.0 / 1307674368000.0,
                          1.0 / 6227020800.0,
                          -1.0 / 39916800.0,
                          1.0 / 362880.0,
                          -1.0 / 5040.0,
                          1.0 / 120.0,
                          -1.0 / 6.0,
                          1.0};
  return x * polynomial(c, x * x);
}
ATTEST_INLINE double cos_reduced(double x) {
  constexpr double c[] = {-1.0 / 6402373705728000.0,
                          1.0 / 20922789888000.0,
                          -1.0 / 87178291200.0,
                          1.0 / 479001600.0,
                          -1.0 / 3628800.0,
                          1.0 / 40320.0,
                          -1.0 / 720.0,
                          1.0 / 24.0,
                          -0.5,
                          1.0};
  return polynomial(c, x * x);
}
/// Domain: all floats. Error: 0.5 ulp + 2^-20 ulp. Special: infinities and NaN give NaN.
template <bool kCosine, bool kFlush>
ATTEST_INLINE float sine_f32(float a) {
  a = operand<kFlush>(a);
  const u32 magnitude = bits_as<u32>(a) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return bits_as<float>(0x7fffffffu);
  Turn turn{0, a};
  if (magnitude > 0x3f490fdau) turn = reduce(a);  // beyond pi/4
  const s64 q = (turn.quadrant + (kCosine ? 1 : 0)) & 3;
  const double r = q & 1 ? cos_reduced(turn.angle) : sin_reduced(turn.angle);
  return result<kFlush, false>(float(q & 2 ? -r : r));
}

}  // namespace attest::emulator::ATTEST_ISA
