// The number formats: what a bit pattern means and how a number becomes one.
// It knows IEEE 754 and the OCP 8-bit formats, and nothing of tensors or kernels.
// Encoding rounds directly from double, so no number is ever rounded twice.
#pragma once
#include <cstdint>
#include <span>

#include "reference/problem.hpp"

namespace attest {

/// f32, f16, bf16, e5m2 follow IEEE 754. e4m3 is OCP's "fn" flavour: no infinities, and the one
/// NaN pattern per sign is all ones, so that 448 is still finite. i8 holds the whole numbers from
/// -127 to 127, in two's complement: all of them as evenly spaced as subnormals, no -0 and no NaN.
struct FormatFacts {
  int bits;                   // width of a pattern
  int precision;              // p: bits of the significand, the hidden one included
  int exponent_min;           // emin: exponent of the smallest normal number
  double max_finite;          // largest finite number
  bool has_infinity;          // when not, overflow is NaN
  std::uint32_t nan;          // the quiet NaN that encode returns, sign clear
  std::uint32_t max_pattern;  // pattern of max_finite
};
const FormatFacts& facts(Format format);
std::span<const Format> float_formats();  // all but i8
inline Index bytes_of(Format format) {
  return facts(format).bits / 8;
}

/// Domain: any pattern; bits beyond the width are ignored.
/// Error: none, every number of every format is a double.
/// Special: infinities and signed zeros are kept; a NaN becomes the quiet NaN.
double decode(Format format, std::uint32_t pattern);

/// Domain: any double.
/// Error: nearest, ties to even, from the double itself; at most unit_roundoff relative, or half of
/// ulp(format, 0) below the normal range.
/// Special: signed zeros are kept; NaN becomes the format's quiet NaN, positive; what rounds beyond
/// max_finite, and infinity, becomes infinity, or NaN where the format has none (e4m3). i8 has
/// neither: what lies beyond becomes +-127, and NaN 0.
std::uint32_t encode(Format format, double number);

/// As encode, but what lies beyond max_finite, infinity included, becomes max_finite of its sign.
std::uint32_t encode_saturating(Format format, double number);

/// decode(encode(number)): the nearest number of the format.
double rounded(Format format, double number);

/// u = 2^-p: the largest relative error of rounding to nearest in the normal range.
double unit_roundoff(Format format);
/// Distance between neighbours in the binade of `number`, also below the normal range.
/// Domain: finite numbers; Special: 0 gives the smallest subnormal.
double ulp(Format format, double number);
/// The smallest positive normal number, 2^emin.
double smallest_normal(Format format);

}  // namespace attest
