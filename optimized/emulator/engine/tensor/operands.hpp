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

/// Element `e` of packed registers: its value, exactly, and its exponent.
template <Format kFormat>
ATTEST_INLINE void take(Words packed, s32 e, Words& value, Words& exponent) {
  using F = FormatOf<kFormat>;
  Words raw = packed;
  if constexpr (kFormat == Format::tf32)
    raw &= ~0x1fff;
  else
    raw = (packed >> (F::kBits * e)) & s32((1u << (F::kBits % 32)) - 1);
  const Words magnitude = raw & s32((1u << (F::kBits - 1)) - 1);
  if constexpr (kFormat == Format::tf32) {
    value = raw;
  } else if constexpr (kFormat == Format::bf16) {
    value = raw << 16;
  } else {
    constexpr float kRebias = F::kBias == 15 ? 0x1p112f : 0x1p120f;  // 2^(127 - bias)
    value = Words(Floats(magnitude << (23 - F::kFraction)) * kRebias);
    value |= (raw & (1 << (F::kBits - 1))) << (32 - F::kBits);
    constexpr s32 kNotFinite = kFormat == Format::e4m3 ? 0x7fffffff : 0x7f800000;
    value |= (magnitude >= F::kSpecial) & kNotFinite;
  }
  const Words stored = magnitude >> F::kFraction;
  exponent = larger(stored, Words{} + 1) - F::kBias;
  exponent = magnitude == 0 ? Words{} + kZeroExponent : exponent;
  exponent = magnitude >= F::kSpecial ? Words{} + kSpecialExponent : exponent;
}

/// kExponents: whether the sums need exponents.
template <Format kFormat, bool kExponents>
ATTEST_INLINE void unpack_a(const MmaShape& s, const u32* const* a, Planes& planes) {
  constexpr u32 kPerWord = 32 / FormatOf<kFormat>::kBits;
  const u32 words = s.words, halves = s.halves;  // read once: the planes might alias them
  for (u32 q = 0; q < words; ++q) {
    for (u32 e = 0; e < kPerWord; ++e) {
      const u32 plane = q * kPerWord + e;
      for (u32 l = 0; l < kLanes; l += kWidth) {
        Words value, low, high = Words{};
        take<kFormat>(load_words(a[q * halves] + l), s32(e), value, low);
        store_words(planes.a[plane][0] + l, value);
        if (halves == 2) {
          take<kFormat>(load_words(a[q * 2 + 1] + l), s32(e), value, high);
          store_words(planes.a[plane][1] + l, value);
        }
        if (kExponents) store_words(planes.a_exponent[plane] + l, (low & 0xffff) | high << 16);
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
        Words value, exponent;
        take<kFormat>(load_words(packed + l), s32(e), value, exponent);
        store_words(&planes.b[plane][0][0][0] + l, value);
        if (kExponents)
          store_words(&planes.b_exponent[plane][0][0][0] + l, (exponent & 0xffff) | exponent << 16);
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
