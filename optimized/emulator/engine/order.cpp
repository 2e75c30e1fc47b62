// The race checker's view of synchronisation.
#include "optimized/emulator/engine/order.hpp"

namespace attest::emulator {

void order_block(Block&) {}
void order_arrive(Warp&, u32, u32) {}
void order_leave(Warp&, u32, u32) {}
void order_barrier_done(Block&, u32) {}
void order_lanes(Warp&, u32) {}
void order_release(Warp&, u32, u64, Reach) {}
void order_acquire(Warp&, u32, u64, Reach) {}
void order_fence(Warp&, u32, Reach) {}

}  // namespace attest::emulator
