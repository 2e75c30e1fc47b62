// One lane's accesses, handed to the checkers that are on.
#include "optimized/emulator/engine/checks/lane.hpp"

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/watching.hpp"

namespace attest::emulator {
namespace {

/// The warp with some lanes executing.
class SomeLanes {
 public:
  SomeLanes(Warp& warp, u32 lanes) : warp_(warp), mask_(warp.mask) { warp.mask = lanes; }
  ~SomeLanes() { warp_.mask = mask_; }
  SomeLanes(const SomeLanes&) = delete;
  SomeLanes& operator=(const SomeLanes&) = delete;

 private:
  Warp& warp_;
  u32 mask_;
};

}  // namespace

void watch_lanes(const Op& op, Warp& w, u32 lanes, Access access, Space space, const u64* at,
                 u32 bytes) {
  const SomeLanes some(w, lanes);
  if (w.watch & kWatchInit) init_lanes(op, w, access, space, at, bytes);
  // Updates of mbarriers are atomic; what they order is told apart from this.
  const u8 flags = access == Access::update ? kStrong : 0;
  if (w.watch & kWatchRace) race_lanes(op, w, access, at, bytes, flags);
}

void watch_lane(const Op& op, Warp& w, u32 lane, Access access, Space space, u64 address,
                u32 bytes) {
  u64 at[kLanes];
  at[lane] = address;
  watch_lanes(op, w, 1u << lane, access, space, at, bytes);
}

void watch_copies(const Op& op, Warp& w, u32 lanes, const u64* to, const u64* from, u32 bytes) {
  const SomeLanes some(w, lanes);
  for (u32 left = w.watch & kWatchInit ? lanes : 0; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    copy_bits(op, w, to[lane], from[lane], bytes);
  }
  if (w.watch & kWatchRace) {
    race_lanes(op, w, Access::read, from, bytes, 0);
    race_lanes(op, w, Access::write, to, bytes, 0);
  }
}

}  // namespace attest::emulator
