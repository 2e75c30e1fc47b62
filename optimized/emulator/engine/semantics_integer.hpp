// What the integer and bit instructions compute, one lane at a time. Pure functions: no registers,
// no masks, no dispatch.
#pragma once
#include "optimized/emulator/engine/lanes.hpp"

namespace attest::emulator::ATTEST_ISA {

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<u16> {
  using type = u16;
  using wide = u32;
};
template <>
struct UnsignedOf<s16> {
  using type = u16;
  using wide = s32;
};
template <>
struct UnsignedOf<u32> {
  using type = u32;
  using wide = u64;
};
template <>
struct UnsignedOf<s32> {
  using type = u32;
  using wide = s64;
};
template <>
struct UnsignedOf<u64> {
  using type = u64;
  using wide = unsigned __int128;
};
template <>
struct UnsignedOf<s64> {
  using type = u64;
  using wide = __int128;
};
template <class T>
using Unsigned = typename UnsignedOf<T>::type;
template <class T>
using Wide = typename UnsignedOf<T>::wide;
template <class T>
inline constexpr bool kIsSigned = T(-1) < T(0);
template <class T>
inline constexpr unsigned kBits = sizeof(T) * 8;
template <class T>
inline constexpr T kLowest = kIsSigned<T> ? T(Unsigned<T>(1) << (kBits<T> - 1)) : T(0);
template <class T>
inline constexpr T kHighest = T(~Unsigned<T>(kLowest<T>));

// Arithmetic wraps, so it is done on unsigned values.
template <class T>
ATTEST_INLINE T add(T a, T b) {
  return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
ATTEST_INLINE T sub(T a, T b) {
  return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
ATTEST_INLINE T mul_lo(T a, T b) {
  return T(u64(Unsigned<T>(a)) * Unsigned<T>(b));
}
template <class T>
ATTEST_INLINE T mul_hi(T a, T b) {
  return T((Wide<T>(a) * Wide<T>(b)) >> kBits<T>);
}
template <class T>
ATTEST_INLINE Wide<T> mul_wide(T a, T b) {
  return Wide<T>(a) * Wide<T>(b);
}
template <class T>
ATTEST_INLINE T mad_lo(T a, T b, T c) {
  return add<T>(mul_lo<T>(a, b), c);
}
template <class T>
ATTEST_INLINE T mad_hi(T a, T b, T c) {
  return add<T>(mul_hi<T>(a, b), c);
}
template <class T>
ATTEST_INLINE Wide<T> mad_wide(T a, T b, Wide<T> c) {
  return add<Wide<T>>(mul_wide<T>(a, b), c);
}
ATTEST_INLINE s32 clamp_s32(s64 v) {
  return v < -2147483648LL ? s32(-2147483647 - 1) : v > 2147483647LL ? 2147483647 : s32(v);
}
ATTEST_INLINE s32 add_sat(s32 a, s32 b) {
  return clamp_s32(s64(a) + b);
}
ATTEST_INLINE s32 sub_sat(s32 a, s32 b) {
  return clamp_s32(s64(a) - b);
}
ATTEST_INLINE s32 mad_hi_sat(s32 a, s32 b, s32 c) {
  return clamp_s32(((s64(a) * b) >> 32) + c);
}
template <class T>
ATTEST_INLINE T low24(T v) {
  return kIsSigned<T> ? T(Unsigned<T>(v) << 8) >> 8 : T(v & 0xffffff);
}
template <class T>
ATTEST_INLINE T mul24_lo(T a, T b) {
  return mul_lo<T>(low24<T>(a), low24<T>(b));
}
template <class T>
ATTEST_INLINE T mul24_hi(T a, T b) {
  return T((Wide<T>(low24<T>(a)) * low24<T>(b)) >> 16);
}
template <class T>
ATTEST_INLINE T mad24_lo(T a, T b, T c) {
  return add<T>(mul24_lo<T>(a, b), c);
}
template <class T>
ATTEST_INLINE T mad24_hi(T a, T b, T c) {
  return add<T>(mul24_hi<T>(a, b), c);
}
ATTEST_INLINE s32 mad24_hi_sat(s32 a, s32 b, s32 c) {
  return clamp_s32(s64(mul24_hi<s32>(a, b)) + c);
}

// Division by zero is undefined in PTX; the hardware gives all ones, and the dividend as remainder.
template <class T>
ATTEST_INLINE T divide(T a, T b) {
  if (b == 0) return T(~T(0));
  if (kIsSigned<T> && b == T(-1)) return T(0 - Unsigned<T>(a));
  return T(a / b);
}
template <class T>
ATTEST_INLINE T remainder(T a, T b) {
  if (b == 0) return a;
  if (kIsSigned<T> && b == T(-1)) return 0;
  return T(a % b);
}
template <class T>
ATTEST_INLINE T absolute(T a) {
  return a < 0 ? T(0 - Unsigned<T>(a)) : a;
}
template <class T>
ATTEST_INLINE T negate(T a) {
  return T(0 - Unsigned<T>(a));
}
template <class T>
ATTEST_INLINE T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
ATTEST_INLINE T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
ATTEST_INLINE T smaller_relu(T a, T b) {
  return larger<T>(smaller<T>(a, b), 0);
}
template <class T>
ATTEST_INLINE T larger_relu(T a, T b) {
  return larger<T>(larger<T>(a, b), 0);
}
template <class T, bool kMaximum, bool kRelu>
ATTEST_INLINE u32 pair_extreme(u32 a, u32 b) {
  const T low = kMaximum ? larger<T>(T(a), T(b)) : smaller<T>(T(a), T(b));
  const T high = kMaximum ? larger<T>(T(a >> 16), T(b >> 16)) : smaller<T>(T(a >> 16), T(b >> 16));
  const T l = kRelu && low < 0 ? T(0) : low, h = kRelu && high < 0 ? T(0) : high;
  return u32(u16(l)) | u32(u16(h)) << 16;
}
template <class T>
ATTEST_INLINE u32 pair_add(u32 a, u32 b) {
  return ((a + b) & 0xffff) | ((a & 0xffff0000u) + (b & 0xffff0000u));
}
template <class T>
ATTEST_INLINE T sad(T a, T b, T c) {
  return add<T>(c, a < b ? sub<T>(b, a) : sub<T>(a, b));
}

template <class T>
ATTEST_INLINE T bit_and(T a, T b) {
  return T(a & b);
}
template <class T>
ATTEST_INLINE T bit_or(T a, T b) {
  return T(a | b);
}
template <class T>
ATTEST_INLINE T bit_xor(T a, T b) {
  return T(a ^ b);
}
template <class T>
ATTEST_INLINE T bit_not(T a) {
  return T(~a);
}
template <class T>
ATTEST_INLINE T c_not(T a) {
  return T(a == 0);
}
template <class T>
ATTEST_INLINE T copy(T a) {
  return a;
}
ATTEST_INLINE u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const u32 term = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    r |= (table >> i) & 1 ? term : 0;
  }
  return r;
}

// Shift amounts beyond the width are clamped, not taken modulo as on the host.
template <class T>
ATTEST_INLINE T shift_left(T a, u32 n) {
  return n >= kBits<T> ? T(0) : T(Unsigned<T>(a) << (n & (kBits<T> - 1)));
}
template <class T>
ATTEST_INLINE T shift_right(T a, u32 n) {
  const u32 m = n >= kBits<T> ? kBits<T> - 1 : n;
  const T shifted = T(a >> m);
  return !kIsSigned<T> && n >= kBits<T> ? T(0) : shifted;
}
template <bool kLeft, bool kWrap>
ATTEST_INLINE u32 funnel(u32 a, u32 b, u32 n) {
  const u32 m = kWrap ? n & 31 : (n > 32 ? 32 : n);
  const u64 both = u64(b) << 32 | a;
  return kLeft ? u32((both << m) >> 32) : u32(both >> m);
}
template <class T>
ATTEST_INLINE T insert_field(T a, T b, u32 position, u32 length) {
  const u32 p = position & 0xff, n = length & 0xff;
  if (p >= kBits<T> || n == 0) return b;
  const T ones = n >= kBits<T> ? T(~T(0)) : T((T(1) << n) - 1);
  const T field = T(ones << p);
  return T((b & ~field) | ((a << p) & field));
}
template <class T>
ATTEST_INLINE T extract_field(T a, u32 position, u32 length) {
  const u32 p = position & 0xff, n = length & 0xff;
  const u32 last = p + n - 1 < kBits<T> - 1 ? p + n - 1 : kBits<T> - 1;  // where the sign is
  const bool negative = kIsSigned<T> && n != 0 && ((Unsigned<T>(a) >> last) & 1);
  const Unsigned<T> shifted = p >= kBits<T> ? 0 : Unsigned<T>(a) >> p;
  const Unsigned<T> ones = n >= kBits<T> ? Unsigned<T>(~Unsigned<T>(0)) : (Unsigned<T>(1) << n) - 1;
  const Unsigned<T> available = p >= kBits<T> ? 0 : Unsigned<T>(~Unsigned<T>(0)) >> p;
  return T((shifted & ones) | (negative ? Unsigned<T>(~(ones & available)) : 0));
}
/// szext: keeps the low `width` bits of a; the rest becomes zero, or the sign bit of what was kept.
template <class T, bool kClamp>
ATTEST_INLINE T extend_low(T a, u32 width) {
  const u32 n = width & 31;
  if (kClamp && width >= 32) return a;
  if (n == 0) return 0;
  const u32 above = ~0u << n, kept = u32(a) & ~above;
  return T(kIsSigned<T> && ((u32(a) >> (n - 1)) & 1) ? kept | above : kept);
}
/// bmsk: `width` ones from bit `position` upwards.
template <bool kClamp>
ATTEST_INLINE u32 bit_mask(u32 position, u32 width) {
  const u32 p = position & 31, n = width & 31;
  if (kClamp && position >= 32) return 0;
  const bool to_the_top = p + n >= 32 || (kClamp && width >= 32);
  return (~0u << p) & (to_the_top ? ~0u : ~(~0u << (p + n)));
}
ATTEST_INLINE u32 leading_zeros_u32(u32 a) {
  return a == 0 ? 32 : __builtin_clz(a);
}
ATTEST_INLINE u32 leading_zeros_u64(u64 a) {
  return a == 0 ? 64 : __builtin_clzll(a);
}
template <class T>
ATTEST_INLINE u32 count_leading(T a) {
  if constexpr (sizeof(T) == 8)
    return leading_zeros_u64(u64(a));
  else
    return leading_zeros_u32(u32(a));
}
template <class T, bool kShift>
ATTEST_INLINE u32 find_leading(T a) {
  const Unsigned<T> bits = Unsigned<T>(a < 0 ? ~a : a);
  const u32 zeros = count_leading<Unsigned<T>>(bits);
  if (zeros == kBits<T>) return ~0u;
  return kShift ? zeros : kBits<T> - 1 - zeros;
}
ATTEST_INLINE u32 ones_u32(u32 a) {
  a = a - ((a >> 1) & 0x55555555u);
  a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
  return (((a + (a >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
}
ATTEST_INLINE u32 ones_u64(u64 a) {
  return ones_u32(u32(a)) + ones_u32(u32(a >> 32));
}
ATTEST_INLINE u32 reverse_u32(u32 a) {
  a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
  a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
  a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
  a = (a >> 8 & 0x00ff00ffu) | (a & 0x00ff00ffu) << 8;
  return a >> 16 | a << 16;
}
ATTEST_INLINE u64 reverse_u64(u64 a) {
  return u64(reverse_u32(u32(a))) << 32 | reverse_u32(u32(a >> 32));
}

/// prmt: each selector nibble picks a byte of b:a; its top bit replicates the byte's sign.
ATTEST_INLINE u32 permute(u32 a, u32 b, u32 selector) {
  const u64 bytes = u64(b) << 32 | a;
  u32 r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const u32 s = selector >> (4 * i);
    const u32 byte = u32(bytes >> (8 * (s & 7))) & 0xff;
    r |= (s & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i);
  }
  return r;
}
enum class Permute : u8 { f4e, b4e, rc8, ecl, ecr, rc16 };
template <Permute kMode>
ATTEST_INLINE u32 permute_mode(u32 a, u32 b, u32 selector) {
  const u32 s = selector & 3;
  u32 nibbles = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 n = 0;
    switch (kMode) {
      case Permute::f4e:
        n = s + i;
        break;
      case Permute::b4e:
        n = (s - i) & 7;
        break;
      case Permute::rc8:
        n = s;
        break;
      case Permute::ecl:
        n = i > s ? i : s;
        break;
      case Permute::ecr:
        n = i < s ? i : s;
        break;
      case Permute::rc16:
        n = (s & 1) * 2 + (i & 1);
        break;
    }
    nibbles |= n << (4 * i);
  }
  return permute(a, b, nibbles);
}
/// fns: position of the n-th set bit of a, counted from position b upwards (n > 0) or downwards.
ATTEST_INLINE u32 find_nth_set(u32 a, u32 b, u32 offset) {
  const s32 n = s32(offset);
  if (n == 0) return (a >> (b & 31)) & 1 ? b & 31 : ~0u;
  u32 left = n > 0 ? offset : 0u - offset;  // unsigned: -2^31 has no negative in 32 bits
  for (s32 i = s32(b & 31); i >= 0 && i<32; i += n> 0 ? 1 : -1) {
    if (((a >> i) & 1) && --left == 0) return u32(i);
  }
  return ~0u;
}
template <class A, class B>
ATTEST_INLINE u32 dot4(u32 a, u32 b, u32 c) {
  for (unsigned i = 0; i < 4; ++i) c += u32(s32(A(a >> (8 * i))) * s32(B(b >> (8 * i))));
  return c;
}
template <class A, class B, bool kHigh>
ATTEST_INLINE u32 dot2(u32 a, u32 b, u32 c) {
  for (unsigned i = 0; i < 2; ++i) {
    c += u32(s32(A(a >> (16 * i))) * s32(B(b >> (8 * i + (kHigh ? 16 : 0)))));
  }
  return c;
}

template <class T>
ATTEST_INLINE bool equal(T a, T b) {
  return a == b;
}
template <class T>
ATTEST_INLINE bool unequal(T a, T b) {
  return a != b;
}
template <class T>
ATTEST_INLINE bool less(T a, T b) {
  return a < b;
}
template <class T>
ATTEST_INLINE bool less_equal(T a, T b) {
  return a <= b;
}

}  // namespace attest::emulator::ATTEST_ISA
