// What looks at every access to memory after its addresses were found good and before data moves:
// the checkers and the counters. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/lanes.hpp"

namespace attest::emulator::ATTEST_ISA {

/// Shows an access of `bytes` bytes per lane of warp.mask to whatever is on. `space` is what the
/// instruction says; generic and global addresses are host addresses already.
void watch_access(const Op& op, Warp& w, Access access, Space space, const Places& p, Spread spread,
                  u32 bytes);

/// Counts it (kWatchCount): bytes, sectors, passes.
void count_access(const Op& op, Warp& w, Access access, Space space, const Places& p, Spread spread,
                  u32 bytes);

ATTEST_INLINE void watch(const Op& op, Warp& w, Access access, Space space, const Places& p,
                         Spread spread, u32 bytes) {
  if (w.watch != 0) [[unlikely]]
    watch_access(op, w, access, space, p, spread, bytes);
}

/// The host address of a lane's place.
ATTEST_INLINE u64 address_of(const Places& p, Spread spread, u32 bytes, u32 l) {
  switch (spread) {
    case Spread::same:
      return reinterpret_cast<u64>(p.first);
    case Spread::consecutive:
      return reinterpret_cast<u64>(p.first) + l * bytes;
    case Spread::offsets:
      return reinterpret_cast<u64>(p.first) + p.offset[l];
    default:
      return p.at[l];
  }
}

}  // namespace attest::emulator::ATTEST_ISA
