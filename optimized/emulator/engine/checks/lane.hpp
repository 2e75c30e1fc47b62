// Accesses by some lanes of a warp, for operations whose lanes go their own ways: asynchronous
// copies, mbarriers. Ordinary loads and stores are watched a warp at a time (engine/watch.hpp).
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// Shows accesses of some lanes, at[lane] each, to the checkers that are on. Addresses are host
/// addresses; `space` is global for generic ones. Call before data moves, when Warp::watch is not
/// 0.
void watch_lanes(const Op& op, Warp& warp, u32 lanes, Access access, Space space, const u64* at,
                 u32 bytes);
/// One lane's access.
void watch_lane(const Op& op, Warp& warp, u32 lane, Access access, Space space, u64 address,
                u32 bytes);
/// The lanes copy bytes from global to shared memory: a read, a write, and what was never written
/// stays so.
void watch_copies(const Op& op, Warp& warp, u32 lanes, const u64* to, const u64* from, u32 bytes);

}  // namespace attest::emulator
