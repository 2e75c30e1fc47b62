// As many lanes as one vector register of the host holds, and the few operations on them that the
// compiler's vector types do not spell. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/lanes.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

#if defined(__AVX512F__)
inline constexpr u32 kWidth = 16;
#elif defined(__AVX2__)
inline constexpr u32 kWidth = 8;
#else
inline constexpr u32 kWidth = 4;
#endif
inline constexpr u32 kChunks = kLanes / kWidth;

typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef s32 Words __attribute__((vector_size(4 * kWidth)));
typedef s16 Shorts __attribute__((vector_size(4 * kWidth)));

ATTEST_INLINE Words load_words(const void* from) {
  return *static_cast<const Words*>(from);
}
ATTEST_INLINE void store_words(void* to, Words v) {
  *static_cast<Words*>(to) = v;
}

/// Every quad of lanes gets what its lane kT has.
template <int kT>
ATTEST_INLINE Words quad(Words v) {
#if defined(__AVX512F__)
  return Words(_mm512_shuffle_epi32(__m512i(v), _MM_PERM_ENUM(kT * 0x55)));
#elif defined(__AVX2__)
  return Words(_mm256_shuffle_epi32(__m256i(v), kT * 0x55));
#else
  return Words(_mm_shuffle_epi32(__m128i(v), kT * 0x55));
#endif
}

/// Every quad of lanes gets the four words at `four`.
ATTEST_INLINE Words repeat(const s32* four) {
  const __m128i one = _mm_load_si128(reinterpret_cast<const __m128i*>(four));
#if defined(__AVX512F__)
  return Words(_mm512_broadcast_i32x4(one));
#elif defined(__AVX2__)
  return Words(_mm256_broadcastsi128_si256(one));
#else
  return Words(one);
#endif
}

ATTEST_INLINE Shorts larger(Shorts a, Shorts b) {
#if defined(__AVX512F__)
  return Shorts(_mm512_max_epi16(__m512i(a), __m512i(b)));
#elif defined(__AVX2__)
  return Shorts(_mm256_max_epi16(__m256i(a), __m256i(b)));
#else
  return Shorts(_mm_max_epi16(__m128i(a), __m128i(b)));
#endif
}
/// Two 16-bit values per word: the low halves of `low`, then those of `high`.
ATTEST_INLINE Words low_halves(Words low, Words high) {
  return (low & 0xffff) | high << 16;
}
/// The upper halves of `low`, then those of `high`.
ATTEST_INLINE Words high_halves(Words low, Words high) {
  return ((low >> 16) & 0xffff) | (high & s32(0xffff0000u));
}
ATTEST_INLINE Words larger(Words a, Words b) {
  return a > b ? a : b;
}
ATTEST_INLINE Words magnitude_of(Words v) {
  const Words sign = v >> 31;
  return (v ^ sign) - sign;
}

/// Wraps around.
ATTEST_INLINE Words wrapping_sum(Words a, Words b) {
  typedef u32 Unsigned __attribute__((vector_size(4 * kWidth)));
  return Words(Unsigned(a) + Unsigned(b));
}

/// Towards zero, as the conversion instruction does.
ATTEST_INLINE Words whole(Floats v) {
  return __builtin_convertvector(v, Words);
}

/// Whether float_towards_zero converts to the nearest first, and so must not be given the largest.
#ifdef __AVX512F__
inline constexpr bool kRoundsUpBeforeCutting = false;
#else
inline constexpr bool kRoundsUpBeforeCutting = true;
#endif

/// Integers as floats, towards zero. Domain: magnitudes below 2^31 - 2^7 where the host has no
/// conversion of its own for this.
ATTEST_INLINE Words float_towards_zero(Words v) {
#if defined(__AVX512F__)
  return Words(_mm512_cvt_roundepi32_ps(__m512i(v), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
#else
  const Floats nearest = __builtin_convertvector(v, Floats);
  // One unit of the last place too far, or not at all.
  return Words(nearest) + Words(magnitude_of(whole(nearest)) > magnitude_of(v));
#endif
}

#ifdef __FMA__
ATTEST_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return Floats(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#else
  return Floats(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#endif
}
#endif

ATTEST_INLINE bool any(Words v) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(__m512i(v), __m512i(v)) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256(__m256i(v), __m256i(v));
#else
  return _mm_movemask_epi8(_mm_cmpeq_epi32(__m128i(v), _mm_setzero_si128())) != 0xffff;
#endif
}

/// f16 bits of floats, nearest even. Special: NaN is 0x7fff; overflow is infinity.
ATTEST_INLINE Words to_half(Words x) {
  const Words sign = (x >> 16) & 0x8000, magnitude = x & 0x7fffffff;
  // Subnormal results: adding 0.5 leaves the rounded significand in the low bits.
  const Words tiny = Words(Floats(magnitude) + 0.5f) - 0x3f000000;
  const Words normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  Words r = magnitude < 0x38800000 ? tiny : normal;
  r = magnitude >= 0x477ff000 ? Words{} + 0x7c00 : r;  // 65520 and beyond
  r |= sign;
  return magnitude > 0x7f800000 ? Words{} + 0x7fff : r;
}

/// Floats of f16 bits in the low half of each word. The rest must be zero.
ATTEST_INLINE Words from_half(Words h) {
  const Words magnitude = h & 0x7fff;
  // Re-biasing by a multiplication handles subnormals exactly: 2^112 = 2^(127 - 15).
  Words r = Words(Floats(magnitude << 13) * 0x1p112f);
  r |= (magnitude >= 0x7c00) & 0x7f800000;
  return r | (h & 0x8000) << 16;
}

}  // namespace attest::emulator::ATTEST_ISA
