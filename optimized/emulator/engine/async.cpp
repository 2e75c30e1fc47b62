// Copies under way and mbarriers of a block: when data move, what may not be touched until then,
// and what a kernel left undone when it ended.
#include "optimized/emulator/engine/async.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/lane.hpp"
#include "optimized/emulator/engine/order.hpp"

namespace attest::emulator {
namespace {

constexpr u32 kWordBytes = 4;  // what cp.async copies at least, and to what it aligns
constexpr u32 kObjectBytes = 8;

template <class F>
void for_lanes(u32 lanes, const F& visit) {
  for (; lanes; lanes &= lanes - 1) visit(u32(__builtin_ctz(lanes)));
}

/// Calls visit(word of Async::forbidden, its bits) for the bytes.
template <class F>
void for_bits(u64 offset, u32 bytes, const F& visit) {
  u64 word = offset / kWordBytes;
  const u64 end = (offset + bytes - 1) / kWordBytes + 1;
  while (word < end) {
    const u64 count = std::min(end - word, 64 - word % 64);
    visit(word / 64, (~u64{0} >> (64 - count)) << (word % 64));
    word += count;
  }
}

bool is_forbidden(const Async& async, u64 offset, u32 bytes) {
  u64 found = 0;
  for_bits(offset, bytes, [&](u64 word, u64 bits) { found |= async.forbidden[word] & bits; });
  return found != 0;
}

void mark(Async& async, u64 offset, u32 bytes, bool on) {
  for_bits(offset, bytes, [&](u64 word, u64 bits) {
    u64& words = async.forbidden[word];
    words = on ? words | bits : words & ~bits;
  });
}

/// The copy not waited for that writes into, or reads from, the bytes at `at`.
struct Found {
  const Copies* copies = nullptr;
  u32 lane = 0;
};
template <class F>
Found find_copy(const Async& async, const F& touches) {
  for (const auto& of_warp : async.copies) {
    for (const Copies& c : of_warp) {
      for (u32 left = c.lanes; left; left &= left - 1) {
        const u32 lane = u32(__builtin_ctz(left));
        if (touches(c, lane)) return {&c, lane};
      }
    }
  }
  return {};
}

std::string_view verb(Access access) {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

std::string issued(const Block& block, const Found& found) {
  const Warp& w = block.warps[found.copies->warp];
  return fmt::format("the copy that thread ({},{},{}) issued at {} has not been waited for",
                     w.thread[0][found.lane], w.thread[1][found.lane], w.thread[2][found.lane],
                     line_of(w, *found.copies->op));
}

void judge_shared(const Op& op, Warp& w, u32 lane, Access access, u32 offset, u32 bytes) {
  Block& block = *w.block;
  Async& async = block.async;
  const auto meets = [&](u32 at, u32 size) { return at < offset + bytes && offset < at + size; };
  const Found found =
      find_copy(async, [&](const Copies& c, u32 l) { return meets(c.to[l], c.bytes); });
  if (found.copies != nullptr) {
    note(w, op, lane, "async",
         fmt::format("{} {} bytes of shared memory at offset {:#x}, but {}", verb(access), bytes,
                     offset, issued(block, found)));
    async.reported.insert(&op);
    return;
  }
  for (const auto& [at, object] : async.objects) {
    if (!meets(at, kObjectBytes)) continue;
    note(w, op, lane, "barrier",
         fmt::format("{} {} bytes at offset {:#x} of shared memory, where an mbarrier lives; only "
                     "mbarrier instructions may touch it until mbarrier.inval",
                     verb(access), bytes, offset));
    async.reported.insert(&op);
  }
}

void judge_source(const Op& op, Warp& w, u32 lane, u64 address, u32 bytes) {
  Async& async = w.block->async;
  const Found found = find_copy(async, [&](const Copies& c, u32 l) {
    return c.from[l] < address + bytes && address < c.from[l] + c.given[l];
  });
  if (found.copies == nullptr) return;
  note(
      w, op, lane, "async",
      fmt::format("writes {} bytes that are still being read: {}", bytes, issued(*w.block, found)));
  async.reported.insert(&op);
}

/// The race and initialisation checkers see data arrive, on behalf of the thread that copies.
void show_arrival(Block& block, Copies& c, u32 lanes) {
  Warp& w = block.warps[c.warp];
  const u8 watch = w.watch;
  w.watch &= kWatchInit | kWatchRace;
  if (w.watch != 0) {
    u32 whole = 0, partly = 0;
    u64 to[kLanes];
    for_lanes(lanes & ~c.shown, [&](u32 l) {
      to[l] = reinterpret_cast<u64>(w.shared) + c.to[l];
      (c.given[l] == c.bytes ? whole : partly) |= 1u << l;
    });
    if (whole != 0) watch_copies(*c.op, w, whole, to, c.from.data(), c.bytes);
    for_lanes(partly, [&](u32 l) {
      const u32 given = c.given[l];
      if (given != 0) watch_copies(*c.op, w, 1u << l, to, c.from.data(), given);
      watch_lane(*c.op, w, l, Access::write, Space::shared, to[l] + given, c.bytes - given);
    });
  }
  w.watch = watch;
  c.shown |= lanes;
}

void widen_bounds(Block& block, const Copies& c) {
  Forbidden& bounds = block.async.bounds;
  bounds.low[0] = std::min(bounds.low[0], c.low);
  bounds.high[0] = std::max(bounds.high[0], c.high);
  bounds.source_low = std::min(bounds.source_low, c.from_low);
  bounds.source_high = std::max(bounds.source_high, c.from_high);
  for (Warp& w : block.warps) w.watch |= kWatchPending;
}

void allow(Async& async, Copies& c, u32 lanes) {
  for_lanes(lanes, [&](u32 l) { mark(async, c.to[l], c.bytes, false); });
  c.lanes &= ~lanes;
}

/// The arrival comes about: its copies move, then the mbarrier counts it.
void trigger(Block& block, const Arrival& arrival) {
  Warp& w = block.warps[arrival.warp];
  const auto it = block.async.objects.find(arrival.object);
  if (it == block.async.objects.end() || it->second.pending == 0) {
    fault(
        w, *arrival.op, arrival.lane, "barrier",
        fmt::format("the arrival comes about when the mbarrier at offset {:#x} {}", arrival.object,
                    it == block.async.objects.end() ? "is no more" : "lacks no arrival"));
    return;
  }
  const u32 lane = 1u << arrival.lane;
  for (Copies& c : block.async.copies[arrival.warp]) {
    if (c.serial >= arrival.before || (c.lanes & lane) == 0 || c.object[arrival.lane] != kNone)
      continue;
    show_arrival(block, c, lane);
    move_data(block, c, lane);
    c.object[arrival.lane] = arrival.object;
    c.phase[arrival.lane] = it->second.phase;
  }
  order_release(w, arrival.lane, reinterpret_cast<u64>(w.shared) + arrival.object);
  count_arrivals(block, arrival.object, 1, 0);
}

void drop_done(Block& block) {
  for (auto& of_warp : block.async.copies)
    std::erase_if(of_warp, [](const Copies& c) { return c.lanes == 0; });
  refresh_forbidden(block);
}

}  // namespace

void judge_forbidden(const Op& op, Warp& w, Access access, const u64* at, u32 bytes) {
  const Async& async = w.block->async;
  if (async.reported.contains(&op)) return;
  const u64 shared = reinterpret_cast<u64>(w.shared);
  for_lanes(w.mask, [&](u32 lane) {
    const u64 offset = at[lane] - shared;
    if (offset < w.shared_bytes) {
      if (is_forbidden(async, offset, bytes)) judge_shared(op, w, lane, access, u32(offset), bytes);
    } else if (access != Access::read) {
      judge_source(op, w, lane, at[lane], bytes);
    }
  });
}

void reset_async(Block& block) {
  Async& async = block.async;
  const std::size_t warps = block.warps.size();
  async.copies.assign(warps, {});
  async.committed.assign(warps, {});
  async.polls.assign(warps, {});
  async.arrivals.clear();
  async.objects.clear();
  async.reported.clear();
  async.forbidden.assign(block.launch->shared_bytes / (64 * kWordBytes) + 1, 0);
  async.serial = async.epoch = async.quiet = 0;
  refresh_forbidden(block);
}

void refresh_forbidden(Block& block) {
  Async& async = block.async;
  async.bounds = Forbidden{};
  for (Warp& w : block.warps) w.watch &= u8(~kWatchPending);
  for (const auto& of_warp : async.copies) {
    for (const Copies& c : of_warp) widen_bounds(block, c);
  }
  if (async.objects.empty()) return;
  async.bounds.low[1] = async.objects.begin()->first;
  async.bounds.high[1] = async.objects.rbegin()->first + kObjectBytes;
  for (Warp& w : block.warps) w.watch |= kWatchPending;
}

void forbid(Async& async, u32 offset, u32 bytes, bool on) {
  mark(async, offset, bytes, on);
}

void begin_copies(Block& block, const Copies& c) {
  for_lanes(c.lanes, [&](u32 l) { mark(block.async, c.to[l], c.bytes, true); });
  widen_bounds(block, c);
}

void move_data(Block& block, Copies& c, u32 lanes) {
  constexpr u32 kUsual = 16;
  u8* const shared = block.warps[c.warp].shared;
  for_lanes(lanes & ~c.moved, [&](u32 l) {
    const void* const from = reinterpret_cast<const void*>(c.from[l]);
    if (c.given[l] == kUsual) {
      std::memcpy(shared + c.to[l], from, kUsual);
      return;
    }
    std::memcpy(shared + c.to[l], from, c.given[l]);
    std::memset(shared + c.to[l] + c.given[l], 0, c.bytes - c.given[l]);
  });
  c.moved |= lanes;
}

void land(Block& block, Copies& c, u32 lanes) {
  show_arrival(block, c, lanes);
  move_data(block, c, lanes);
  allow(block.async, c, lanes);
}

void land_groups(Warp& w, u32 lanes, u32 left_pending, bool uncommitted) {
  Block& block = *w.block;
  auto& of_warp = block.async.copies[w.index];
  if (of_warp.empty()) return;
  const auto& committed = block.async.committed[w.index];
  for (Copies& c : of_warp) {
    u32 due = 0;
    for_lanes(c.lanes & lanes, [&](u32 l) {
      due |= u32(uncommitted || u64(c.group[l]) + left_pending < committed[l]) << l;
    });
    if (due != 0) land(block, c, due);
  }
  drop_done(block);
}

std::size_t bring_about(Block& block, std::size_t at) {
  auto& arrivals = block.async.arrivals;
  const u32 warp = arrivals[at].warp, lane = arrivals[at].lane;
  std::size_t kept = 0;
  for (std::size_t i = 0; i <= at; ++i) {
    if (arrivals[i].warp == warp && arrivals[i].lane == lane)
      trigger(block, arrivals[i]);
    else
      arrivals[kept++] = arrivals[i];
  }
  const std::size_t done = at + 1 - kept;
  arrivals.erase(arrivals.begin() + std::ptrdiff_t(kept),
                 arrivals.begin() + std::ptrdiff_t(at + 1));
  return done;
}

void land_after_phase(Block& block, u32 object) {
  const MBarrier& barrier = block.async.objects.at(object);
  bool any = false;
  for (auto& of_warp : block.async.copies) {
    for (Copies& c : of_warp) {
      u32 due = 0;
      for_lanes(c.lanes, [&](u32 l) {
        due |= u32(c.object[l] == object && c.phase[l] < barrier.phase) << l;
      });
      allow(block.async, c, due);
      any |= due != 0;
    }
  }
  if (any) drop_done(block);
}

void deliver_some(Block& block) {
  constexpr u32 kRarely = 4;
  Async& async = block.async;
  Schedule& schedule = block.schedule;
  for (auto& of_warp : async.copies) {
    if (of_warp.empty() || !schedule.one_in(kRarely)) continue;
    Copies& c = of_warp[schedule.below(u32(of_warp.size()))];
    move_data(block, c, c.lanes & u32(schedule.draw()));
  }
  if (!async.arrivals.empty() && schedule.one_in(kRarely))
    bring_about(block, schedule.below(u32(async.arrivals.size())));
}

void count_arrivals(Block& block, u32 offset, u32 arrivals, s64 bytes) {
  MBarrier& object = block.async.objects.at(offset);
  object.pending -= arrivals;
  object.bytes -= bytes;
  if (object.pending == 0 && object.bytes == 0) {
    ++object.phase;
    object.pending = object.arrivals;
  }
  block.async.progress();
  const u64 shown = object.phase << 40 | u64(object.arrivals & 0xfffff) << 20 | object.pending;
  std::memcpy(block.warps[0].shared + offset, &shown, sizeof shown);
}

void end_copies(Warp& w, u32 lanes) {
  Block& block = *w.block;
  block.async.progress();
  auto& of_warp = block.async.copies[w.index];
  if (of_warp.empty()) return;
  for (Copies& c : of_warp) {
    u32 lost = 0;
    for_lanes(c.lanes & lanes, [&](u32 l) {
      const bool followed =
          c.object[l] != kNone ||
          std::any_of(block.async.arrivals.begin(), block.async.arrivals.end(),
                      [&](const Arrival& a) {
                        return a.warp == w.index && a.lane == l && a.before > c.serial;
                      });
      lost |= u32(!followed) << l;
    });
    if (lost == 0) continue;
    note(w, *c.op, u32(__builtin_ctz(lost)), "async",
         "its thread ended without waiting for this copy: whether the data arrived, nobody can "
         "tell");
    allow(block.async, c, lost);
  }
  drop_done(block);
}

void end_async(Block& block) {
  for (auto& of_warp : block.async.copies) {
    for (const Copies& c : of_warp) {
      note(block.warps[c.warp], *c.op, u32(__builtin_ctz(c.lanes)), "async",
           "the block ended and nobody had waited for the mbarrier that tells of this copy");
    }
  }
}

}  // namespace attest::emulator
