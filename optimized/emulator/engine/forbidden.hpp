// Compares an access with what asynchronous copies and mbarriers forbid for now, and passes by
// quickly when it is elsewhere. Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::ATTEST_ISA {

ATTEST_INLINE void watch_forbidden(const Op& op, Warp& w, Access access, Space space,
                                   const Places& p, Spread spread, u32 bytes) {
  const bool writes = access != Access::read;
  if (space == Space::local || space == Space::param || space == Space::constant) return;
  if (space == Space::global && !writes) return;
  const Forbidden& f = *w.forbidden;
  const u64 shared = reinterpret_cast<u64>(w.shared);
  const u64 source_high = writes ? f.source_high : 0;
  if (space == Space::shared && spread == Spread::offsets) {
    u32 near = 0;
    const u32 mask = w.mask;
    ATTEST_LANES {
      const u32 begin = p.offset[l], end = begin + bytes;
      near |= ((u32(begin < f.high[0]) & u32(end > f.low[0])) |
               (u32(begin < f.high[1]) & u32(end > f.low[1]))) &
              (mask >> l);
    }
    if ((near & 1) == 0) return;
  }
  alignas(64) u64 at[kLanes];
  for (u32 l = 0; l < kLanes; ++l) at[l] = address_of(p, spread, bytes, l);
  u64 near = 0;
  const u32 mask = w.mask;
  ATTEST_LANES {
    const u64 begin = at[l] - shared, end = begin + bytes;
    const u64 meets = u64(begin < f.high[0] && end > f.low[0]) |
                      u64(begin < f.high[1] && end > f.low[1]) |
                      u64(at[l] < source_high && at[l] + bytes > f.source_low);
    near |= meets & ((mask >> l) & 1);
  }
  if (near != 0) judge_forbidden(op, w, access, at, bytes);
}

}  // namespace attest::emulator::ATTEST_ISA
