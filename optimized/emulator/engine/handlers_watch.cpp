// Hands an access to the checkers and counters that are on.
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::ATTEST_ISA {

void watch_access(const Op&, Warp&, Access, Space, const Places&, Spread, u32) {}

}  // namespace attest::emulator::ATTEST_ISA
