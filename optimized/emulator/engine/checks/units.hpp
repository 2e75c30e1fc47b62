// Shared memory as the race checker sees most of it: sixteen aligned bytes that lanes access as a
// whole have one stamp, not one per granule. A narrower access gives the granules theirs again
// (settle_unit); the next whole one takes them back. Knows no reports: what is not in order is left
// to racecheck.cpp, and so is all that is not plain. Forced inline, as in machine.hpp.
#pragma once
#include "optimized/emulator/engine/checks/watching.hpp"

namespace attest::emulator {

[[gnu::always_inline]] inline u16 short_op(const Op& op) {
  return u16(op.cache < kUnknownOp ? op.cache : kUnknownOp);
}

/// Whether the access that left `s` is ordered before that of `mine`, as far as can be told from
/// what the warp knows. Holds only while the lanes are together.
[[gnu::always_inline]] inline bool is_known(const Watching& v, Stamp s, Stamp mine) {
  if (s <= v.least) return true;
  if (s & kStampSet) return false;
  return s <= v.known[(s >> 5) & (kLanes - 1)] ||
         (!(mine & kStampMulti) && ((s ^ mine) & (kStampMulti | kStampThread)) == 0);
}

/// The same of a unit, whose granules may have stamps of their own.
[[gnu::always_inline]] inline bool is_unit_known(const Watching& v, Stamp s, const Stamp* each,
                                                 u32 unit, Stamp mine) {
  if (s != kEach) return is_known(v, s, mine);
  const u32 shift = kUnitShift - v.granule_shift;
  for (u32 g = unit << shift; g < (unit + 1) << shift; ++g) {
    if (!is_known(v, each[g], mine)) return false;
  }
  return true;
}

/// The granules of a unit have stamps of their own from now on.
[[gnu::always_inline]] inline void settle_unit(const Watching& v, u32 unit) {
  Unit& u = v.units[unit];
  const u32 shift = kUnitShift - v.granule_shift, first = unit << shift,
            end = first + (1u << shift);
  if (u.writer != kEach) {
    for (u32 g = first; g < end; ++g) v.writers[g] = u.writer, v.writer_ops[g] = u16(u.writer_op);
  }
  if (u.reader != kEach) {
    for (u32 g = first; g < end; ++g) v.readers[g] = u.reader, v.reader_ops[g] = u16(u.reader_op);
  }
  u.writer = u.reader = kEach;
}

/// Readers that are not ordered before `mine` are joined by it.
[[gnu::always_inline]] inline Stamp join_unit(const Op& op, Warp& w, const Unit& u, Stamp mine) {
  Watching& v = *w.watching;
  constexpr Stamp kSeveral = kStampMulti | kStampLane;
  const Stamp known = u.reader & kStampSet ? u.reader : u.reader | kSeveral;
  if (known == v.others) return v.others_and_own;
  const Stamp both = merge_readers(w, known, mine | kSeveral, op.cache, u.reader_op);
  const Stamp warp = kStampThread & ~kStampLane;
  if ((u.reader & kStampSet) || ((u.reader ^ mine) & warp) != 0)
    v.others = known, v.others_and_own = both;
  return both;
}

/// Judges and remembers a plain access to a whole unit. False: it is not known to be in order, and
/// nothing was changed.
[[gnu::always_inline]] inline bool read_unit(const Op& op, Warp& w, u32 unit, Stamp mine) {
  const Watching& v = *w.watching;
  Unit& u = v.units[unit];
  if (u.writer > v.least && !is_unit_known(v, u.writer, v.writers, unit, mine)) return false;
  if (u.reader == mine) return true;
  if (u.reader <= v.least || is_unit_known(v, u.reader, v.readers, unit, mine)) {
    u.reader = mine;
  } else {
    if (u.reader == kEach) return false;
    u.reader = join_unit(op, w, u, mine);
  }
  u.reader_op = short_op(op);
  return true;
}
[[gnu::always_inline]] inline bool write_unit(const Op& op, Warp& w, u32 unit, Stamp mine) {
  const Watching& v = *w.watching;
  Unit& u = v.units[unit];
  if (u.writer > v.least && !is_unit_known(v, u.writer, v.writers, unit, mine)) return false;
  if (u.reader > v.least && !is_unit_known(v, u.reader, v.readers, unit, mine)) return false;
  u.writer = mine, u.writer_op = short_op(op);
  u.reader = 0;
  return true;
}

}  // namespace attest::emulator
