// One lane's accesses, handed to the checkers that are on.
#include "optimized/emulator/engine/checks/lane.hpp"

namespace attest::emulator {

void watch_lane(const Op&, Warp&, u32, Access, Space, u64, u32) {}
void watch_copy(const Op&, Warp&, u32, u64, u64, u32) {}

}  // namespace attest::emulator
