// Accesses of a warp to whole units of shared memory, sixteen aligned bytes per lane: which units
// there are, and the checkers' usual case in them. Part of the code compiled once per instruction
// set; one unit at a time is in units.hpp, and whatever is not in order is left to racecheck.cpp.
#pragma once
#include "optimized/emulator/engine/checks/units.hpp"
#include "optimized/emulator/engine/watch.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

/// The units that the lanes touch, mostly once each, and what a lane leaves in it when races are
/// checked. Lanes often have the unit of the lane before or of the eighth before (rows of eight).
struct UnitAccess {
  u32 count = 0;
  bool shared = false;               // by several lanes, some of them
  alignas(64) u32 unit[kLanes + 1];  // one more for room
  alignas(64) Stamp mine[kLanes + 1];
  UnitAccess() {}
};

/// Lanes whose place is that of the lane before, or of the eighth before.
ATTEST_INLINE u32 repeated(const u32* offset, u32 distance) {
  u32 lanes = 0;
#ifdef __AVX512F__
  const __m512i low = _mm512_load_si512(offset), high = _mm512_load_si512(offset + 16);
  const __m512i low_before =
      distance == 1 ? _mm512_alignr_epi32(low, low, 15) : _mm512_alignr_epi32(low, low, 8);
  const __m512i high_before =
      distance == 1 ? _mm512_alignr_epi32(high, low, 15) : _mm512_alignr_epi32(high, low, 8);
  lanes = _mm512_cmpeq_epi32_mask(low, low_before) | u32(_mm512_cmpeq_epi32_mask(high, high_before))
                                                         << 16;
#else
  for (u32 l = distance; l < kLanes; ++l) lanes |= u32(offset[l] == offset[l - distance]) << l;
#endif
  return lanes;
}

ATTEST_INLINE void find_units(const Warp& w, const Places& p, Spread spread, Stamp now,
                              UnitAccess& a) {
  const u32 first = u32(reinterpret_cast<u64>(p.first) - reinterpret_cast<u64>(w.shared));
  const u32 lane = u32(__builtin_ctz(w.mask));
  constexpr Stamp kSeveral = kStampMulti | kStampLane;
  if (spread == Spread::same) {
    a.count = 1, a.shared = (w.mask & (w.mask - 1)) != 0;
    a.unit[0] = first >> kUnitShift, a.mine[0] = now | (a.shared ? kSeveral : lane);
    return;
  }
  if (spread == Spread::consecutive) {
    a.count = kLanes;
    for (u32 l = 0; l < kLanes; ++l) a.unit[l] = (first >> kUnitShift) + l, a.mine[l] = now | l;
    return;
  }
  const u32 by_one = repeated(p.offset, 1) & w.mask & (w.mask << 1),
            by_eight = repeated(p.offset, 8) & w.mask & (w.mask << 8);
  const u32 lanes = w.mask & ~(by_one | by_eight), several = lanes & (by_one >> 1 | by_eight >> 8);
  a.shared = several != 0;
#ifdef __AVX512F__
  const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (u32 half = 0; half < 2; ++half) {
    const __mmask16 on = __mmask16(lanes >> (16 * half));
    const __m512i l = _mm512_add_epi32(i, _mm512_set1_epi32(int(16 * half)));
    const __m512i who = _mm512_mask_mov_epi32(l, __mmask16(several >> (16 * half)),
                                              _mm512_set1_epi32(int(kSeveral)));
    const __m512i unit = _mm512_srli_epi32(_mm512_load_si512(p.offset + 16 * half), kUnitShift);
    _mm512_mask_compressstoreu_epi32(a.unit + a.count, on, unit);
    _mm512_mask_compressstoreu_epi32(a.mine + a.count, on,
                                     _mm512_or_si512(who, _mm512_set1_epi32(int(now))));
    a.count += u32(__builtin_popcount(on));
  }
#else
  for (u32 left = lanes; left; left &= left - 1, ++a.count) {
    const u32 l = u32(__builtin_ctz(left));
    a.unit[a.count] = p.offset[l] >> kUnitShift;
    a.mine[a.count] = now | ((several >> l) & 1 ? kSeveral : l);
  }
#endif
}

/// Whether all bytes of the units were written.
ATTEST_INLINE bool units_written(const u8* bits, const UnitAccess& a) {
  u32 i = 0;
#ifdef __AVX512F__
  constexpr u32 kFew = 8;  // no quicker at once
  for (; a.count - i > kFew; i += 16) {
    const __mmask16 on = __mmask16(a.count - i >= 16 ? 0xffff : (1u << (a.count - i)) - 1);
    const __m512i all = _mm512_set1_epi32(0xffff), unit = _mm512_loadu_si512(a.unit + i);
    const __m512i words = _mm512_mask_i32gather_epi32(all, on, unit, bits, 2);
    if (_mm512_mask_cmpneq_epi32_mask(on, _mm512_and_si512(words, all), all) != 0) return false;
    if (a.count - i <= 16) return true;
  }
#endif
  u16 both = 0xffff;
  for (; i < a.count; ++i) {
    u16 word;
    __builtin_memcpy(&word, bits + a.unit[i] * sizeof word, sizeof word);
    both &= word;
  }
  return both == 0xffff;
}

ATTEST_INLINE void put_units_written(u8* bits, const UnitAccess& a) {
  for (u32 i = 0; i < a.count; ++i)
    __builtin_memset(bits + a.unit[i] * (kUnitBytes / 8), 0xff, kUnitBytes / 8);
}

#ifdef __AVX512F__

/// Four units as one vector: writer, reader and their operations of each.
ATTEST_INLINE __m512i load_four(const Unit* units, const u32* unit) {
  const auto one = [&](u32 i) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(units + unit[i]));
  };
  __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(one(0)), one(1), 1);
  v = _mm512_inserti32x4(v, one(2), 2);
  return _mm512_inserti32x4(v, one(3), 3);
}
ATTEST_INLINE void store_four(Unit* units, const u32* unit, __m512i v) {
  const auto at = [&](u32 i) { return reinterpret_cast<__m128i*>(units + unit[i]); };
  _mm_store_si128(at(0), _mm512_castsi512_si128(v));
  _mm_store_si128(at(1), _mm512_extracti32x4_epi32(v, 1));
  _mm_store_si128(at(2), _mm512_extracti32x4_epi32(v, 2));
  _mm_store_si128(at(3), _mm512_extracti32x4_epi32(v, 3));
}
constexpr __mmask16 kWriters = 0x1111, kReaders = 0x2222, kWriterOps = 0x4444, kReaderOps = 0x8888;

/// Whether two of four units are the same one.
ATTEST_INLINE bool meet(const u32* unit) {
  const __m128i u = _mm_loadu_si128(reinterpret_cast<const __m128i*>(unit));
  const __m128i next = _mm_cmpeq_epi32(u, _mm_shuffle_epi32(u, _MM_SHUFFLE(0, 3, 2, 1))),
                over = _mm_cmpeq_epi32(u, _mm_shuffle_epi32(u, _MM_SHUFFLE(1, 0, 3, 2)));
  return _mm_movemask_epi8(_mm_or_si128(next, over)) != 0;
}

/// read_unit and write_unit of four units, in their usual cases. False: nothing was changed.
ATTEST_INLINE bool read_four(const Watching& v, const UnitAccess& a, u32 i, u32 op) {
  __m512i units = load_four(v.units, a.unit + i);
  const __mmask16 old = _mm512_cmple_epu32_mask(units, _mm512_set1_epi32(int(v.least)));
  if ((old & kWriters) != kWriters || meet(a.unit + i)) return false;
  __m512i fresh = _mm512_maskz_expandloadu_epi32(kReaders, a.mine + i);
  const __mmask16 late = __mmask16(~old & kReaders);
  if (late != 0) {
    const __m512i both = _mm512_set1_epi32(int(v.others_and_own));
    const __mmask16 one = _mm512_testn_epi32_mask(units, _mm512_set1_epi32(int(kStampSet)));
    const __m512i warps =
        _mm512_mask_or_epi32(units, one, units, _mm512_set1_epi32(int(kStampMulti | kStampLane)));
    const __mmask16 joined =
        late & (_mm512_cmpeq_epi32_mask(warps, _mm512_set1_epi32(int(v.others))) |
                _mm512_cmpeq_epi32_mask(units, both));
    if ((late & ~(joined | _mm512_cmpeq_epi32_mask(units, fresh))) != 0) return false;
    fresh = _mm512_mask_mov_epi32(fresh, joined, both);
  }
  units = _mm512_mask_mov_epi32(units, kReaders, fresh);
  store_four(v.units, a.unit + i, _mm512_mask_set1_epi32(units, kReaderOps, int(op)));
  return true;
}
ATTEST_INLINE bool write_four(const Watching& v, const UnitAccess& a, u32 i, u32 op) {
  const __m512i units = load_four(v.units, a.unit + i);
  const __mmask16 old = _mm512_cmple_epu32_mask(units, _mm512_set1_epi32(int(v.least)));
  if ((old & (kWriters | kReaders)) != (kWriters | kReaders) || meet(a.unit + i)) return false;
  const __m512i fresh = _mm512_maskz_expandloadu_epi32(kWriters, a.mine + i);
  store_four(v.units, a.unit + i, _mm512_mask_set1_epi32(fresh, kWriterOps, int(op)));
  return true;
}

#endif

/// True when the access was found in order and has been remembered.
ATTEST_INLINE bool race_units(const Op& op, Warp& w, Access access, const UnitAccess& a) {
  if (access == Access::write && a.shared) return false;
#ifdef __AVX512F__
  const Watching& v = *w.watching;
  const u32 name = short_op(op);
#endif
  u32 i = 0;
  while (i < a.count) {
#ifdef __AVX512F__
    if (a.count - i >= 4 &&
        (access == Access::read ? read_four(v, a, i, name) : write_four(v, a, i, name))) {
      i += 4;
      continue;
    }
#endif
    for (const u32 end = a.count - i < 4 ? a.count : i + 4; i < end; ++i) {
      if (!(access == Access::read ? read_unit(op, w, a.unit[i], a.mine[i])
                                   : write_unit(op, w, a.unit[i], a.mine[i])))
        return false;
    }
  }
  return true;
}

}  // namespace attest::emulator::ATTEST_ISA
