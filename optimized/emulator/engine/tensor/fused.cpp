// Fused multiply-adds by a sum in double that is exact with what it leaves over.
#include "optimized/emulator/engine/tensor/fused.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "optimized/emulator/engine/tensor/dot.hpp"

namespace attest::emulator {
namespace {

double value(const Decoded& d, s32 fraction_bits) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (d.kind == Kind::nan) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = d.kind == Kind::infinite
                               ? kInfinity
                               : std::ldexp(double(d.significand), d.exponent - fraction_bits);
  return d.negative ? -magnitude : magnitude;
}

/// p + c rounded to odd in 53 bits: a second rounding to at most 24 bits then gives what one
/// rounding of the exact sum would (Boldo and Melquiond 2008: 53 >= 24 + 2).
double sum_to_odd(double p, double c) {
  const double s = p + c;
  const double t = s - p;
  const double rest = (p - (s - t)) + (c - t);  // Knuth's TwoSum: s + rest is exact
  if (!(rest != 0) || std::isnan(rest)) return s;
  const auto bits = std::bit_cast<u64>(s);
  if (bits & 1) return s;
  return std::bit_cast<double>((rest > 0) == (s > 0) ? bits + 1 : bits - 1);
}

u32 to_f32(double x) {
  return std::isnan(x) ? 0x7fffffffu : std::bit_cast<u32>(float(x));
}

/// Nearest even. Domain: doubles rounded to odd.
u32 to_f16(double x) {
  if (std::isnan(x)) return 0x7fffu;
  const u32 sign = std::signbit(x) ? 0x8000u : 0;
  const double magnitude = std::fabs(x);
  if (magnitude >= 65520.0) return sign | 0x7c00u;
  // Adding 1.5 * 2^(52 + e) rounds to a multiple of 2^e; e is that of the result's last bit.
  const int last = std::max(std::ilogb(std::max(magnitude, 0x1p-14)) - 10, -24);
  const double big = std::ldexp(1.5, 52 + last);
  const double rounded = (magnitude + big) - big;
  if (rounded == 0) return sign;
  const int exponent = std::max(std::ilogb(rounded), -14);
  const auto units = u32(std::ldexp(rounded, 10 - exponent));  // 0 ... 2047
  return sign | (units + (u32(exponent + 14) << 10));
}

u32 to_accumulator(Accumulator type, double x) {
  return type == Accumulator::f16 ? to_f16(x) : to_f32(x);
}

}  // namespace

double value_of(Format format, u32 bits) {
  return value(decode(format, bits), fraction_bits_of(format));
}
double value_of(Accumulator format, u32 bits) {
  return value(decode(format, bits), format == Accumulator::f16 ? 10 : 23);
}

u32 fused_dot(Format fa, Format fb, const u32* a, const u32* b, u32 count, Accumulator type_c,
              u32 c, Accumulator type_d) {
  for (u32 k = 0; k < count; ++k) {
    // At most 22 bits, exponents far from double's ends: the product is exact.
    const double p = value_of(fa, a[k]) * value_of(fb, b[k]);
    c = to_accumulator(type_d, sum_to_odd(p, value_of(type_c, c)));
    type_c = type_d;
  }
  return c;
}

u32 lowered_dot(Format fa, Format fb, const u32* a, const u32* b, Accumulator type_c, u32 c,
                Accumulator type_d) {
  constexpr Accumulator f32 = Accumulator::f32;
  if (type_d == f32)
    return add_accumulators(f32, fused_dot(fa, fb, a, b, 4, f32, 0, f32), type_c, c);
  constexpr u32 kMinusZero = 0x80000000u;  // a pair begins with a product: its zero keeps its sign
  const u32 first = fused_dot(fa, fb, a, b, 2, f32, kMinusZero, f32),
            last = fused_dot(fa, fb, a + 2, b + 2, 2, f32, kMinusZero, f32);
  const u32 sum = add_accumulators(f32, last, f32, add_accumulators(f32, first, type_c, c));
  return to_accumulator(type_d, value_of(f32, sum));
}

u32 add_accumulators(Accumulator type, u32 x, Accumulator type_c, u32 c) {
  return to_accumulator(type, sum_to_odd(value_of(type, x), value_of(type_c, c)));
}

}  // namespace attest::emulator
