// Judges accesses to shared memory lane by lane: each must be ordered after the last write of its
// granule and, when it writes, after the reads since. The vector code (race_lanes.hpp,
// unit_lanes.hpp) answers the usual case, in which all is well; this is the definition.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/checks/units.hpp"

namespace attest::emulator {
namespace {

constexpr std::size_t kSetsMax = 1024;  // indices of ten bits

u32 time_of(const BlockChecks& c, Stamp s) {
  return (s >> kStampTimeShift) + c.stamp_base;
}
u32 thread_of(Stamp s) {
  return s & kStampThread;
}
u32 warp_of(Stamp s) {
  return (s >> 5) & 31;
}

/// Whether the access that left the stamp (no set) happened before what the lane does now.
/// A stamp of several lanes counts as ordered when any of them is: no alarm may be false.
bool is_ordered(Warp& w, u32 lane, Stamp s) {
  const BlockChecks& c = *w.block->checks;
  if (s == 0) return true;
  const u32 time = time_of(c, s);
  if (!(s & kStampMulti)) {
    const u32 thread = thread_of(s);
    return thread == w.index * kLanes + lane ||
           time <= known_time(w, lane, w.block->number, thread);
  }
  return time <= known_time_of_any(w, lane, w.block->number, warp_of(s) * kLanes, kLanes);
}

std::string thread_text(const Block& block, u32 thread) {
  const Warp& w = block.warps[thread / kLanes];
  const u32 l = thread % kLanes;
  return fmt::format("thread ({},{},{})", w.thread[0][l], w.thread[1][l], w.thread[2][l]);
}

std::string_view verb_of(Access access) {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

void report(const Op& op, Warp& w, u32 lane, Access access, u64 offset, u32 bytes, Stamp other,
            u16 other_op, std::string_view did) {
  if (!report_once(w, op, kWatchRace)) return;
  const std::string who = other & kStampMulti ? fmt::format("threads of warp {}", warp_of(other))
                                              : thread_text(*w.block, thread_of(other));
  std::string where = other_op == kUnknownOp ? "" : access_text(*w.block->launch, other_op);
  if (!where.empty()) where = " at " + where;
  note(
      w, op, lane, "racecheck",
      fmt::format("{} {} bytes of shared memory at offset {:#x}, which {} {}{}; nothing orders the "
                  "two: a barrier between them is missing",
                  verb_of(access), bytes, offset, who, did, where));
}

/// One lane's access to one granule.
struct Judge {
  const Op& op;
  Warp& w;
  BlockChecks& c;
  Access access;
  u32 bytes;
  const u64* at;  // of all lanes
  u8 flags;
  u32 lane = 0;

  bool strong() const { return flags & kStrong; }
  u64 offset() const { return at[lane] - reinterpret_cast<u64>(w.shared); }
  Stamp mine() const { return w.watching->now | lane | (strong() ? kStampStrong : 0); }

  /// The write changes nothing that the earlier unordered one left: either order gives the same.
  bool is_silent(Stamp other, u64 granule) const {
    u8 value[32], theirs[32];
    const u32 shift = w.watching->granule_shift, width = 1u << shift;
    if (access != Access::write || !stored_bytes(op, w, lane, bytes, value)) return false;
    const u64 place = granule << shift;
    const u32 l = other & kStampLane;
    const bool same_operation = warp_of(other) == w.index && ((w.mask >> l) & 1) && l != lane &&
                                (other >> kStampTimeShift) == (w.watching->now >> kStampTimeShift);
    if (same_operation) {  // maybe this very instruction, whose data has not moved yet
      const u64 first = at[l] - reinterpret_cast<u64>(w.shared);
      if (first <= place && place + width <= first + bytes && stored_bytes(op, w, l, bytes, theirs))
        return std::memcmp(value + (place - offset()), theirs + (place - first), width) == 0;
    }
    return std::memcmp(w.shared + place, value + (place - offset()), width) == 0;
  }

  void against_writer(u64 g) const {
    const Stamp s = c.writers[g];
    if ((strong() && (s & kStampStrong)) || is_ordered(w, lane, s) || is_silent(s, g)) return;
    report(op, w, lane, access, offset(), bytes, s, c.writer_ops[g],
           access == Access::read ? "wrote" : "wrote as well");
  }

  void against_readers(u64 g) const {
    const Stamp s = c.readers[g];
    if (s == 0 || (strong() && (s & kStampStrong))) return;
    if (!(s & kStampSet)) {
      if (!is_ordered(w, lane, s))
        report(op, w, lane, access, offset(), bytes, s, c.reader_ops[g], "read");
      return;
    }
    // The time of a set is its latest.
    if ((s | kStampLow) <= w.watching->least && w.watching->together) return;
    const u32 index = s & kStampThread;
    if (index >= c.sets.size()) return;  // of an earlier epoch: ordered
    const ReaderSet& set = c.sets[index];
    for (u32 u = 0; u < kLanes; ++u) {
      if (u == w.index || is_ordered(w, lane, set.by_warp[u])) continue;
      report(op, w, lane, access, offset(), bytes, set.by_warp[u], set.ops[u], "read");
      return;
    }
  }

  void add_reader(u64 g) const {
    const Stamp s = c.readers[g], fresh = mine();
    const bool known = s & kStampSet ? (s | kStampLow) <= w.watching->least && w.watching->together
                                     : is_ordered(w, lane, s);
    if (known) {
      c.readers[g] = fresh, c.reader_ops[g] = u16(std::min(op.cache, kUnknownOp));
      return;
    }
    const auto several = [](Stamp x) { return x & kStampSet ? x : x | kStampMulti | kStampLane; };
    c.readers[g] = merge_readers(w, several(s), several(fresh), op.cache, c.reader_ops[g]);
    c.reader_ops[g] = u16(std::min(op.cache, kUnknownOp));
  }

  /// An atomic hides no plain write that its own thread made since the last event: nobody can know
  /// of that one yet.
  void leave_write(u64 g) const {
    const Stamp before = c.writers[g];
    if (strong() && (before | kStampStrong) == mine() && before != mine()) return;
    c.writers[g] = mine(), c.writer_ops[g] = u16(std::min(op.cache, kUnknownOp));
  }

  /// A plain access to a whole unit that is known to be in order.
  bool is_whole() const {
    const Watching& v = *w.watching;
    if (bytes != kUnitBytes || offset() % kUnitBytes != 0 || strong() || !v.together) return false;
    const u32 unit = u32(offset() >> kUnitShift);
    if (access == Access::read) return read_unit(op, w, unit, v.now | lane);
    return access == Access::write && write_unit(op, w, unit, v.now | lane);
  }

  void judge() const {
    if (is_whole()) return;
    const u32 shift = w.watching->granule_shift;
    const u64 first = offset() >> shift, last = (offset() + bytes - 1) >> shift;
    for (u64 unit = offset() >> kUnitShift; unit <= (offset() + bytes - 1) >> kUnitShift; ++unit)
      settle_unit(*w.watching, u32(unit));
    for (u64 g = first; g <= last; ++g) {
      against_writer(g);
      if (access == Access::read) {
        add_reader(g);
      } else {
        against_readers(g);
        c.readers[g] = 0;
        leave_write(g);
      }
    }
  }
};

/// Fences that are part of an operation, and what strong accesses hear and give.
void before_accesses(const Op& op, Warp& w) {
  if (memory_flags(op) & kReleases)
    order_fence(w, w.mask, memory_flags(op) & kBlockReach ? Reach::block : Reach::device);
}
void after_accesses(const Op& op, Warp& w, Access access, const u64* at) {
  const Reach reach = memory_flags(op) & kBlockReach ? Reach::block : Reach::device;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    if (access != Access::write) order_hear(w, lane, at[lane], reach);
    if (access != Access::read) order_give(w, lane, at[lane], reach, access == Access::update);
  }
  if (memory_flags(op) & kAcquires) order_take(w, w.mask, reach);
}

}  // namespace

Stamp merge_readers(Warp& w, Stamp known, Stamp fresh, u32 fresh_op, u32 known_op) {
  BlockChecks& c = *w.block->checks;
  const Stamp strong = known & fresh & kStampStrong;
  if (!(known & kStampSet) && warp_of(known) == warp_of(fresh)) {
    // The earlier of two reads by one warp: the later may go unnoticed, but no alarm is false.
    return (std::min(known, fresh) & ~kStampStrong) | strong;
  }
  const u64 key = u64(known) << 32 | fresh;
  if (const auto it = c.merged.find(key); it != c.merged.end()) return it->second;
  ReaderSet set;
  if (known & kStampSet) {
    if ((known & kStampThread) < c.sets.size()) set = c.sets[known & kStampThread];
  } else {
    set.by_warp[warp_of(known)] = known;
    set.ops[warp_of(known)] = u16(std::min(known_op, kUnknownOp));
  }
  Stamp& own = set.by_warp[warp_of(fresh)];
  Stamp result = known;
  if (own == 0 || own > fresh) {
    if (c.sets.size() >= kSetsMax) return known;  // the reader goes unnoticed
    own = fresh;
    set.ops[warp_of(fresh)] = u16(std::min(fresh_op, kUnknownOp));
    const u32 time = std::max(known, fresh) >> kStampTimeShift;
    result = time << kStampTimeShift | strong | kStampSet | Stamp(c.sets.size());
    c.sets.push_back(set);
  }
  return c.merged[key] = result;
}

void race_within(const Op& op, Warp& w, const u64* at, u32 bytes) {
  u8 mine[32], theirs[32];
  if (bytes > sizeof mine) return;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    for (u32 rest = left & (left - 1); rest; rest &= rest - 1) {
      const u32 m = u32(__builtin_ctz(rest));
      if (at[m] + bytes <= at[l] || at[l] + bytes <= at[m]) continue;
      if (!stored_bytes(op, w, l, bytes, mine) || !stored_bytes(op, w, m, bytes, theirs)) return;
      const u64 begin = std::max(at[l], at[m]), end = std::min(at[l], at[m]) + bytes;
      if (std::memcmp(mine + (begin - at[l]), theirs + (begin - at[m]), end - begin) == 0) continue;
      const Stamp other = w.watching->now | l;
      report(op, w, m, Access::write, at[m] - reinterpret_cast<u64>(w.shared), bytes, other,
             u16(std::min(op.cache, kUnknownOp)),
             "writes with another value in the same instruction");
      return;
    }
  }
}

void race_lanes(const Op& op, Warp& w, Access access, const u64* at, u32 bytes, u8 flags) {
  BlockChecks& c = *w.block->checks;
  const Block& block = *w.block;
  const u64 shared = reinterpret_cast<u64>(w.shared),
            local = reinterpret_cast<u64>(block.local.get()),
            local_bytes = w.local_stride * kLanes * block.launch->warps_per_block,
            parameters = reinterpret_cast<u64>(w.parameters);
  before_accesses(op, w);
  Judge judge{op, w, c, access, bytes, at, flags};
  u32 far = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    if (at[lane] - local < local_bytes || at[lane] - parameters < w.parameter_bytes) continue;
    if (at[lane] - shared >= w.shared_bytes) {
      far |= 1u << lane;
      continue;
    }
    judge.lane = lane;
    judge.judge();
  }
  if (far != 0) race_far(op, w, far, access, at, bytes, flags);
  if (flags & memory_flags(op) & kStrong) after_accesses(op, w, access, at);
}

}  // namespace attest::emulator
