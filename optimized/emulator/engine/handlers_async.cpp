// cp.async: issue, groups, waits. What is under way until then is async.cpp's. Compiled for the
// oldest instruction set and used by all.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/lane.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::baseline {
namespace {

u64 lane_value(const Warp& w, u32 operand, bool wide, u32 lane) {
  return wide ? read<u64>(slot<u64>(w, operand), lane) : read<u32>(slot<u32>(w, operand), lane);
}

/// Where the copies go. False: a fault was recorded.
bool find_destinations(const Op& op, Warp& w, Copies& c) {
  c.low = ~0u, c.high = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 whole = lane_value(w, op.a, op.choice & 1, l) + u64(op.immediate);
    const u64 at = op.choice & 1 ? whole : u32(whole);
    if (at > w.shared_bytes || w.shared_bytes - at < c.bytes || (at & (c.bytes - 1)) != 0) {
      fault_place(op, w, l, at, c.bytes, Space::shared);
      return false;
    }
    c.to[l] = u32(at);
    c.low = std::min(c.low, u32(at)), c.high = std::max(c.high, u32(at) + c.bytes);
  }
  return true;
}

/// How many bytes each lane reads, and from where; nothing is asked of an address that is not read.
bool find_sources(const Op& op, Warp& w, Copies& c) {
  c.from_low = ~u64{0}, c.from_high = 0;
  const u32 all = w.mask;
  const u32 ignoring = op.d == kNone ? 0 : w.predicates[op.d] ^ (op.list[1] != 0 ? kAllLanes : 0);
  u32 whole = 0, partly = 0;
  alignas(64) u64 at[kLanes];
  for (u32 left = all; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 size = op.c == kNone ? c.bytes : u32(lane_value(w, op.c, false, l));
    if (size > c.bytes) {
      fault(w, op, l, "memcheck", fmt::format("the copy of {} bytes is to read {}", c.bytes, size));
      return false;
    }
    c.given[l] = u8((ignoring >> l) & 1 ? 0 : size);
    at[l] = read<u64>(slot<u64>(w, op.b), l) + u64(s64(s32(op.list[0])));
    whole |= u32(c.given[l] == c.bytes) << l;
    partly |= u32(c.given[l] != c.bytes && c.given[l] != 0) << l;
  }
  // The first and the last byte decide for a part. It has an interval of its own: another width.
  Op last = op;
  last.cache = op.cache + 1;
  alignas(64) u64 first_byte[kLanes], last_byte[kLanes];
  for (u32 l = 0; l < kLanes; ++l) {
    if (((partly >> l) & 1) && (at[l] & (c.bytes - 1)) != 0) {
      fault(w, op, l, "memcheck",
            fmt::format("reads at {:#x}: the address is not aligned to {} bytes", at[l], c.bytes));
      return false;
    }
    first_byte[l] = at[l], last_byte[l] = at[l] + c.given[l] - 1;
  }
  w.mask = whole;
  bool good = whole == 0 || find_places(op, w, at, c.bytes, Space::global);
  w.mask = partly;
  good = good && (partly == 0 || (find_places(last, w, first_byte, 1, Space::global) &&
                                  find_places(last, w, last_byte, 1, Space::global)));
  w.mask = all;
  for (u32 left = all; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    c.from[l] = at[l];
    if (c.given[l] == 0) continue;
    c.from_low = std::min(c.from_low, at[l]),
    c.from_high = std::max(c.from_high, at[l] + c.given[l]);
  }
  return good;
}

/// Shows the issue: it reads the source and may write the destination from now on.
void show_issue(const Op& op, Warp& w, const Copies& c) {
  const u8 watch = w.watch;
  const u32 all = w.mask;
  if (watch & kWatchCount) {
    Places p;
    u32 reading = 0;
    for (u32 l = 0; l < kLanes; ++l) {
      p.at[l] = c.from[l];
      reading |= u32(((all >> l) & 1) && c.given[l] != 0) << l;
    }
    w.watch = kWatchCount;
    w.mask = reading;
    if (reading) watch_access(op, w, Access::read, Space::global, p, Spread::scattered, c.bytes);
    w.mask = all;
    p.first = w.shared;
    for (u32 l = 0; l < kLanes; ++l) p.offset[l] = u32(c.to[l]);
    watch_access(op, w, Access::write, Space::shared, p, Spread::offsets, c.bytes);
  }
  alignas(64) u64 at[kLanes];
  for (u32 l = 0; l < kLanes; ++l) at[l] = reinterpret_cast<u64>(w.shared) + c.to[l];
  w.watch = watch & kWatchRace;
  if (w.watch != 0) {
    u32 whole = 0;
    for (u32 left = all; left; left &= left - 1) {
      const u32 l = u32(__builtin_ctz(left));
      if (c.given[l] == c.bytes)
        whole |= 1u << l;
      else if (c.given[l] != 0)
        watch_lane(op, w, l, Access::read, Space::global, c.from[l], c.given[l]);
    }
    if (whole != 0) watch_lanes(op, w, whole, Access::read, Space::global, c.from.data(), c.bytes);
    watch_lanes(op, w, all, Access::write, Space::shared, at, c.bytes);
  }
  w.watch = watch;
  if (watch & kWatchPending) judge_forbidden(op, w, Access::write, at, c.bytes);
}

// cp.async: a: shared offset (choice bit 0: wide), immediate: added to it; b: global address,
// list[0]: added to it; c: bytes to read, or none; d: predicate that ignores the source, or none,
// list[1]: negated; count: bytes
const Op* copy_async(const Op& op, Warp& w) {
  Block& block = *w.block;
  Async& async = block.async;
  Copies& c = async.copies[w.index].emplace_back();
  c.op = &op, c.warp = w.index, c.bytes = op.count;
  if (!find_destinations(op, w, c) || !find_sources(op, w, c)) {
    async.copies[w.index].pop_back();
    return nullptr;
  }
  show_issue(op, w, c);
  c.lanes = w.mask;
  c.serial = async.serial++;
  c.group = async.committed[w.index];
  c.object.fill(kNone);
  begin_copies(block, c);
  return &op + 1;
}

const Op* commit_group(const Op& op, Warp& w) {
  for (u32 left = w.mask; left; left &= left - 1)
    ++w.block->async.committed[w.index][u32(__builtin_ctz(left))];
  return &op + 1;
}
// immediate: groups that may stay under way
const Op* wait_group(const Op& op, Warp& w) {
  land_groups(w, w.mask, u32(op.immediate), false);
  return &op + 1;
}
const Op* wait_all(const Op& op, Warp& w) {
  land_groups(w, w.mask, 0, true);
  return &op + 1;
}

// mapa: a: address; b: rank
template <class T>
const Op* map_address(const Op& op, Warp& w) {
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 rank = read<u32>(slot<u32>(w, op.b), l);
    if (rank != 0) {
      return fault(w, op, l, "unsupported",
                   fmt::format("block {} of its cluster is meant, but every block is a cluster of "
                               "its own here: launch without clusters, or run on a GPU",
                               rank));
    }
    write<T>(slot<T>(w, op.d), l, read<T>(slot<T>(w, op.a), l));
  }
  return &op + 1;
}

}  // namespace

Handler select_cp(const Spelling& s) {
  if (!s.has(M::async)) return nullptr;
  if (s.has(M::mbarrier)) return select_mbarrier(s);
  if (s.has(M::commit_group)) return commit_group;
  if (s.has(M::wait_group)) return wait_group;
  if (s.has(M::wait_all)) return wait_all;
  return s.has(M::ca) || s.has(M::cg) ? copy_async : nullptr;
}
Handler select_mapa(const Spelling& s) {
  if (ptx::size_of(s.type()) < 4) return nullptr;
  return ptx::size_of(s.type()) == 8 ? map_address<u64> : map_address<u32>;
}

}  // namespace attest::emulator::baseline
