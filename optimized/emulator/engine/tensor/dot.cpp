// The definition of tensor core sums, in integers.
#include "optimized/emulator/engine/tensor/dot.hpp"

#include <algorithm>

#include "optimized/emulator/engine/tensor/fused.hpp"

namespace attest::emulator {
namespace {

constexpr u32 kDepthMost = 32;

struct FormatShape {
  s32 exponent_bits, fraction_bits, dropped;  // dropped: low bits of the 32 that are ignored
};

FormatShape shape_of(Format format) {
  switch (format) {
    case Format::f16:
      return {5, 10, 0};
    case Format::bf16:
      return {8, 7, 0};
    case Format::tf32:
      return {8, 10, 13};
    case Format::e4m3:
      return {4, 3, 0};
    case Format::e5m2:
      return {5, 2, 0};
    default:
      return {0, 0, 0};  // integers and doubles do not come here
  }
}

Decoded decode(FormatShape f, bool has_infinity, u32 bits) {
  bits >>= f.dropped;
  const u32 top = (1u << f.exponent_bits) - 1;
  const u32 stored = (bits >> f.fraction_bits) & top;
  const u32 fraction = bits & ((1u << f.fraction_bits) - 1);
  Decoded d{Kind::finite, ((bits >> (f.exponent_bits + f.fraction_bits)) & 1) != 0, 0, 0};
  d.exponent = s32(std::max(stored, 1u)) - (s32(top) >> 1);
  d.significand = fraction | (stored != 0 ? 1u << f.fraction_bits : 0);
  if (d.significand == 0) d.kind = Kind::zero;
  if (stored == top && has_infinity) d.kind = fraction == 0 ? Kind::infinite : Kind::nan;
  const bool all_ones = fraction == (1u << f.fraction_bits) - 1;
  if (stored == top && !has_infinity && all_ones) d.kind = Kind::nan;
  return d;
}

/// significand * 2^shift, cut towards zero.
s64 cut(u64 significand, s32 shift, bool negative) {
  u64 magnitude = 0;
  if (shift >= 0)
    magnitude = significand << shift;
  else if (shift > -64)
    magnitude = significand >> -shift;
  return negative ? -s64(magnitude) : s64(magnitude);
}

u32 nan_of(GroupResult result) {
  return result == GroupResult::f16 ? 0x7fffu : 0x7fffffffu;
}

u32 infinity_of(GroupResult result, bool negative) {
  if (result == GroupResult::f16) return 0x7c00u | u32(negative) << 15;
  return 0x7f800000u | u32(negative) << 31;
}

/// sum * 2^scale in the format of the result.
u32 round_sum(s64 sum, s32 scale, GroupResult result) {
  if (sum == 0) return 0;
  const bool half = result == GroupResult::f16, negative = sum < 0;
  const s32 fraction = half ? 10 : result == GroupResult::e8m13 ? 13 : 23;
  const s32 least = half ? -14 : -126, greatest = half ? 15 : 127;
  const u64 magnitude = negative ? u64(-sum) : u64(sum);
  const s32 exponent = 63 - __builtin_clzll(magnitude) + scale;
  const s32 dropped = std::max(exponent, least) - fraction - scale;  // bits below the result's last
  u64 kept = dropped >= 64 ? 0 : dropped > 0 ? magnitude >> dropped : magnitude << -dropped;
  if (half && dropped > 0 && dropped < 64) {  // nearest even
    const u64 rest = magnitude & ((u64{1} << dropped) - 1), tie = u64{1} << (dropped - 1);
    if (rest > tie || (rest == tie && (kept & 1))) ++kept;
  }
  // A carry out of the significand moves into the exponent by itself.
  const s32 width = half ? 10 : 23;
  const u64 bits = (kept << (width - fraction)) + (u64(std::max(exponent, least) - least) << width);
  if (bits >= u64(greatest - least + 2) << width) return infinity_of(result, negative);
  return u32(bits) | u32(negative) << (half ? 15 : 31);
}

struct Addend {
  Kind kind;
  bool negative;
  s32 exponent;
  u64 significand;
  s32 fraction_bits;
};

Addend product(const Decoded& a, const Decoded& b, s32 fraction_bits) {
  Addend p{Kind::finite, a.negative != b.negative, a.exponent + b.exponent,
           u64(a.significand) * b.significand, fraction_bits};
  const bool zero = a.kind == Kind::zero || b.kind == Kind::zero;
  const bool infinite = a.kind == Kind::infinite || b.kind == Kind::infinite;
  if (zero) p.kind = Kind::zero;
  if (infinite) p.kind = zero ? Kind::nan : Kind::infinite;
  if (a.kind == Kind::nan || b.kind == Kind::nan) p.kind = Kind::nan;
  return p;
}

/// One alignment group.
u32 add_group(const Arithmetic& how, const Addend* addends, u32 count) {
  bool nan = false, positive = false, negative = false, none = true;
  s32 emax = how.floor;
  for (u32 i = 0; i < count; ++i) {
    const Addend& x = addends[i];
    nan |= x.kind == Kind::nan;
    if (x.kind == Kind::infinite) (x.negative ? negative : positive) = true;
    if (x.kind != Kind::finite) continue;
    none = false;
    emax = std::max(emax, x.exponent);
  }
  if (nan || (positive && negative)) return nan_of(how.result);
  if (positive || negative) return infinity_of(how.result, negative);
  if (none) return 0;
  s64 sum = 0;
  for (u32 i = 0; i < count; ++i) {
    const Addend& x = addends[i];
    if (x.kind != Kind::finite) continue;
    const s32 shift = x.exponent - x.fraction_bits - (emax - how.fraction_bits);
    sum += cut(x.significand, shift, x.negative);
  }
  return round_sum(sum, emax - how.fraction_bits, how.result);
}

Addend addend_of(Accumulator type, u32 bits) {
  const Decoded c = decode(type, bits);
  return {c.kind, c.negative, c.exponent, c.significand, type == Accumulator::f16 ? 10 : 23};
}

}  // namespace

s32 fraction_bits_of(Format format) {
  return shape_of(format).fraction_bits;
}

Decoded decode(Format format, u32 bits) {
  return decode(shape_of(format), format != Format::e4m3, bits);
}

Decoded decode(Accumulator format, u32 bits) {
  return decode(format == Accumulator::f16 ? FormatShape{5, 10, 0} : FormatShape{8, 23, 0}, true,
                bits);
}

u32 dot(const Arithmetic& how, Format fa, Format fb, const u32* a, const u32* b, u32 count,
        Accumulator type_c, u32 c, Accumulator type_d) {
  if (how.lowered) return lowered_dot(fa, fb, a, b, type_c, c, type_d);
  if (how.fused) return fused_dot(fa, fb, a, b, count, type_c, c, type_d);
  Decoded left[kDepthMost], right[kDepthMost];
  for (u32 k = 0; k < count; ++k) left[k] = decode(fa, a[k]), right[k] = decode(fb, b[k]);
  return dot(how, fa, fb, left, right, count, type_c, c, type_d);
}

u32 dot(const Arithmetic& how, Format fa, Format fb, const Decoded* a, const Decoded* b, u32 count,
        Accumulator type_c, u32 c, Accumulator type_d) {
  const s32 fraction_bits = fraction_bits_of(fa) + fraction_bits_of(fb);
  Addend group[1 + kDepthMost];
  if (how.in_pairs) {
    u32 sum = 0;
    for (u32 pair = 0; pair < 2; ++pair) {
      u32 n = 0;
      group[n++] = addend_of(type_d, sum);
      for (u32 k = 0; k < count; ++k) {
        if (k / 2 % 2 == pair) group[n++] = product(a[k], b[k], fraction_bits);
      }
      sum = add_group(how, group, n);
    }
    return add_accumulators(type_d, sum, type_c, c);
  }
  for (u32 first = 0; first < count; first += how.group) {
    u32 n = 0;
    group[n++] = addend_of(type_c, c);
    for (u32 k = first; k < std::min(first + how.group, count); ++k)
      group[n++] = product(a[k], b[k], fraction_bits);
    c = add_group(how, group, n);
    type_c = type_d;
  }
  return c;
}

}  // namespace attest::emulator
