// Hands an access to the checkers and counters that are on.
#include "optimized/emulator/engine/checks/init_lanes.hpp"
#include "optimized/emulator/engine/checks/race_lanes.hpp"
#include "optimized/emulator/engine/forbidden.hpp"
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::ATTEST_ISA {

void watch_access(const Op& op, Warp& w, Access access, Space space, const Places& p, Spread spread,
                  u32 bytes) {
  if (w.watch & kWatchPending) watch_forbidden(op, w, access, space, p, spread, bytes);
  if (w.watch & kWatchCount) count_access(op, w, access, space, p, spread, bytes);
  if (space == Space::param || space == Space::constant) return;  // written before the launch
  if ((w.watch & (kWatchInit | kWatchRace)) == 0) return;
  UnitAccess units;
  const bool whole = space == Space::shared && bytes == kUnitBytes && spread != Spread::scattered;
  if (whole) find_units(w, p, spread, w.watching->now, units);
  if (w.watch & kWatchInit)
    init_access(op, w, access, space, p, spread, bytes, whole ? &units : nullptr);
  if ((w.watch & kWatchRace) && space != Space::local)
    race_access(op, w, access, space, p, spread, bytes, whole ? &units : nullptr);
}

}  // namespace attest::emulator::ATTEST_ISA
