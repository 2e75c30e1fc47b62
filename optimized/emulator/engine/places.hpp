// Where the lanes of a memory operation point: classifies addresses as one place, consecutive
// places or scattered ones, and checks them against the bounds of the space, all at once when the
// usual case holds. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/isa.hpp"
#include "optimized/emulator/engine/lanes.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {

/// same: every lane has the address of lane 0. consecutive: lane l is l * bytes further.
template <class A>
ATTEST_INLINE Spread spread_of(const A* a, u32 bytes) {
#ifdef __AVX512F__
  if constexpr (sizeof(A) == 4) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first = _mm512_set1_epi32(int(a[0])), step = _mm512_set1_epi32(int(bytes));
    const __m512i low = _mm512_sub_epi32(_mm512_loadu_si512(a), first);
    const __m512i high = _mm512_sub_epi32(_mm512_loadu_si512(a + 16), first);
    if ((_mm512_test_epi32_mask(low, low) | _mm512_test_epi32_mask(high, high)) == 0)
      return Spread::same;
    const __m512i wanted = _mm512_mullo_epi32(lanes, step);
    const __m512i further = _mm512_add_epi32(wanted, _mm512_slli_epi32(step, 4));
    const bool gaps =
        (_mm512_cmpneq_epi32_mask(low, wanted) | _mm512_cmpneq_epi32_mask(high, further)) != 0;
    return gaps ? Spread::scattered : Spread::consecutive;
  }
#endif
  A differs = 0, gaps = 0;
  const A first = a[0];
  ATTEST_LANES {
    const A distance = a[l] - first;
    differs |= distance;
    gaps |= distance ^ A(l * bytes);
  }
  return differs == 0 ? Spread::same : gaps == 0 ? Spread::consecutive : Spread::scattered;
}

/// All ones where the lane executes.
template <class A>
ATTEST_INLINE A lane_on(u32 mask, unsigned l) {
  return A(0) - A((mask >> l) & 1);
}

/// Global and generic addresses: against the allocation this operation touched last.
template <class A>
ATTEST_INLINE Spread place_global(const Op& op, Warp& w, u32 bytes, Space space, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  const Interval near = w.intervals[op.cache];
  const u64 offset = u64(op.immediate);
  const u64 low = near.low, count = near.count;
  if (w.mask == kAllLanes) {
    const Spread spread = spread_of<A>(a, bytes);
    if (spread != Spread::scattered) {
      const u64 first = a[0] + offset;
      const u64 span = spread == Spread::same ? 0 : u64(kLanes - 1) * bytes;
      if (first - low < count && first - low + span < count && (first & (bytes - 1)) == 0) {
        p.first = reinterpret_cast<u8*>(first);
        return spread;
      }
    }
  }
  u64 outside = 0, misaligned = 0;
  const u32 mask = w.mask;
  ATTEST_LANES {
    const u64 address = a[l] + offset;
    p.at[l] = address;
    const u64 on = lane_on<u64>(mask, l);
    outside |= (address - low < count ? 0 : ~u64{0}) & on;
    misaligned |= address & on;
  }
  if (outside == 0 && (misaligned & (bytes - 1)) == 0) return Spread::scattered;
  return find_places(op, w, p.at, bytes, space) ? Spread::scattered : Spread::fault;
}

/// Shared offsets: against the shared memory of this launch.
template <class A>
ATTEST_INLINE Spread place_shared(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  const A offset = A(op.immediate);
  const u64 count = w.shared_bytes >= bytes ? w.shared_bytes - bytes + 1 : 0;
  if (w.mask == kAllLanes) {
    const Spread spread = spread_of<A>(a, bytes);
    if (spread != Spread::scattered) {
      const u64 first = A(a[0] + offset);
      const u64 span = spread == Spread::same ? 0 : u64(kLanes - 1) * bytes;
      if (first < count && first + span < count && (first & (bytes - 1)) == 0) {
        p.first = w.shared + first;
        return spread;
      }
    }
  }
  // Offsets beyond 32 bits are outside whatever their low half says.
  A outside = 0, together = 0;
  const u32 mask = w.mask;
  const A limit = A(count);
  ATTEST_LANES {
    const A place = A(a[l] + offset), on = lane_on<A>(mask, l);
    p.offset[l] = u32(place);
    outside |= (place < limit ? A(0) : A(~A(0))) & on;
    together |= place & on;
  }
  p.first = w.shared;
  if (outside == 0 && (together & (bytes - 1)) == 0) return Spread::offsets;
  for (u32 left = mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 place = A(a[l] + offset);
    if (place >= count || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::shared);
      break;
    }
  }
  return Spread::fault;
}

/// Local offsets: each lane has a stretch of its own.
template <class A>
ATTEST_INLINE Spread place_local(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 place = A(a[l] + A(op.immediate));
    if (place > w.local_stride || w.local_stride - place < bytes || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::local);
      return Spread::fault;
    }
    p.at[l] = reinterpret_cast<u64>(w.local) + l * w.local_stride + place;
  }
  return Spread::scattered;
}

/// Kernel parameters: offsets into the launch's parameter block, or addresses in its window.
template <class A>
ATTEST_INLINE Spread place_param(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  if (op.a & 1) {  // a name: the decoder has made it a constant
    const u64 place = u64(a[0]) + u64(op.immediate);
    if (place + bytes <= w.parameter_bytes && (place & (bytes - 1)) == 0) {
      p.first = const_cast<u8*>(w.parameters) + place;
      return Spread::same;
    }
  }
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u64 place = A(a[l] + A(op.immediate));
    if (sizeof(A) == 8 && place >= kParamWindow) place -= kParamWindow;
    if (place > w.parameter_bytes || w.parameter_bytes - place < bytes || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::param);
      return Spread::fault;
    }
    p.at[l] = reinterpret_cast<u64>(w.parameters) + place;
  }
  return Spread::scattered;
}

template <Space kSpace, class A>
ATTEST_INLINE Spread place(const Op& op, Warp& w, u32 bytes, Places& p) {
  if constexpr (kSpace == Space::shared)
    return place_shared<A>(op, w, bytes, p);
  else if constexpr (kSpace == Space::local)
    return place_local<A>(op, w, bytes, p);
  else if constexpr (kSpace == Space::param)
    return place_param<A>(op, w, bytes, p);
  else
    return place_global<A>(op, w, bytes, kSpace, p);
}

}  // namespace attest::emulator::ATTEST_ISA
