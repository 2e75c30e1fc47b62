// Unpacks the A and B registers of a tile of floats into the planes that the sums run over: values
// as f32, and exponents as 16-bit integers. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/tensor/layout.hpp"
#include "optimized/emulator/engine/tensor/vectors.hpp"

namespace attest::emulator::ATTEST_ISA {

/// Exponents that stand for what has none. A product's is the sum of two: below kNothing when it is
/// zero, above every bound when it is Inf or NaN, Inf * 0 included.
inline constexpr s32 kZeroExponent = -4000, kSpecialExponent = 12000, kNothing = -3000;

/// Plane q * per_word + e holds element e of each lane's register q: k = (4 q + t) per_word + e.
struct Planes {
  alignas(64) s32 a[8][2][kLanes];        // rows g, and rows g + 8
  alignas(64) s32 a_exponent[8][kLanes];  // low half: row g; high half: row g + 8
  // By t; even columns, then odd ones. Exponents are the same in both halves of a word.
  alignas(64) s32 b[8][4][2][4];
  alignas(64) s32 b_exponent[8][4][2][4];
};

template <Format kFormat>
struct FormatOf;
template <>
struct FormatOf<Format::f16> {
  static constexpr s32 kBits = 16, kFraction = 10, kBias = 15, kSpecial = 0x7c00;
};
template <>
struct FormatOf<Format::bf16> {
  static constexpr s32 kBits = 16, kFraction = 7, kBias = 127, kSpecial = 0x7f80;
};
template <>
struct FormatOf<Format::tf32> {
  static constexpr s32 kBits = 32, kFraction = 23, kBias = 127, kSpecial = 0x7f800000;
};
template <>
struct FormatOf<Format::e4m3> {
  static constexpr s32 kBits = 8, kFraction = 3, kBias = 7, kSpecial = 0x7f;
};
template <>
struct FormatOf<Format::e5m2> {
  static constexpr s32 kBits = 8, kFraction = 2, kBias = 15, kSpecial = 0x7c;
};

/// The value, exactly, of element `e` of packed registers.
template <Format kFormat>
ATTEST_INLINE Words value_of(Words packed, s32 e) {
  using F = FormatOf<kFormat>;
  if constexpr (kFormat == Format::tf32) return packed & ~0x1fff;
  const Words raw = (packed >> (F::kBits * e)) & s32((1u << (F::kBits % 32)) - 1);
  if constexpr (kFormat == Format::bf16) return raw << 16;
  const Words magnitude = raw & s32((1u << (F::kBits - 1)) - 1);
  constexpr float kRebias = F::kBias == 15 ? 0x1p112f : 0x1p120f;  // 2^(127 - bias)
  Words value = Words(Floats(magnitude << (23 - F::kFraction)) * kRebias);
  value |= (raw & (1 << (F::kBits - 1))) << (32 - F::kBits);
  constexpr s32 kNotFinite = kFormat == Format::e4m3 ? 0x7fffffff : 0x7f800000;
  return value | ((magnitude >= F::kSpecial) & kNotFinite);
}

/// Exponents of values whose magnitudes lie in 16 bits each. A special value is at least kSpecial.
template <s32 kFraction, s32 kBias, s32 kSpecial>
ATTEST_INLINE Words exponents_of(Words magnitudes, s32 least) {
  const Shorts magnitude = Shorts(magnitudes);
  Shorts e = larger(magnitude >> kFraction, Shorts{} + s16(least + kBias)) - s16(kBias);
  e = magnitude == 0 ? Shorts{} + s16(kZeroExponent) : e;
  e = magnitude >= s16(kSpecial) ? Shorts{} + s16(kSpecialExponent) : e;
  return Words(e);
}

/// The exponents of element `e` of two registers, those of the first in the low halves.
template <Format kFormat>
ATTEST_INLINE Words exponents_of(Words first, Words second, s32 e) {
  using F = FormatOf<kFormat>;
  constexpr s32 kLeast = 1 - F::kBias;
  if constexpr (F::kBits == 32) {
    // The upper 15 bits of a magnitude are a bf16 whose fraction is cut, and zero only if it is:
    // what tf32 has below them is told by a last bit that is set for it.
    const auto upper = [](Words x) {
      const Words magnitude = x & 0x7fffe000;
      return (magnitude >> 16) | Words(((magnitude & 0xffff) != 0) & 1);
    };
    return exponents_of<7, F::kBias, 0x7f80>(low_halves(upper(first), upper(second)), kLeast);
  } else if constexpr (F::kBits == 16) {
    const Words both = e == 0 ? low_halves(first, second) : high_halves(first, second);
    return exponents_of<F::kFraction, F::kBias, F::kSpecial>(both & 0x7fff7fff, kLeast);
  } else {
    const s32 shift = 8 * e;
    const Words both = low_halves(first >> shift, second >> shift);
    return exponents_of<F::kFraction, F::kBias, F::kSpecial>(both & 0x7f007f, kLeast);
  }
}

/// kExponents: whether the sums need exponents.
template <Format kFormat, bool kExponents>
ATTEST_INLINE void unpack_a(const MmaShape& s, const u32* const* a, Planes& planes) {
  constexpr u32 kPerWord = 32 / FormatOf<kFormat>::kBits;
  const u32 words = s.words, halves = s.halves;  // read once: the planes might alias them
  for (u32 q = 0; q < words; ++q) {
    for (u32 l = 0; l < kLanes; l += kWidth) {
      const Words low = load_words(a[q * halves] + l);
      const Words high = halves == 2 ? load_words(a[q * 2 + 1] + l) : low;
      for (u32 e = 0; e < kPerWord; ++e) {
        const u32 plane = q * kPerWord + e;
        store_words(planes.a[plane][0] + l, value_of<kFormat>(low, s32(e)));
        if (halves == 2) store_words(planes.a[plane][1] + l, value_of<kFormat>(high, s32(e)));
        if (kExponents)
          store_words(planes.a_exponent[plane] + l, exponents_of<kFormat>(low, high, s32(e)));
      }
    }
  }
}

/// Word i of `to` is column 2 (i % 4) + i / 4 % 2 at t = i / 8.
ATTEST_INLINE void by_columns(s32* to, const s32* from) {
#ifdef __AVX512F__
  const __m512i low = _mm512_load_si512(from), high = _mm512_load_si512(from + 16);
  const __m512i first = _mm512_setr_epi32(0, 8, 16, 24, 4, 12, 20, 28, 1, 9, 17, 25, 5, 13, 21, 29);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
  _mm512_store_si512(to, _mm512_permutex2var_epi32(low, first, high));
  _mm512_store_si512(to + 16, _mm512_permutex2var_epi32(low, second, high));
#else
  for (u32 i = 0; i < kLanes; ++i) to[i] = from[4 * (2 * (i % 4) + i / 4 % 2) + i / 8];
#endif
}

template <Format kFormat, bool kExponents>
ATTEST_INLINE void unpack_b(const MmaShape& s, const u32* const* b, Planes& planes) {
  constexpr u32 kPerWord = 32 / FormatOf<kFormat>::kBits;
  const u32 words = s.words;  // read once: the planes might alias it
  for (u32 q = 0; q < words; ++q) {
    alignas(64) s32 packed[kLanes];
    by_columns(packed, reinterpret_cast<const s32*>(b[q]));
    for (u32 e = 0; e < kPerWord; ++e) {
      const u32 plane = q * kPerWord + e;
      for (u32 l = 0; l < kLanes; l += kWidth) {
        const Words both = load_words(packed + l);
        store_words(&planes.b[plane][0][0][0] + l, value_of<kFormat>(both, s32(e)));
        if (kExponents)
          store_words(&planes.b_exponent[plane][0][0][0] + l,
                      exponents_of<kFormat>(both, both, s32(e)));
      }
    }
  }
}

/// Accumulators as floats: [row half][even or odd column][lane].
struct Sums {
  alignas(64) s32 at[2][2][kLanes];
};

ATTEST_INLINE void unpack_sums(const MmaShape& s, const u32* const* c, Sums& sums) {
  for (u32 half = 0; half < s.halves; ++half) {
    for (u32 l = 0; l < kLanes; l += kWidth) {
      if (s.c == Accumulator::f16) {
        const Words both = load_words(c[half] + l);
        store_words(sums.at[half][0] + l, from_half(both & 0xffff));
        store_words(sums.at[half][1] + l, from_half((both >> 16) & 0xffff));
      } else {
        store_words(sums.at[half][0] + l, load_words(c[2 * half] + l));
        store_words(sums.at[half][1] + l, load_words(c[2 * half + 1] + l));
      }
    }
  }
}

/// Writes D. NaN becomes the canonical one.
ATTEST_INLINE void pack_sums(const MmaShape& s, const Sums& sums, u32* const* d) {
  for (u32 half = 0; half < s.halves; ++half) {
    for (u32 l = 0; l < kLanes; l += kWidth) {
      const Words even = load_words(sums.at[half][0] + l), odd = load_words(sums.at[half][1] + l);
      if (s.d == Accumulator::f16) {
        store_words(d[half] + l, to_half(even) | to_half(odd) << 16);
        continue;
      }
      const auto canonical = [](Words x) {
        return (x & 0x7fffffff) > 0x7f800000 ? Words{} + 0x7fffffff : x;
      };
      store_words(d[2 * half] + l, canonical(even));
      store_words(d[2 * half + 1] + l, canonical(odd));
    }
  }
}

}  // namespace attest::emulator::ATTEST_ISA
