// The race checker's usual case, a warp at a time: every earlier access to the places is known to
// the warp. Part of the code compiled once per instruction set; whatever else
// is left to racecheck.cpp, which is the definition.
#pragma once
#include "optimized/emulator/engine/checks/unit_lanes.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

#ifdef __AVX512F__

/// How the stamps of an access are reached, 16 at a time. row: the granules of all lanes follow
/// each other. quads: four granules per lane, anywhere. loose: granule j of every lane.
enum class Reached : u8 { row, quads, loose };

struct Stamps {
  u32 granules;                     // per lane
  u32 first;                        // row: of lane 0
  alignas(64) u32 granule[kLanes];  // otherwise: the first of each lane
  u32 mask;
  Stamps() {}
};

template <Reached kReached>
ATTEST_INLINE u32 vector_count(const Stamps& s) {
  return 2 * s.granules;
}

/// The lane that stamp i of vector n belongs to.
template <Reached kReached>
ATTEST_INLINE __m512i lanes_of(const Stamps& s, u32 n) {
  const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  if constexpr (kReached == Reached::row) {
    const __m512i k = _mm512_add_epi32(i, _mm512_set1_epi32(int(16 * n)));
    return _mm512_srl_epi32(k, _mm_cvtsi32_si128(__builtin_ctz(s.granules)));
  } else if constexpr (kReached == Reached::quads) {
    return _mm512_add_epi32(_mm512_srli_epi32(i, 2), _mm512_set1_epi32(int(4 * n)));
  } else {
    return _mm512_add_epi32(i, _mm512_set1_epi32(int(16 * (n & 1))));
  }
}

template <Reached kReached>
ATTEST_INLINE __mmask16 active_of(const Stamps& s, u32 n) {
  if constexpr (kReached == Reached::row) {
    return 0xffff;
  } else if constexpr (kReached == Reached::quads) {
    const u32 four = (s.mask >> (4 * n)) & 15;
    return __mmask16(((four & 1) | (four & 2) << 3 | (four & 4) << 6 | (four & 8) << 9) * 15);
  } else {
    return __mmask16(s.mask >> (16 * (n & 1)));
  }
}

template <Reached kReached>
ATTEST_INLINE __m512i load_stamps(const Stamps& s, u32 n, const Stamp* from) {
  if constexpr (kReached == Reached::row) {
    return _mm512_loadu_si512(from + s.first + 16 * n);
  } else if constexpr (kReached == Reached::quads) {
    const u32* g = s.granule + 4 * n;
    const auto quad = [&](u32 l) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + g[l]));
    };
    __m512i v = _mm512_castsi128_si512(quad(0));
    v = _mm512_inserti32x4(v, quad(1), 1);
    v = _mm512_inserti32x4(v, quad(2), 2);
    return _mm512_inserti32x4(v, quad(3), 3);
  } else {
    const __m512i at = _mm512_add_epi32(_mm512_load_si512(s.granule + 16 * (n & 1)),
                                        _mm512_set1_epi32(int(n / 2)));
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), active_of<kReached>(s, n), at, from,
                                       4);
  }
}

template <Reached kReached>
ATTEST_INLINE void store_stamps(const Stamps& s, u32 n, Stamp* to, __m512i v, __mmask16 on) {
  if constexpr (kReached == Reached::row) {
    _mm512_mask_storeu_epi32(to + s.first + 16 * n, on, v);
  } else if constexpr (kReached == Reached::quads) {
    const u32* g = s.granule + 4 * n;
    _mm_mask_storeu_epi32(to + g[0], __mmask8(on & 15), _mm512_castsi512_si128(v));
    _mm_mask_storeu_epi32(to + g[1], __mmask8((on >> 4) & 15), _mm512_extracti32x4_epi32(v, 1));
    _mm_mask_storeu_epi32(to + g[2], __mmask8((on >> 8) & 15), _mm512_extracti32x4_epi32(v, 2));
    _mm_mask_storeu_epi32(to + g[3], __mmask8((on >> 12) & 15), _mm512_extracti32x4_epi32(v, 3));
  } else {
    const __m512i at = _mm512_add_epi32(_mm512_load_si512(s.granule + 16 * (n & 1)),
                                        _mm512_set1_epi32(int(n / 2)));
    _mm512_mask_i32scatter_epi32(to, on, at, v, 4);
  }
}

template <Reached kReached>
ATTEST_INLINE void store_ops(const Stamps& s, u16* to, u16 op) {
  if constexpr (kReached == Reached::row) {
    const __m256i all = _mm256_set1_epi16(short(op));
    for (u32 i = 0; i < kLanes * s.granules; i += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + s.first + i), all);
  } else if constexpr (kReached == Reached::quads) {
    const u64 four = op * u64{0x0001000100010001};
    for (u32 left = s.mask; left; left &= left - 1)
      __builtin_memcpy(to + s.granule[__builtin_ctz(left)], &four, sizeof four);
  } else {
    for (u32 left = s.mask; left; left &= left - 1) {
      const u32 g = s.granule[__builtin_ctz(left)];
      for (u32 j = 0; j < s.granules; ++j) to[g + j] = op;
    }
  }
}

/// Stamps that are ordered before what the lanes `thread` of the warp do.
ATTEST_INLINE __mmask16 ordered(const Watching& v, __m512i stamps, __m512i thread) {
  const __mmask16 old = _mm512_cmple_epu32_mask(stamps, _mm512_set1_epi32(int(v.least)));
  if (old == 0xffff) return old;
  const __m512i warp =
      _mm512_and_si512(_mm512_srli_epi32(stamps, 5), _mm512_set1_epi32(int(kLanes - 1)));
  const __m512i known =
      _mm512_permutex2var_epi32(_mm512_load_si512(v.known), warp, _mm512_load_si512(v.known + 16));
  const __mmask16 one = _mm512_testn_epi32_mask(stamps, _mm512_set1_epi32(int(kStampSet)));
  const __m512i who =
      _mm512_and_si512(stamps, _mm512_set1_epi32(int(kStampSet | kStampMulti | kStampThread)));
  return old | _mm512_mask_cmple_epu32_mask(one, stamps, known) |
         _mm512_cmpeq_epi32_mask(who, thread);
}

/// False: something is not known to be in order, and nothing was changed.
template <Reached kReached>
ATTEST_INLINE bool race_read(const Op& op, Warp& w, const Stamps& s) {
  const Watching& v = *w.watching;
  const __m512i now = _mm512_set1_epi32(int(v.now)),
                several = _mm512_set1_epi32(int(kStampMulti | kStampLane)),
                set = _mm512_set1_epi32(int(kStampSet)), low = _mm512_set1_epi32(int(kStampThread));
  const u32 count = vector_count<kReached>(s);
  __m512i fresh[2 * 16];
  __mmask16 changes[2 * 16], alone[2 * 16];
  Stamp before = 0, after = 0;
  u32 any = 0;
  for (u32 n = 0; n < count; ++n) {
    const __mmask16 on = active_of<kReached>(s, n);
    const __m512i mine = _mm512_or_si512(now, lanes_of<kReached>(s, n));
    const __m512i thread = _mm512_and_si512(mine, low);
    const __m512i writers = load_stamps<kReached>(s, n, v.writers);
    if ((on & ~ordered(v, writers, thread)) != 0) return false;
    const __m512i readers = load_stamps<kReached>(s, n, v.readers);
    const __mmask16 replaced = ordered(v, readers, thread);
    const __mmask16 joined = on & __mmask16(~replaced);
    fresh[n] = mine;
    if (joined != 0) {
      // Readers that are not known are joined by this warp; usually all are the same ones.
      const __m512i coarse =
          _mm512_mask_or_epi32(readers, _mm512_testn_epi32_mask(readers, set), readers, several);
      if (before == 0) {
        before = Stamp(_mm512_mask_reduce_max_epu32(joined, coarse));
        after = merge_readers(w, before, v.now | kStampMulti | kStampLane, op.cache, kUnknownOp);
      }
      if (_mm512_mask_cmpneq_epi32_mask(joined, coarse, _mm512_set1_epi32(int(before))) != 0)
        return false;
      fresh[n] = _mm512_mask_mov_epi32(fresh[n], joined, _mm512_set1_epi32(int(after)));
    }
    alone[n] = on & replaced;
    changes[n] = _mm512_mask_cmpneq_epi32_mask(on, readers, fresh[n]);
    any |= changes[n];
  }
  if (any == 0) return true;
  for (u32 n = 0; n < count; ++n) store_stamps<kReached>(s, n, v.readers, fresh[n], changes[n]);
  if constexpr (kReached != Reached::row) {
    // Where lanes met at one granule, all but the last find another's stamp.
    for (u32 n = 0; n < count; ++n) {
      if (alone[n] == 0) continue;
      const __mmask16 met =
          _mm512_mask_cmpneq_epi32_mask(alone[n], load_stamps<kReached>(s, n, v.readers), fresh[n]);
      if (met != 0)
        store_stamps<kReached>(s, n, v.readers, _mm512_or_si512(fresh[n], several), met);
    }
  }
  store_ops<kReached>(s, v.reader_ops, short_op(op));
  return true;
}

template <Reached kReached>
ATTEST_INLINE bool race_write(const Op& op, Warp& w, const Stamps& s, bool& met) {
  const Watching& v = *w.watching;
  const __m512i now = _mm512_set1_epi32(int(v.now)), low = _mm512_set1_epi32(int(kStampThread));
  const u32 count = vector_count<kReached>(s);
  for (u32 n = 0; n < count; ++n) {
    const __mmask16 on = active_of<kReached>(s, n);
    const __m512i thread = _mm512_and_si512(_mm512_or_si512(now, lanes_of<kReached>(s, n)), low);
    const __m512i writers = load_stamps<kReached>(s, n, v.writers);
    const __m512i readers = load_stamps<kReached>(s, n, v.readers);
    if ((on & ~(ordered(v, writers, thread) & ordered(v, readers, thread))) != 0) return false;
  }
  for (u32 n = 0; n < count; ++n) {
    const __mmask16 on = active_of<kReached>(s, n);
    store_stamps<kReached>(s, n, v.writers, _mm512_or_si512(now, lanes_of<kReached>(s, n)), on);
    store_stamps<kReached>(s, n, v.readers, _mm512_setzero_si512(), on);
  }
  met = false;
  if constexpr (kReached != Reached::row) {
    for (u32 n = 0; n < count; ++n) {
      const __m512i mine = _mm512_or_si512(now, lanes_of<kReached>(s, n));
      met |= _mm512_mask_cmpneq_epi32_mask(active_of<kReached>(s, n),
                                           load_stamps<kReached>(s, n, v.writers), mine) != 0;
    }
  }
  store_ops<kReached>(s, v.writer_ops, short_op(op));
  return true;
}

/// All lanes at one place.
ATTEST_INLINE bool race_read_same(const Op& op, Warp& w, u32 first, u32 granules) {
  const Watching& v = *w.watching;
  const u32 lane = u32(__builtin_ctz(w.mask));
  const bool alone = (w.mask & (w.mask - 1)) == 0;
  const Stamp several = v.now | kStampMulti | kStampLane;
  const Stamp mine = alone ? v.now | lane : several;
  for (u32 g = first; g < first + granules; ++g) {
    if (!is_known(v, v.writers[g], mine)) return false;
  }
  for (u32 g = first; g < first + granules; ++g) {
    const Stamp s = v.readers[g];
    if (s == mine) continue;
    const Stamp coarse = s & kStampSet ? s : s | kStampMulti | kStampLane;
    v.readers[g] =
        is_known(v, s, mine) ? mine : merge_readers(w, coarse, several, op.cache, v.reader_ops[g]);
    v.reader_ops[g] = short_op(op);
  }
  return true;
}

template <Reached kReached>
ATTEST_INLINE bool race_stamps(const Op& op, Warp& w, Access access, const Stamps& s, bool& met) {
  return access == Access::read ? race_read<kReached>(op, w, s)
                                : race_write<kReached>(op, w, s, met);
}

/// True when the access was found in order and has been remembered. met: lanes of a store wrote to
/// one granule.
ATTEST_INLINE bool race_shared(const Op& op, Warp& w, Access access, const Places& p, Spread spread,
                               u32 bytes, bool& met) {
  const Watching& v = *w.watching;
  const u32 shift = v.granule_shift, granules = bytes >> shift;
  if (granules == 0 || granules > 16) return false;
  const u32 first = u32(reinterpret_cast<u64>(p.first) - reinterpret_cast<u64>(w.shared)) >> shift;
  if (spread == Spread::same)
    return access == Access::read && race_read_same(op, w, first, granules);
  Stamps s;
  s.granules = granules, s.mask = w.mask, s.first = first;
  if (spread == Spread::consecutive) return race_stamps<Reached::row>(op, w, access, s, met);
  if (spread != Spread::offsets) return false;
  // Lanes that do not take part point at granule 0, which is then neither judged nor changed.
  for (u32 i = 0; i < 2; ++i) {
    const __m512i g =
        _mm512_maskz_srl_epi32(__mmask16(w.mask >> (16 * i)), _mm512_load_si512(p.offset + 16 * i),
                               _mm_cvtsi32_si128(int(shift)));
    _mm512_store_si512(s.granule + 16 * i, g);
  }
  return granules == 4 ? race_stamps<Reached::quads>(op, w, access, s, met)
                       : race_stamps<Reached::loose>(op, w, access, s, met);
}

#endif

/// The granules that the lanes touch have stamps of their own from now on.
ATTEST_INLINE void settle_units(Warp& w, const Places& p, Spread spread, u32 bytes) {
  const u64 shared = reinterpret_cast<u64>(w.shared);
  if (spread == Spread::same || spread == Spread::consecutive) {
    const u64 first = reinterpret_cast<u64>(p.first) - shared;
    const u64 last = first + bytes * (spread == Spread::same ? 1 : kLanes) - 1;
    for (u64 unit = first >> kUnitShift; unit <= last >> kUnitShift; ++unit)
      settle_unit(*w.watching, u32(unit));
    return;
  }
  for (u32 left = w.mask; left; left &= left - 1) {
    const u64 first = address_of(p, spread, bytes, u32(__builtin_ctz(left))) - shared;
    for (u64 unit = first >> kUnitShift; unit <= (first + bytes - 1) >> kUnitShift; ++unit)
      settle_unit(*w.watching, u32(unit));
  }
}

/// `units`: of accesses to shared memory that move whole units, or nullptr.
ATTEST_INLINE void race_access(const Op& op, Warp& w, Access access, Space space, const Places& p,
                               Spread spread, u32 bytes, const UnitAccess* units) {
  const u8 flags = memory_flags(op);
  bool known = false, met = false;
  if (space == Space::shared && w.watching->together && access != Access::update &&
      !(flags & kStrong)) {
    if (units != nullptr && race_units(op, w, access, *units)) return;
#ifdef __AVX512F__
    settle_units(w, p, spread, bytes);
    known = race_shared(op, w, access, p, spread, bytes, met);
#endif
  }
  if (known && !met) return;
  alignas(64) u64 at[kLanes];
  for (u32 l = 0; l < kLanes; ++l) at[l] = address_of(p, spread, bytes, l);
  if (known)
    race_within(op, w, at, bytes);
  else if (space == Space::global && !(flags & (kStrong | kReleases | kAcquires)))
    race_far(op, w, w.mask, access, at, bytes, flags);
  else
    race_lanes(op, w, access, at, bytes, flags);
}

}  // namespace attest::emulator::ATTEST_ISA
