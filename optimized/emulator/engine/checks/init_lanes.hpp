// The initialisation checker's usual case, a warp at a time: all bytes that are read were written.
// Part of the code compiled once per instruction set; whatever else is left to initcheck.cpp.
#pragma once
#include "optimized/emulator/engine/checks/unit_lanes.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

ATTEST_INLINE bool all_written(const u8* bits, u64 at, u32 count) {
  for (; count >= 32 && at % 8 == 0; count -= 32, at += 32) {
    u32 word;
    __builtin_memcpy(&word, bits + at / 8, sizeof word);
    if (word != ~0u) return false;
  }
  while (count != 0) {
    const u32 part = count < 24 ? count : 24;
    u32 word;
    __builtin_memcpy(&word, bits + at / 8, sizeof word);
    const u32 mask = (1u << part) - 1;
    if (((word >> (at % 8)) & mask) != mask) return false;
    count -= part, at += part;
  }
  return true;
}

/// Whether the bytes at every lane's offset were written; at most 16 each.
ATTEST_INLINE bool all_lanes_written(const u8* bits, const u32* offset, u32 bytes, u32 lanes) {
  const u32 wanted = (1u << bytes) - 1;
#ifdef __AVX512F__
  const __m512i all = _mm512_set1_epi32(int(wanted));
  u32 bad = 0;
  for (u32 i = 0; i < 2; ++i) {
    const __mmask16 on = __mmask16(lanes >> (16 * i));
    const __m512i at = _mm512_load_si512(offset + 16 * i);
    const __m512i words = _mm512_mask_i32gather_epi32(all, on, _mm512_srli_epi32(at, 3), bits, 1);
    const __m512i shift = _mm512_and_si512(at, _mm512_set1_epi32(7));
    const __m512i found = _mm512_and_si512(_mm512_srlv_epi32(words, shift), all);
    bad |= _mm512_mask_cmpneq_epi32_mask(on, found, all);
  }
  return bad == 0;
#else
  for (u32 left = lanes; left; left &= left - 1) {
    const u32 at = offset[__builtin_ctz(left)];
    u32 word;
    __builtin_memcpy(&word, bits + at / 8, sizeof word);
    if (((word >> (at % 8)) & wanted) != wanted) return false;
  }
  return true;
#endif
}

/// Whole bytes of bits are set plainly; parts of one atomically, since other host threads may set
/// its other bits.
ATTEST_INLINE void set_written(u8* bits, u64 at, u32 count) {
  if (at % 8 == 0 && count % 8 == 0) {
    __builtin_memset(bits + at / 8, 0xff, count / 8);
    return;
  }
  for (; count != 0;) {
    const u32 part = 8 - u32(at % 8) < count ? 8 - u32(at % 8) : count;
    const u8 mask = u8(((1u << part) - 1) << (at % 8));
    __atomic_fetch_or(bits + at / 8, mask, __ATOMIC_RELAXED);
    count -= part, at += part;
  }
}

/// Bits and offsets of an access that lies wholly in one stretch of memory.
struct Stretch {
  u8* bits = nullptr;
  u64 first = 0;                      // offset of lane 0, when same or consecutive
  const u32* offset = nullptr;        // otherwise, by lane
  alignas(64) u32 room[kLanes];       // for those
  bool known = false, whole = false;  // whole: all of it was written
  Stretch() {}
};

ATTEST_INLINE void find_stretch(const Op& op, const Warp& w, Space space, const Places& p,
                                Spread spread, u32 bytes, Stretch& s) {
  const Watching& v = *w.watching;
  const bool together = spread == Spread::same || spread == Spread::consecutive;
  u64 base = 0;
  u64 size = ~u64{0} >> 32;
  if (space == Space::shared) {
    base = reinterpret_cast<u64>(w.shared), s.bits = v.shared_bits;
  } else if (space == Space::local) {
    base = v.local_begin, s.bits = v.local_bits;
  } else {
    const Region& r = v.regions[op.cache];
    base = r.begin, s.bits = r.bits, size = r.bytes;
    s.whole = r.bits == nullptr;
  }
  if (together) {
    s.first = reinterpret_cast<u64>(p.first) - base;
    const u64 span = spread == Spread::same ? bytes : u64(kLanes) * bytes;
    s.known = s.first < size && span <= size - s.first;
    return;
  }
  if (space == Space::shared && spread == Spread::offsets) {
    s.offset = p.offset;  // from the beginning of shared memory, and within
    s.known = true;
    return;
  }
  s.offset = s.room;
  u64 outside = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 at = address_of(p, spread, bytes, l) - base;
    outside |= u64(at >= size) | at >> 32;
    s.room[l] = u32(at);
  }
  s.known = outside == 0;
}

ATTEST_INLINE bool is_written(const Warp& w, const Stretch& s, Spread spread, u32 bytes) {
  if (s.whole) return true;
  if (spread == Spread::same) return all_written(s.bits, s.first, bytes);
  if (spread == Spread::consecutive) return all_written(s.bits, s.first, bytes * kLanes);
  return all_lanes_written(s.bits, s.offset, bytes, w.mask);
}

ATTEST_INLINE void put_written(const Warp& w, Stretch& s, Spread spread, u32 bytes) {
  if (spread == Spread::same) return set_written(s.bits, s.first, bytes);
  if (spread == Spread::consecutive) return set_written(s.bits, s.first, bytes * kLanes);
  for (u32 left = w.mask; left; left &= left - 1)
    set_written(s.bits, s.offset[__builtin_ctz(left)], bytes);
}

/// `units`: of accesses to shared memory that move whole units, or nullptr.
ATTEST_INLINE void init_access(const Op& op, Warp& w, Access access, Space space, const Places& p,
                               Spread spread, u32 bytes, const UnitAccess* units) {
  const u8 flags = memory_flags(op);
  if (access == Access::read && (flags & kUnjudged)) return;
  u32 carried_whole = w.mask;
  Carried* const carried = w.watching->carried;
  if ((flags & kCarries) && access == Access::write) {
    for (u32 i = 0; i < op.count; ++i) {
      const u32 number = op.list[op.count + i];
      if (number != kNone) carried_whole &= carried[number].whole;
    }
  }
  if (access == Access::write && w.watching->hollow != 0) carried_whole = 0;
  Stretch s;
  bool good = bytes <= 16 && carried_whole == w.mask;
  if (good && units != nullptr) {
    good = units_written(w.watching->shared_bits, *units);
    if (!good && access == Access::write) {
      put_units_written(w.watching->shared_bits, *units);
      good = true;
    }
  } else if (good) {
    find_stretch(op, w, space, p, spread, bytes, s);
    good = s.known && is_written(w, s, spread, bytes);
    if (s.known && !good && access == Access::write) {
      put_written(w, s, spread, bytes);
      good = true;
    }
  }
  if (!good) {
    alignas(64) u64 at[kLanes];
    for (u32 l = 0; l < kLanes; ++l) at[l] = address_of(p, spread, bytes, l);
    init_lanes(op, w, access, space, at, bytes);
    return;
  }
  if ((flags & kCarries) && access == Access::read) {
    for (u32 i = 0; i < op.count; ++i) {
      const u32 number = op.list[op.count + i];
      if (number != kNone) carried[number].whole |= w.mask;
    }
  }
}

}  // namespace attest::emulator::ATTEST_ISA
