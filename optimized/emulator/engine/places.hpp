// Where the lanes of a memory operation point: classifies addresses as one place, consecutive
// places or scattered ones, and checks them against the bounds of the space, all at once when the
// usual case holds. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/isa.hpp"
#include "optimized/emulator/engine/lanes.hpp"

namespace attest::emulator::ATTEST_ISA {

/// same, consecutive: `first` is lane 0's place. scattered: `at` has every lane's. offsets: lane
/// l's place is first + offset[l].
enum class Shape : u8 { same, consecutive, scattered, offsets, fault };

struct Places {
  u8* first = nullptr;
  union {
    alignas(64) u64 at[kLanes];
    alignas(64) u32 offset[kLanes];
  };
  Places() {}
};

/// same: every lane has the address of lane 0. consecutive: lane l is l * bytes further.
template <class A>
ATTEST_INLINE Shape shape_of(const A* a, u32 bytes) {
  A differs = 0, gaps = 0;
  const A first = a[0];
  ATTEST_LANES {
    const A distance = a[l] - first;
    differs |= distance;
    gaps |= distance ^ A(l * bytes);
  }
  return differs == 0 ? Shape::same : gaps == 0 ? Shape::consecutive : Shape::scattered;
}

/// Global and generic addresses: against the allocation this operation touched last.
template <class A>
ATTEST_INLINE Shape place_global(const Op& op, Warp& w, u32 bytes, Space space, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  const Interval near = w.intervals[op.cache];
  const u64 offset = u64(op.immediate);
  const u64 low = near.low, count = near.count;
  if (w.mask == kAllLanes) {
    const Shape shape = shape_of<A>(a, bytes);
    if (shape != Shape::scattered) {
      const u64 first = a[0] + offset;
      const u64 span = shape == Shape::same ? 0 : u64(kLanes - 1) * bytes;
      if (first - low < count && first - low + span < count && (first & (bytes - 1)) == 0) {
        p.first = reinterpret_cast<u8*>(first);
        return shape;
      }
    }
  }
  u64 outside = 0, misaligned = 0;
  const u32 mask = w.mask;
  ATTEST_LANES {
    const u64 address = a[l] + offset;
    p.at[l] = address;
    const u64 on = (mask >> l) & 1 ? ~u64{0} : 0;
    outside |= (address - low < count ? 0 : ~u64{0}) & on;
    misaligned |= address & on;
  }
  if (outside == 0 && (misaligned & (bytes - 1)) == 0) return Shape::scattered;
  return find_places(op, w, p.at, bytes, space) ? Shape::scattered : Shape::fault;
}

/// Shared offsets: against the shared memory of this launch.
template <class A>
ATTEST_INLINE Shape place_shared(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  const A offset = A(op.immediate);
  const u64 count = w.shared_bytes >= bytes ? w.shared_bytes - bytes + 1 : 0;
  if (w.mask == kAllLanes) {
    const Shape shape = shape_of<A>(a, bytes);
    if (shape != Shape::scattered) {
      const u64 first = A(a[0] + offset);
      const u64 span = shape == Shape::same ? 0 : u64(kLanes - 1) * bytes;
      if (first < count && first + span < count && (first & (bytes - 1)) == 0) {
        p.first = w.shared + first;
        return shape;
      }
    }
  }
  // Offsets beyond 32 bits are outside whatever their low half says.
  u32 outside = 0;
  A together = 0;
  const u32 mask = w.mask;
  const A limit = A(count);
  ATTEST_LANES {
    const A place = A(a[l] + offset);
    p.offset[l] = u32(place);
    const bool on = (mask >> l) & 1;
    outside |= on && !(place < limit) ? 1 : 0;
    together |= on ? place : A(0);
  }
  p.first = w.shared;
  if (outside == 0 && (together & (bytes - 1)) == 0) return Shape::offsets;
  for (u32 left = mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 place = A(a[l] + offset);
    if (place >= count || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::shared);
      break;
    }
  }
  return Shape::fault;
}

/// Local offsets: each lane has a stretch of its own.
template <class A>
ATTEST_INLINE Shape place_local(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 place = A(a[l] + A(op.immediate));
    if (place > w.local_stride || w.local_stride - place < bytes || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::local);
      return Shape::fault;
    }
    p.at[l] = reinterpret_cast<u64>(w.local) + l * w.local_stride + place;
  }
  return Shape::scattered;
}

/// Kernel parameters: offsets into the launch's parameter block, or addresses in its window.
template <class A>
ATTEST_INLINE Shape place_param(const Op& op, Warp& w, u32 bytes, Places& p) {
  const A* a = reinterpret_cast<const A*>(slot<A>(w, op.a));
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u64 place = A(a[l] + A(op.immediate));
    if (sizeof(A) == 8 && place >= kParamWindow) place -= kParamWindow;
    if (place > w.parameter_bytes || w.parameter_bytes - place < bytes || (place & (bytes - 1))) {
      fault_place(op, w, l, place, bytes, Space::param);
      return Shape::fault;
    }
    p.at[l] = reinterpret_cast<u64>(w.parameters) + place;
  }
  return Shape::scattered;
}

template <Space kSpace, class A>
ATTEST_INLINE Shape place(const Op& op, Warp& w, u32 bytes, Places& p) {
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
