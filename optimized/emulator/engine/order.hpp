// What happens before what: the knowledge each thread has of the accesses of others, and the events
// by which it grows. The race checker asks it; barriers, fences, atomics and mbarriers tell it.
// All functions return at once when races are not checked.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// How far a fence, a release or an acquire reaches: .cta, or .cluster and wider.
enum class Reach : u8 { block, device };

/// bar.sync of all threads of the block: everyone knows everything the block did.
void order_block(Block& block);
/// The lanes come to barrier `number`, which is for a part of the block, and give it what they
/// know.
void order_arrive(Warp& warp, u32 lanes, u32 number);
/// The lanes leave barrier `number`, knowing what all who came knew.
void order_leave(Warp& warp, u32 lanes, u32 number);
/// The barrier is ready for its next use. After all leave calls.
void order_barrier_done(Block& block, u32 number);
/// bar.warp.sync: each of the lanes knows what all of them knew.
void order_lanes(Warp& warp, u32 lanes);
/// shfl, vote and their kin: what one of the lanes has learnt of other warps and blocks is known to
/// all of them, since whoever uses the value comes after whoever gave it; programs rely on that
/// (cooperative groups do). Accesses by lanes of this warp are ordered by bar.warp.sync alone.
void order_confer(Warp& warp, u32 lanes);
/// The lane gives what it knows to whoever acquires `place` (a host address) later, as a release
/// does, or the arrival at an mbarrier.
void order_release(Warp& warp, u32 lane, u64 place, Reach reach = Reach::block);
/// The lane learns what was given to `place`, as an acquire does, or a successful mbarrier wait.
void order_acquire(Warp& warp, u32 lane, u64 place, Reach reach = Reach::block);
/// membar, fence: strong reads of the lanes before it acquire, strong writes after it release.
void order_fence(Warp& warp, u32 lanes, Reach reach);

}  // namespace attest::emulator
