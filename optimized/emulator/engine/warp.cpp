// Fragments: which lanes of a warp run next, where they part and where they meet again.
// Order: the deepest call first, then the lowest pc. So lanes that are behind catch up before the
// others go on, and meet them at the next common block leader. A seed lets any of them go first,
// and pass by where they could meet: lanes of a warp owe each other no order.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/counting.hpp"

namespace attest::emulator {
namespace {

/// As Warp::join_at: no branch and no leader is where to meet.
const Op* const kNever = reinterpret_cast<const Op*>(~u64{0});

/// True when fragment a should run before b.
bool precedes(const Fragment& a, const Fragment& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  if (a.frame->code->index != b.frame->code->index)
    return a.frame->code->index < b.frame->code->index;
  return a.pc < b.pc;
}

/// Join checks compare with the lowest pc of a runnable fragment of the same frame's code.
void refresh_join(Warp& w) {
  const Op* lowest = kNever;
  for (u32 i = 0; i < w.other_count; ++i) {
    const Fragment& f = w.others[i];
    if (f.wait != Wait::none) continue;
    if (f.frame->depth > w.frame->depth) lowest = nullptr;  // deeper ones go first, always
    if (f.frame->depth == w.frame->depth && f.frame->code == w.frame->code)
      lowest = std::min(lowest, f.pc);
  }
  w.join_at = lowest;
}

void add_fragment(Warp& w, const Fragment& fresh) {
  for (u32 i = 0; i < w.other_count; ++i) {
    Fragment& f = w.others[i];
    if (f.pc == fresh.pc && f.frame == fresh.frame && f.wait == Wait::none &&
        fresh.wait == Wait::none) {
      f.mask |= fresh.mask;
      return;
    }
  }
  w.others[w.other_count++] = fresh;
}

/// Lanes that came to wait, or found that they need not, will execute the operation yet.
void discount_attempt(Warp& w, const Op& op) {
  ++w.uncounted;
  undo_count(w, op, 1, w.active);
}

void remove_fragment(Warp& w, u32 i) {
  w.others[i] = w.others[--w.other_count];
}

const Op* load_fragment(Warp& w, const Fragment& f) {
  w.active = w.mask = f.mask;
  load_frame(w, f.frame);
  w.resume = f.pc;
  refresh_join(w);
  constexpr u32 kMeetings = 8;  // one of so many is missed
  Schedule& schedule = w.block->schedule;
  if (schedule.permutes() && schedule.one_in(kMeetings)) w.join_at = kNever;
  return f.pc;
}

/// Any runnable fragment, of a warp that has one.
u32 drawn_fragment(const Warp& w, Schedule& schedule) {
  u32 runnable = 0;
  for (u32 i = 0; i < w.other_count; ++i) runnable += w.others[i].wait == Wait::none ? 1 : 0;
  u32 left = schedule.below(runnable);
  for (u32 i = 0;; ++i) {
    if (w.others[i].wait == Wait::none && left-- == 0) return i;
  }
}

}  // namespace

void load_frame(Warp& w, Frame* frame) {
  w.frame = frame;
  for (unsigned i = 0; i < 2; ++i) w.narrow[i] = frame->narrow[i], w.wide[i] = frame->wide[i];
  w.predicates = frame->predicates;
  CountRoom* const room = w.block->room;
  w.first_op = frame->code->ops.data();
  const u32 at = frame->code->counts_at;
  w.counts = room != nullptr ? room->counts.data() + at : nullptr;
  w.touched = room != nullptr ? room->touched.data() + at / kCountPage : nullptr;
}

bool has_runnable(const Warp& w) {
  for (u32 i = 0; i < w.other_count; ++i) {
    if (w.others[i].wait == Wait::none) return true;
  }
  return w.active != 0;
}

const Op* next_fragment(Warp& w) {
  w.active = 0;
  w.resume = nullptr;
  u32 best = kNone;
  for (u32 i = 0; i < w.other_count; ++i) {
    if (w.others[i].wait != Wait::none) continue;
    if (best == kNone || precedes(w.others[i], w.others[best])) best = i;
  }
  if (best == kNone) return nullptr;
  constexpr u32 kTurns = 4;  // one of so many goes to whom chance picks
  Schedule& schedule = w.block->schedule;
  if (w.other_count > 1 && schedule.permutes() && schedule.one_in(kTurns))
    best = drawn_fragment(w, schedule);
  Fragment chosen = w.others[best];
  remove_fragment(w, best);
  for (u32 i = 0; i < w.other_count;) {  // a barrier may have released lanes to the same place
    const Fragment& f = w.others[i];
    if (f.wait == Wait::none && f.pc == chosen.pc && f.frame == chosen.frame) {
      chosen.mask |= f.mask;
      remove_fragment(w, i);
    } else {
      ++i;
    }
  }
  return load_fragment(w, chosen);
}

const Op* go_to(Warp& w, const Op* pc) {
  add_fragment(w, {pc, w.frame, w.active, Wait::none, 0, 0});
  return next_fragment(w);
}

const Op* split(Warp& w, const Op& op, const Op* target, u32 taken) {
  if (w.counts != nullptr) ++w.counts[&op - w.first_op].divergent;
  add_fragment(w, {target, w.frame, taken, Wait::none, 0, 0});
  add_fragment(w, {&op + 1, w.frame, w.active & ~taken, Wait::none, 0, 0});
  return next_fragment(w);
}

void park(Warp& w, const Op* pc, Wait wait, u8 barrier, u32 members) {
  w.others[w.other_count++] = {pc, w.frame, w.active, wait, barrier, members};
  w.active = 0;
  w.resume = nullptr;
}

const Op* rotate(Warp& w, const Op* pc) {
  // The first runnable one in the list, not the lowest: each gets its turn. It runs without joining
  // until its quantum ends, or the spinning fragment it passed would take over at once.
  for (u32 i = 0; i < w.other_count; ++i) {
    if (w.others[i].wait != Wait::none) continue;
    const Fragment chosen = w.others[i];
    std::move(w.others + i + 1, w.others + w.other_count, w.others + i);
    --w.other_count;
    add_fragment(w, {pc, w.frame, w.active, Wait::none, 0, 0});
    load_fragment(w, chosen);
    w.join_at = kNever;
    return chosen.pc;
  }
  return pc;
}

const Op* wait_for_lanes(Warp& w, const Op& op, u32 members, u32 unnamed) {
  if (unnamed != 0) {
    return fault(w, op, u32(__builtin_ctz(unnamed)), "barrier",
                 "a lane executes it though the member mask leaves the lane out");
  }
  discount_attempt(w, op);
  u32 gathered = w.active;
  for (u32 i = 0; i < w.other_count; ++i) {
    const Fragment& f = w.others[i];
    if (f.pc == &op && f.frame == w.frame)
      gathered |= f.mask, members |= f.wait == Wait::lanes ? f.members : 0;
  }
  if ((members & w.live & ~gathered) == 0) {
    for (u32 i = 0; i < w.other_count;) {
      if (w.others[i].pc == &op && w.others[i].frame == w.frame)
        remove_fragment(w, i);
      else
        ++i;
    }
    w.active = w.mask = gathered;
    refresh_join(w);
    return &op;
  }
  park(w, &op, Wait::lanes, 0, members);
  return next_fragment(w);
}

const Op* wait_for_warp(Warp& w, const Op& op) {
  discount_attempt(w, op);
  u32 gathered = w.active;
  for (u32 i = 0; i < w.other_count; ++i) {
    const Fragment& f = w.others[i];
    if (f.pc == &op && f.frame == w.frame) gathered |= f.mask;
  }
  if (gathered == w.live) {
    w.other_count = 0;
    w.active = w.mask = gathered;
    refresh_join(w);
    return &op;
  }
  park(w, &op, Wait::whole_warp, 0, w.live);
  return next_fragment(w);
}

const Op* gather_warp(Warp& w, const Op& op) {
  const u32 lane = u32(__builtin_ctz(w.active));
  if (w.existing != kAllLanes) {
    return fault(
        w, op, lane, "barrier",
        fmt::format("the warp has {} threads, and it takes 32", __builtin_popcount(w.existing)));
  }
  if (w.live != kAllLanes) {
    return fault(
        w, op, lane, "barrier",
        fmt::format("it is .aligned, but the lanes {:#010x} of the warp have exited", ~w.live));
  }
  return wait_for_warp(w, op);
}

const Op* end_lanes(Warp& w, const Op& op) {
  const u32 ending = w.mask;
  w.live &= ~ending;
  w.active &= ~ending;
  for (Frame* f = w.frame; f != nullptr; f = f->parent) f->lanes &= ~ending;
  Block& block = *w.block;
  block.live_threads -= u32(__builtin_popcount(ending));
  end_copies(w, ending);
  // Lanes that wait for ended ones wait no longer: they look again.
  for (u32 i = 0; i < w.other_count; ++i) {
    const Wait wait = w.others[i].wait;
    if (wait == Wait::lanes || wait == Wait::whole_warp) w.others[i].wait = Wait::none;
  }
  barriers_after_exit(block);
  if (w.active != 0) {
    w.mask = w.active;
    refresh_join(w);
    return &op + 1;
  }
  return next_fragment(w);
}

}  // namespace attest::emulator
