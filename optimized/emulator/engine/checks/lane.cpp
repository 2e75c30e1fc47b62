// One lane's accesses, handed to the checkers that are on.
#include "optimized/emulator/engine/checks/lane.hpp"

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/watching.hpp"

namespace attest::emulator {
namespace {

/// The warp with one lane executing.
class OneLane {
 public:
  OneLane(Warp& warp, u32 lane) : warp_(warp), mask_(warp.mask) { warp.mask = 1u << lane; }
  ~OneLane() { warp_.mask = mask_; }
  OneLane(const OneLane&) = delete;
  OneLane& operator=(const OneLane&) = delete;

 private:
  Warp& warp_;
  u32 mask_;
};

}  // namespace

void watch_lane(const Op& op, Warp& w, u32 lane, Access access, Space space, u64 address,
                u32 bytes) {
  u64 at[kLanes] = {};
  at[lane] = address;
  const OneLane one(w, lane);
  if (w.watch & kWatchInit) init_lanes(op, w, access, space, at, bytes);
  // Updates of mbarriers are atomic; what they order is told apart from this.
  const u8 flags = access == Access::update ? kStrong : 0;
  if (w.watch & kWatchRace) race_lanes(op, w, access, at, bytes, flags);
}

void watch_copy(const Op& op, Warp& w, u32 lane, u64 to, u64 from, u32 bytes) {
  u64 source[kLanes] = {}, target[kLanes] = {};
  source[lane] = from, target[lane] = to;
  const OneLane one(w, lane);
  if (w.watch & kWatchInit) copy_bits(op, w, to, from, bytes);
  if (w.watch & kWatchRace) {
    race_lanes(op, w, Access::read, source, bytes, 0);
    race_lanes(op, w, Access::write, target, bytes, 0);
  }
}

}  // namespace attest::emulator
