// What the checkers keep where the vector code of loads and stores can reach it. Plain data, like
// machine.hpp. What it means is decided in initcheck.cpp and racecheck.cpp.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// An allocation an operation touched last. `bits`: one per byte, set when it was written;
/// nullptr: all were.
struct Region {
  u64 begin = 0, bytes = 0;
  u8* bits = nullptr;
};

/// A loaded value on its way to a store. Bit l of `whole`: all of lane l's bytes had been written;
/// otherwise partial[l] says which.
struct Carried {
  u32 whole;
  u8 partial[kLanes];
};

inline constexpr u32 kUnknownOp = 0xffff;  // of Op::cache, as far as the checkers keep it

// A stamp says who accessed a granule of shared memory, and when (in times of the block):
//   time:19 | strong | set | multi | warp:5 | lane:5
// multi: several lanes of the warp, and lane is 31. set: the low ten bits are an index into
// BlockChecks::sets, and time is the latest of the set. 0: nobody.
using Stamp = u32;
inline constexpr u32 kStampTimeShift = 13;
inline constexpr Stamp kStampStrong = 1u << 12, kStampSet = 1u << 11, kStampMulti = 1u << 10;
inline constexpr Stamp kStampLane = 31, kStampThread = 1023, kStampLow = (1u << 13) - 1;
inline constexpr u32 kStampTimeMax = (1u << 19) - 1;
// No stamp has the largest time (show_time): the granules of the unit have stamps of their own.
inline constexpr Stamp kEach = ~Stamp{0};

/// Sixteen bytes of shared memory: what most lanes move at a time (units.hpp).
struct alignas(16) Unit {
  Stamp writer = 0, reader = 0;
  u32 writer_op = kUnknownOp, reader_op = kUnknownOp;
};
inline constexpr u32 kUnitShift = 4, kUnitBytes = 1u << kUnitShift;

struct alignas(64) Watching {
  // Stamps of warp u up to known[u] are ordered before whatever this warp does now. Holds for all
  // its live lanes while `together`.
  Stamp known[kLanes];
  Stamp least;  // of known
  Stamp now;    // time and warp of an access of lane 0
  u32 together;
  u32 granule_shift;  // of shared memory: log2 of bytes per stamp
  Unit* units;
  Stamp* writers;  // by granule, where the unit says kEach
  Stamp* readers;
  u16* writer_ops;  // Op::cache of the access, to name its line; the largest: unknown
  u16* reader_ops;
  u8* shared_bits;  // a bit per byte of shared memory that was written
  u8* local_bits;   // of the whole block's local memory, which begins at local_begin
  u64 local_begin;
  Region* regions;  // by Op::cache
  Carried* carried;
  // Readers, not of this warp, that are not ordered before what it does now (a set, or several
  // lanes of a warp), and what they are when it reads as well. 0: not asked since it last learnt
  // something.
  Stamp others, others_and_own;
  u32 tracks;  // the warp holds undefined values: track_undefined before each operation
  u32 hollow;  // lanes whose store under way is of such a value, in some element
};

// --- what the vector code asks of the code compiled once ---
/// Lane by lane, whatever the address: for accesses that are not plain, or found bad.
void init_lanes(const Op& op, Warp& warp, Access access, Space space, const u64* at, u32 bytes);
/// Follows undefined values through what the operation is about to do (undefined.cpp).
void track_undefined(const Op& op, Warp& warp);
/// shfl: lane l takes what source[l] has; that of the `absent` lanes is undefined.
void shuffle_undefined(const Op& op, Warp& warp, const u32* source, u32 absent);
/// What was never written stays so in a copy.
void copy_bits(const Op& op, Warp& warp, u64 to, u64 from, u32 bytes);
/// Lane by lane as well, for races. `flags`: MemoryFlags.
void race_lanes(const Op& op, Warp& warp, Access access, const u64* at, u32 bytes, u8 flags);
/// Of lanes that all access global memory.
void race_far(const Op& op, Warp& warp, u32 lanes, Access access, const u64* at, u32 bytes,
              u8 flags);
/// Lanes of one store that wrote to the same granule: a finding when they wrote different values.
void race_within(const Op& op, Warp& warp, const u64* at, u32 bytes);
/// The stamp of the readers `known` and, besides, the lanes of `fresh`, which is of kind multi.
Stamp merge_readers(Warp& warp, Stamp known, Stamp fresh, u32 fresh_op, u32 known_op);

}  // namespace attest::emulator
