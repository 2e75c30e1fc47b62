// Hands an access to the checkers and counters that are on.
#include "optimized/emulator/engine/forbidden.hpp"
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::ATTEST_ISA {

void watch_access(const Op& op, Warp& w, Access access, Space space, const Places& p, Spread spread,
                  u32 bytes) {
  if (w.watch & kWatchPending) watch_forbidden(op, w, access, space, p, spread, bytes);
  if (w.watch & kWatchCount) count_access(op, w, access, space, p, spread, bytes);
}

}  // namespace attest::emulator::ATTEST_ISA
