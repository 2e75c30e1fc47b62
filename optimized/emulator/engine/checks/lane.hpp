// Accesses one lane at a time, for operations whose lanes go their own ways: asynchronous copies,
// mbarriers. Ordinary loads and stores are watched a warp at a time (engine/watch.hpp).
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// Shows one lane's access to the checkers that are on. `address` is a host address; `space` is
/// global for generic ones. Call before data moves, when Warp::watch is not 0.
void watch_lane(const Op& op, Warp& warp, u32 lane, Access access, Space space, u64 address,
                u32 bytes);
/// The lane copies bytes from global to shared memory: a read, a write, and what was never written
/// stays so.
void watch_copy(const Op& op, Warp& warp, u32 lane, u64 to, u64 from, u32 bytes);

}  // namespace attest::emulator
