// Threads that poll an mbarrier in vain: nobody is parked, yet the block may be as stuck as at a
// barrier. Knows who polled since something last happened.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"

namespace attest::emulator {
namespace {

// In vain, in a row, per warp, before the block is looked at. Deciding is exact but for threads
// that do something else after so many: they would have to count, since nothing else changes.
constexpr u64 kPollsInVain = 4096;

/// All lanes of the warp wait: parked, or for an mbarrier.
bool is_stuck(const Warp& w, const Async& async) {
  const Poll& poll = async.polls[w.index];
  u32 waiting = poll.epoch == async.epoch ? poll.lanes : 0;
  for (u32 i = 0; i < w.other_count; ++i) {
    if (w.others[i].wait != Wait::none) waiting |= w.others[i].mask;
  }
  return (w.live & ~waiting) == 0;
}

std::string describe_polls(const Block& block) {
  constexpr u32 kListed = 8;
  std::string text;
  u32 listed = 0;
  for (const Warp& w : block.warps) {
    const Poll& poll = block.async.polls[w.index];
    if (poll.epoch != block.async.epoch || poll.lanes == 0) continue;
    if (++listed > kListed) return text + "; and others";
    const u32 lane = u32(__builtin_ctz(poll.lanes));
    const auto it = block.async.objects.find(poll.object);
    if (!text.empty()) text += "; ";
    text +=
        fmt::format("{} lanes of warp {} (mask {:#010x}) at {} for the mbarrier at offset {:#x}",
                    __builtin_popcount(poll.lanes), w.index, poll.lanes,
                    place_text(w, *poll.op, lane), poll.object);
    if (it == block.async.objects.end()) continue;
    const MBarrier& object = it->second;
    text += fmt::format(" (phase {} lacks {} of {} arrivals", object.phase, object.pending,
                        object.arrivals);
    if (object.bytes != 0) text += fmt::format(" and {} bytes", object.bytes);
    text += ")";
  }
  return text;
}

}  // namespace

void note_poll(Warp& w, const Op& op, u32 lane, u32 object) {
  Async& async = w.block->async;
  Poll& poll = async.polls[w.index];
  if (poll.epoch != async.epoch) poll.lanes = 0;
  poll.op = &op, poll.epoch = async.epoch, poll.object = object;
  poll.lanes |= 1u << lane;
  ++async.quiet;
}

bool report_endless_polling(Block& block) {
  if (block.async.quiet < kPollsInVain * kLanes * block.warps.size()) return false;
  block.async.quiet = 0;
  for (const Warp& w : block.warps) {
    if (!is_stuck(w, block.async)) return false;
  }
  for (Warp& w : block.warps) {
    const Poll& poll = block.async.polls[w.index];
    if (poll.epoch != block.async.epoch || poll.lanes == 0) continue;
    std::string waiting = describe_polls(block);
    if (const std::string parked = describe_waiting(block); !parked.empty())
      waiting += "; " + parked;
    fault(w, *poll.op, u32(__builtin_ctz(poll.lanes)), "deadlock",
          "the phase will never complete, and nobody in the block can go on: " + waiting);
    return true;
  }
  return false;
}

}  // namespace attest::emulator
