// ld and st of every element width, space and vector length.
#include "optimized/emulator/engine/places.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/watch.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {
namespace {

/// What a register holds of a memory element E: narrow or wide, zero- or sign-extended.
template <class E>
ATTEST_INLINE E fetch(u64 address) {
  E value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof(E));
  return value;
}

template <class E>
ATTEST_INLINE void splat(u8* d, E value, u32 mask) {
  if (mask == kAllLanes) {
    ATTEST_LANES write<E>(d, l, value);
  } else {
    for (u32 left = mask; left; left &= left - 1) write<E>(d, u32(__builtin_ctz(left)), value);
  }
}

template <class E>
ATTEST_INLINE void gather(u8* d, const Places& p, Spread spread, u64 further, u32 bytes, u32 mask) {
#ifdef __AVX512F__
  if constexpr (sizeof(E) == 4) {
    if (spread == Spread::offsets) {
      for (unsigned i = 0; i < 2; ++i) {
        __m512i* to = reinterpret_cast<__m512i*>(d) + i;
        const __m512i at = _mm512_load_si512(p.offset + 16 * i);
        _mm512_store_si512(
            to, _mm512_mask_i32gather_epi32(_mm512_load_si512(to), __mmask16(mask >> (16 * i)), at,
                                            p.first + further, 1));
      }
      return;
    }
    if (spread == Spread::scattered) {
      for (unsigned i = 0; i < 4; ++i) {
        __m256i* to = reinterpret_cast<__m256i*>(d) + i;
        const __m512i at = _mm512_load_si512(p.at + 8 * i);
        _mm256_store_si256(
            to, _mm512_mask_i64gather_epi32(_mm256_load_si256(to), __mmask8(mask >> (8 * i)), at,
                                            reinterpret_cast<const void*>(further), 1));
      }
      return;
    }
  }
#endif
  if (mask == kAllLanes) {
    for (u32 l = 0; l < kLanes; ++l)
      write<E>(d, l, fetch<E>(address_of(p, spread, bytes, l) + further));
  } else {
    for (u32 left = mask; left; left &= left - 1) {
      const u32 l = u32(__builtin_ctz(left));
      write<E>(d, l, fetch<E>(address_of(p, spread, bytes, l) + further));
    }
  }
}

// --- four words per lane: 16 bytes are moved at once and transposed in registers ---
ATTEST_INLINE __m128i row(u64 address) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(address));
}

ATTEST_INLINE void transpose(__m128i (&r)[4]) {
  const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpackhi_epi32(r[0], r[1]);
  const __m128i c = _mm_unpacklo_epi32(r[2], r[3]), d = _mm_unpackhi_epi32(r[2], r[3]);
  r[0] = _mm_unpacklo_epi64(a, c), r[1] = _mm_unpackhi_epi64(a, c);
  r[2] = _mm_unpacklo_epi64(b, d), r[3] = _mm_unpackhi_epi64(b, d);
}

/// All lanes load four words to the slots `to`.
ATTEST_INLINE void load_quads(u8* const (&to)[4], const Places& p, Spread spread) {
#ifdef __AVX512F__
  for (u32 half = 0; half < 2; ++half) {
    __m512i r[4];
    for (u32 j = 0; j < 4; ++j) {  // 128-bit part k of r[j] is lane j + 4k
      const u32 l = 16 * half + j;
      __m512i v = _mm512_castsi128_si512(row(address_of(p, spread, 16, l)));
      v = _mm512_inserti32x4(v, row(address_of(p, spread, 16, l + 4)), 1);
      v = _mm512_inserti32x4(v, row(address_of(p, spread, 16, l + 8)), 2);
      r[j] = _mm512_inserti32x4(v, row(address_of(p, spread, 16, l + 12)), 3);
    }
    const __m512i a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpackhi_epi32(r[0], r[1]);
    const __m512i c = _mm512_unpacklo_epi32(r[2], r[3]), d = _mm512_unpackhi_epi32(r[2], r[3]);
    _mm512_store_si512(to[0] + 64 * half, _mm512_unpacklo_epi64(a, c));
    _mm512_store_si512(to[1] + 64 * half, _mm512_unpackhi_epi64(a, c));
    _mm512_store_si512(to[2] + 64 * half, _mm512_unpacklo_epi64(b, d));
    _mm512_store_si512(to[3] + 64 * half, _mm512_unpackhi_epi64(b, d));
  }
#else
  for (u32 l = 0; l < kLanes; l += 4) {
    __m128i r[4];
    for (u32 j = 0; j < 4; ++j) r[j] = row(address_of(p, spread, 16, l + j));
    transpose(r);
    for (u32 j = 0; j < 4; ++j) _mm_store_si128(reinterpret_cast<__m128i*>(to[j] + 4 * l), r[j]);
  }
#endif
}

/// All lanes store four words, lane after lane.
ATTEST_INLINE void store_quads(const u8* const (&from)[4], const Places& p, Spread spread) {
  for (u32 l = 0; l < kLanes; l += 4) {
    __m128i r[4];
    for (u32 j = 0; j < 4; ++j)
      r[j] = _mm_load_si128(reinterpret_cast<const __m128i*>(from[j] + 4 * l));
    transpose(r);
    for (u32 j = 0; j < 4; ++j)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(address_of(p, spread, 16, l + j)), r[j]);
  }
}

/// Element i of a vector access goes to op.list[i]; a scalar one to op.d.
ATTEST_INLINE u32 part(const Op& op, u32 i) {
  return op.count == 1 ? op.d : op.list[i];
}

/// The spread is known at each call, so that the lane loops do not ask for it.
template <class E>
ATTEST_INLINE void load_spread(const Op& op, Warp& w, const Places& p, Spread spread, u32 count,
                               u32 bytes) {
  if constexpr (sizeof(E) == 4) {
    if (count == 4 && w.mask == kAllLanes) {
      u8* to[4];
      for (u32 i = 0; i < 4; ++i) to[i] = op.list[i] == kNone ? w.scratch : slot<E>(w, op.list[i]);
      load_quads(to, p, spread);
      return;
    }
  }
  // A destination may be the address register: places are already resolved, so that is safe.
  for (u32 i = 0; i < count; ++i) {
    if (part(op, i) != kNone)
      gather<E>(slot<E>(w, part(op, i)), p, spread, i * sizeof(E), bytes, w.mask);
  }
}

template <class E, Space kSpace, class A>
const Op* load(const Op& op, Warp& w) {
  Places p;
  const u32 count = op.count, bytes = u32(sizeof(E)) * count;
  const Spread spread = place<kSpace, A>(op, w, bytes, p);
  if (op.flags & kPolls) w.polled = 1;
  if (spread != Spread::fault) watch(op, w, Access::read, kSpace, p, spread, bytes);
  switch (spread) {
    case Spread::fault:
      return nullptr;
    case Spread::same:
      for (u32 i = 0; i < count; ++i) {
        if (part(op, i) == kNone) continue;
        splat<E>(slot<E>(w, part(op, i)), fetch<E>(reinterpret_cast<u64>(p.first) + i * sizeof(E)),
                 w.mask);
      }
      break;
    case Spread::consecutive:
      if (count == 1 && op.d != kNone) {
        u8* d = slot<E>(w, op.d);
        ATTEST_LANES write<E>(d, l, reinterpret_cast<const E*>(p.first)[l]);
      } else {
        load_spread<E>(op, w, p, Spread::consecutive, count, bytes);
      }
      break;
    case Spread::scattered:
      load_spread<E>(op, w, p, Spread::scattered, count, bytes);
      break;
    case Spread::offsets:
      load_spread<E>(op, w, p, Spread::offsets, count, bytes);
      break;
  }
  return &op + 1;
}

template <class E>
ATTEST_INLINE void put(u64 address, E value) {
  __builtin_memcpy(reinterpret_cast<void*>(address), &value, sizeof(E));
}

/// Where places coincide the last lane stays; which one that is, a seed decides.
template <class E>
[[gnu::noinline]] void store_reordered(const Op& op, Warp& w, const Places& p, Spread spread,
                                       u32 count, u32 bytes) {
  for (u32 n = 0; n < kLanes; ++n) {
    const u32 l = ordered_lane(w, n);
    if (((w.mask >> l) & 1) == 0) continue;
    for (u32 i = 0; i < count; ++i) {
      put<E>(address_of(p, spread, bytes, l) + i * sizeof(E), read<E>(slot<E>(w, part(op, i)), l));
    }
  }
}

/// Lanes store in order: where places coincide the last one stays.
template <class E>
ATTEST_INLINE void store_spread(const Op& op, Warp& w, const Places& p, Spread spread, u32 count,
                                u32 bytes) {
  if ((w.lane_first | w.lane_skip) != 0) [[unlikely]]
    return store_reordered<E>(op, w, p, spread, count, bytes);
  if constexpr (sizeof(E) == 4) {
    if (count == 4 && w.mask == kAllLanes) {
      const u8* from[4];
      for (u32 i = 0; i < 4; ++i) from[i] = slot<E>(w, op.list[i]);
      store_quads(from, p, spread);
      return;
    }
  }
  for (u32 i = 0; i < count; ++i) {
    const u8* value = slot<E>(w, part(op, i));
    const u64 further = i * sizeof(E);
    if (w.mask == kAllLanes) {
      for (u32 l = 0; l < kLanes; ++l)
        put<E>(address_of(p, spread, bytes, l) + further, read<E>(value, l));
    } else {
      for (u32 left = w.mask; left; left &= left - 1) {
        const u32 l = u32(__builtin_ctz(left));
        put<E>(address_of(p, spread, bytes, l) + further, read<E>(value, l));
      }
    }
  }
}

template <class E, Space kSpace, class A>
const Op* store(const Op& op, Warp& w) {
  Places p;
  const u32 count = op.count, bytes = u32(sizeof(E)) * count;
  const Spread spread = place<kSpace, A>(op, w, bytes, p);
  w.wrote = 1;
  if (spread != Spread::fault) watch(op, w, Access::write, kSpace, p, spread, bytes);
  switch (spread) {
    case Spread::fault:
      return nullptr;
    case Spread::same:
      for (u32 i = 0; i < count; ++i) {
        put<E>(reinterpret_cast<u64>(p.first) + i * sizeof(E),
               read<E>(slot<E>(w, part(op, i)), ordered_lane(w, kLanes - 1)));
      }
      break;
    case Spread::consecutive:
      if (count == 1) {
        const u8* value = slot<E>(w, op.d);
        E* to = reinterpret_cast<E*>(p.first);
        ATTEST_LANES to[l] = read<E>(value, l);
      } else {
        store_spread<E>(op, w, p, Spread::consecutive, count, bytes);
      }
      break;
    case Spread::scattered:
      store_spread<E>(op, w, p, Spread::scattered, count, bytes);
      break;
    case Spread::offsets:
      store_spread<E>(op, w, p, Spread::offsets, count, bytes);
      break;
  }
  return &op + 1;
}

template <class E>
Handler load_of(Space space, bool wide) {
  switch (space) {
    case Space::shared:
      return wide ? load<E, Space::shared, u64> : load<E, Space::shared, u32>;
    case Space::local:
      return wide ? load<E, Space::local, u64> : load<E, Space::local, u32>;
    case Space::param:
      return wide ? load<E, Space::param, u64> : load<E, Space::param, u32>;
    case Space::generic:
      return wide ? load<E, Space::generic, u64> : nullptr;
    case Space::global:
    case Space::constant:
      return wide ? load<E, Space::global, u64> : nullptr;
  }
  return nullptr;
}
template <class E>
Handler store_of(Space space, bool wide) {
  switch (space) {
    case Space::shared:
      return wide ? store<E, Space::shared, u64> : store<E, Space::shared, u32>;
    case Space::local:
      return wide ? store<E, Space::local, u64> : store<E, Space::local, u32>;
    case Space::generic:
      return wide ? store<E, Space::generic, u64> : nullptr;
    case Space::global:
      return wide ? store<E, Space::global, u64> : nullptr;
    case Space::param:
    case Space::constant:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Handler select_load(Element element, Space space, bool wide) {
  switch (element) {
    case Element::byte:
      return load_of<u8>(space, wide);
    case Element::signed_byte:
      return load_of<s8>(space, wide);
    case Element::half:
      return load_of<u16>(space, wide);
    case Element::signed_half:
      return load_of<s16>(space, wide);
    case Element::word:
      return load_of<u32>(space, wide);
    case Element::twin:
      return load_of<u64>(space, wide);
    case Element::kCount:
      break;
  }
  return nullptr;
}
Handler select_store(Element element, Space space, bool wide) {
  switch (element) {
    case Element::byte:
    case Element::signed_byte:
      return store_of<u8>(space, wide);
    case Element::half:
    case Element::signed_half:
      return store_of<u16>(space, wide);
    case Element::word:
      return store_of<u32>(space, wide);
    case Element::twin:
      return store_of<u64>(space, wide);
    case Element::kCount:
      break;
  }
  return nullptr;
}

}  // namespace attest::emulator::ATTEST_ISA
