// setp: which comparisons of which types exist, which function each means, and how 32 results
// become a predicate.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

u32 mask_of(const u32* words) {
#if defined(__AVX512DQ__)
  return u32(_mm512_movepi32_mask(_mm512_load_si512(words))) |
         u32(_mm512_movepi32_mask(_mm512_load_si512(words + 16))) << 16;
#elif defined(__AVX2__)
  u32 mask = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const __m256 v = _mm256_load_ps(reinterpret_cast<const float*>(words + 8 * i));
    mask |= u32(_mm256_movemask_ps(v)) << (8 * i);
  }
  return mask;
#else
  u32 mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const __m128 v = _mm_load_ps(reinterpret_cast<const float*>(words + 4 * i));
    mask |= u32(_mm_movemask_ps(v)) << (4 * i);
  }
  return mask;
#endif
}

namespace {

enum class Relation : u8 { eq, ne, lt, le, num, none };
Relation relation_of(const Spelling& s) {
  if (s.has(M::eq)) return Relation::eq;
  if (s.has(M::ne)) return Relation::ne;
  if (s.has(M::lt)) return Relation::lt;
  if (s.has(M::le)) return Relation::le;
  return s.has(M::num) ? Relation::num : Relation::none;
}
template <class T>
Handler compare_integers(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal<T>>;
    case Relation::ne:
      return comparing<unequal<T>>;
    case Relation::lt:
      return comparing<less<T>>;
    case Relation::le:
      return comparing<less_equal<T>>;
    default:
      return nullptr;
  }
}
template <bool kFlush>
Handler compare_f32(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal_f32<kFlush>>;
    case Relation::ne:
      return comparing<unequal_f32<kFlush>>;
    case Relation::lt:
      return comparing<less_f32<kFlush>>;
    case Relation::le:
      return comparing<less_equal_f32<kFlush>>;
    default:
      return comparing<ordered_f32>;
  }
}
Handler compare_f64(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal_f64>;
    case Relation::ne:
      return comparing<unequal_f64>;
    case Relation::lt:
      return comparing<less_f64>;
    case Relation::le:
      return comparing<less_equal_f64>;
    default:
      return comparing<ordered_f64>;
  }
}
template <class H, bool kFlush>
Handler compare_half(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal16<H, kFlush>>;
    case Relation::ne:
      return comparing<unequal16<H, kFlush>>;
    case Relation::lt:
      return comparing<less16<H, kFlush>>;
    case Relation::le:
      return comparing<less_equal16<H, kFlush>>;
    default:
      return comparing<ordered16<H>>;
  }
}

}  // namespace

/// The decoder turns every comparison into one of these five and swaps, negates and combines.
Handler select_setp(const Spelling& s) {
  const Relation r = relation_of(s);
  if (r == Relation::none || s.type_count == 0) return nullptr;
  const bool ftz = s.has(M::ftz);
  switch (s.types[s.type_count - 1]) {
    case Type::b16:
    case Type::u16:
      return compare_integers<u16>(r);
    case Type::s16:
      return compare_integers<s16>(r);
    case Type::b32:
    case Type::u32:
      return compare_integers<u32>(r);
    case Type::s32:
      return compare_integers<s32>(r);
    case Type::b64:
    case Type::u64:
      return compare_integers<u64>(r);
    case Type::s64:
      return compare_integers<s64>(r);
    case Type::f32:
      return ftz ? compare_f32<true>(r) : compare_f32<false>(r);
    case Type::f64:
      return compare_f64(r);
    case Type::f16:
      return ftz ? compare_half<F16, true>(r) : compare_half<F16, false>(r);
    case Type::bf16:
      return compare_half<BF16, false>(r);
    default:
      return nullptr;
  }
}

}  // namespace attest::emulator::ATTEST_ISA
