// Barriers of a block: bar.sync, bar.arrive, bar.red, and bar.warp.sync; and what everyone waits
// for when nobody can run.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/order.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

/// Writes what bar.red found for the lanes that waited at `f`.
void deliver(const Fragment& f, const Barrier& barrier) {
  const Op& op = *f.pc;
  if (op.d == kNone) return;
  Frame& frame = *f.frame;
  switch (op.choice) {
    case 1: {  // popc
      u32* d = reinterpret_cast<u32*>(frame.narrow[0] + op.d);
      for (u32 left = f.mask; left; left &= left - 1) d[__builtin_ctz(left)] = barrier.popc;
      break;
    }
    case 2:  // and
    case 3:  // or
    {
      const bool value = op.choice == 2 ? barrier.all : barrier.any;
      u32& p = frame.predicates[op.d];
      p = value ? p | f.mask : p & ~f.mask;
      break;
    }
    default:
      break;
  }
}

void complete(Block& block, u32 number) {
  Barrier& barrier = block.barriers[number];
  block.async.progress();
  u32 leaving = 0;
  for (const Warp& w : block.warps) {
    for (u32 i = 0; i < w.other_count; ++i) {
      const Fragment& f = w.others[i];
      if (f.wait == Wait::block_barrier && f.barrier == number)
        leaving += u32(__builtin_popcount(f.mask));
    }
  }
  const bool everyone = leaving == block.live_threads;
  if (everyone) order_block(block);
  for (Warp& w : block.warps) {
    for (u32 i = 0; i < w.other_count; ++i) {
      Fragment& f = w.others[i];
      if (f.wait != Wait::block_barrier || f.barrier != number) continue;
      if (!everyone) order_leave(w, f.mask, number);
      deliver(f, barrier);
      f.wait = Wait::none;
      f.pc = f.pc + 1;
    }
  }
  order_barrier_done(block, number);
  barrier = Barrier{};
}

bool is_complete(const Block& block, const Barrier& barrier) {
  if (barrier.arrived == 0) return false;
  return barrier.needed != 0 ? barrier.arrived >= barrier.needed
                             : barrier.arrived >= block.live_threads;
}

}  // namespace

const Op* arrive_at_barrier(Warp& w, const Op& op, u32 number, u32 needed, bool waits,
                            u32 predicate_bits) {
  if ((op.flags & kAligned) && !whole_warp_here(w)) return wait_for_warp(w, op);
  Block& block = *w.block;
  const u32 lane = u32(__builtin_ctz(w.active));
  if (number >= kBarriers) {
    return fault(w, op, lane, "barrier",
                 fmt::format("barrier {} does not exist; there are 16", number));
  }
  Barrier& barrier = block.barriers[number];
  if (needed % kLanes != 0) {
    return fault(w, op, lane, "barrier",
                 fmt::format("the thread count {} is no multiple of 32", needed));
  }
  if (needed > kLanes * block.warps.size()) {
    return fault(w, op, lane, "barrier",
                 fmt::format("{} threads shall come; the block has {}", needed,
                             block.launch->threads_per_block));
  }
  if (barrier.arrived != 0 && barrier.needed != needed) {
    return fault(w, op, lane, "barrier",
                 fmt::format("barrier {} is used with {} and with {} threads at once", number,
                             needed, barrier.needed));
  }
  const BarrierUse use = op.choice == 4   ? BarrierUse::arrives
                         : op.choice == 0 ? BarrierUse::syncs
                                          : BarrierUse::reduces;
  if (barrier.arrived != 0 &&
      (use == BarrierUse::reduces) != (barrier.use == BarrierUse::reduces)) {
    return fault(
        w, op, lane, "barrier",
        fmt::format("barrier {} is used by a reducing and by another instruction at once", number));
  }
  barrier.use = use;
  barrier.needed = needed;
  // A count is one of whole warps: lanes that have exited, or never were, count as come.
  barrier.arrived += needed != 0 && whole_warp_here(w) ? kLanes : u32(__builtin_popcount(w.active));
  barrier.popc += u32(__builtin_popcount(predicate_bits & w.active));
  barrier.all = barrier.all && (predicate_bits & w.active) == w.active;
  barrier.any = barrier.any || (predicate_bits & w.active) != 0;
  // A barrier of the whole block tells everything at once, when it is complete.
  if (needed != 0) order_arrive(w, w.active, number);
  if (!waits) {
    if (is_complete(block, barrier)) complete(block, number);
    return &op + 1;
  }
  park(w, &op, Wait::block_barrier, u8(number), 0);
  if (is_complete(block, barrier)) complete(block, number);
  return next_fragment(w);
}

void barriers_after_exit(Block& block) {
  for (u32 i = 0; i < kBarriers; ++i) {
    const Barrier& barrier = block.barriers[i];
    if (barrier.needed == 0 && is_complete(block, barrier)) complete(block, i);
  }
}

Progress report_deadlock(Block& block) {
  Warp* stuck = nullptr;
  const Fragment* first = nullptr;
  for (Warp& w : block.warps) {
    for (u32 i = 0; i < w.other_count; ++i) {
      const Fragment& f = w.others[i];
      // Lanes that parted before an .aligned operation are the reason, whoever else waits for them.
      const bool tells_more =
          first != nullptr && first->wait != Wait::whole_warp && f.wait == Wait::whole_warp;
      const bool earlier = first != nullptr && stuck == &w && first->wait == f.wait &&
                           __builtin_ctz(f.mask) < __builtin_ctz(first->mask);
      if (first == nullptr || tells_more || earlier) stuck = &w, first = &f;
    }
  }
  if (first == nullptr) return Progress::faulted;
  const u32 lane = u32(__builtin_ctz(first->mask));
  const u32 ended = block.launch->threads_per_block - block.live_threads;
  const std::string waiting =
      describe_waiting(block) +
      (ended != 0 ? fmt::format("; {} threads of the block have ended", ended) : std::string());
  if (first->wait == Wait::whole_warp) {
    fault(
        *stuck, *first->pc, lane, "barrier",
        "lanes of one warp are at different places, and all of them must execute this together: " +
            waiting);
  } else {
    fault(*stuck, *first->pc, lane, "deadlock", "nobody in the block can go on: " + waiting);
  }
  return Progress::faulted;
}

std::string describe_waiting(const Block& block) {
  std::string text;
  u32 listed = 0;
  for (const Warp& w : block.warps) {
    for (u32 i = 0; i < w.other_count; ++i) {
      const Fragment& f = w.others[i];
      if (f.wait == Wait::none) continue;
      if (++listed > 8) return text + "; and others";
      const u32 lane = u32(__builtin_ctz(f.mask));
      if (!text.empty()) text += "; ";
      text += fmt::format("{} lanes of warp {} (mask {:#010x}) at {}", __builtin_popcount(f.mask),
                          w.index, f.mask, place_text(w, *f.pc, lane));
      if (f.wait == Wait::block_barrier) {
        const Barrier& b = block.barriers[f.barrier];
        text += fmt::format(" for barrier {} ({} of {} threads have come)", f.barrier, b.arrived,
                            b.needed ? b.needed : block.live_threads);
      } else {
        text += fmt::format(" for the lanes {:#010x}", f.members & w.live & ~f.mask);
      }
    }
  }
  return text;
}

}  // namespace attest::emulator
