// What a block has under way: copies that were issued and not yet waited for, arrivals that follow
// them, and mbarriers. Says when data move and who may not touch what until then. Knows no
// instruction; handlers_async.cpp and handlers_mbarrier.cpp do.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// What one execution of cp.async left under way: at most one copy per lane. The data move at the
/// wait or earlier, but the destination stays forbidden until the wait.
struct Copies {
  const Op* op;
  u32 warp;
  u32 bytes;      // per lane
  u32 lanes;      // not waited for
  u32 moved;      // of those: the data are there already
  u32 shown;      // of those: an arrival at an mbarrier has told of them
  u64 serial;     // order of issue in the block
  u32 low, high;  // the destinations lie within
  u64 from_low, from_high;
  std::array<u64, kLanes> from;    // host addresses
  std::array<u32, kLanes> to;      // offsets in shared memory
  std::array<u8, kLanes> given;    // bytes to read; the others become zero
  std::array<u32, kLanes> group;   // how many groups the thread had committed before
  std::array<u32, kLanes> object;  // the mbarrier that was told of the arrival, or kNone
  std::array<u64, kLanes> phase;   // of that mbarrier
};

/// cp.async.mbarrier.arrive: comes about when all copies the thread issued before have moved.
struct Arrival {
  const Op* op;
  u32 warp, lane;
  u32 object;
  u64 before;  // Copies::serial
};

/// The truth about an mbarrier; the 64 bits in shared memory only show it.
struct MBarrier {
  u32 arrivals = 0;  // that each phase needs
  u32 pending = 0;   // that the current phase lacks
  s64 bytes = 0;     // tx-count
  u64 phase = 0;
  u32 maker = 0, made = 0;  // the thread that initialised it, and the race checker's time of that
};

/// Whoever polled an mbarrier in vain since something last happened in the block.
struct Poll {
  const Op* op = nullptr;
  u32 lanes = 0, object = 0;
  u64 phase = 0, epoch = 0;
};

struct Async {
  std::vector<std::vector<Copies>> copies;         // by warp
  std::vector<std::array<u32, kLanes>> committed;  // groups, by warp and lane
  std::vector<Arrival> arrivals;
  std::map<u32, MBarrier> objects;  // by offset
  std::vector<u64> forbidden;       // a bit per 4 bytes of shared memory
  Forbidden bounds;
  std::vector<Poll> polls;  // by warp
  std::set<const Op*> reported;
  u64 serial = 0, epoch = 0, quiet = 0;

  /// Something happened that others may wait for.
  void progress() { ++epoch, quiet = 0; }
};

/// How an mbarrier's address is written: Op::choice.
enum ObjectAddress : u8 { kObjectWide = 1, kObjectGeneric = 2 };

/// Before a block starts.
void reset_async(Block& block);
/// After copies or mbarriers came or went: what an access has to be compared with.
void refresh_forbidden(Block& block);
/// Copies were issued: their destinations are forbidden from now on, and their sources to writers.
void begin_copies(Block& block, const Copies& copies);
/// Marks or clears the words of [offset, offset + bytes).
void forbid(Async& async, u32 offset, u32 bytes, bool on);
/// Moves the data of those lanes that have not moved.
void move_data(Block& block, Copies& copies, u32 lanes);
/// The lanes of one record have been waited for: their data are there and may be touched.
void land(Block& block, Copies& copies, u32 lanes);
/// The lanes have waited until at most `left_pending` of their groups are under way; with
/// `uncommitted`, until nothing is.
void land_groups(Warp& warp, u32 lanes, u32 left_pending, bool uncommitted);
/// Lands what an mbarrier's completed phases vouch for.
void land_after_phase(Block& block, u32 object);
/// Under a seed: some data move now, and some arrivals come about.
void deliver_some(Block& block);
/// The arrival at this index comes about, after those its thread asked for earlier: their copies
/// move, then the mbarriers count them. How many arrivals that were.
std::size_t bring_about(Block& block, std::size_t arrival);
/// Threads end: copies that nobody can wait for any more are a finding.
void end_copies(Warp& warp, u32 lanes);
/// The block ends: the same for those left to an mbarrier.
void end_async(Block& block);
/// Counts arrivals on the current phase, and completes it when that was the last.
void count_arrivals(Block& block, u32 object, u32 arrivals, s64 bytes);

/// The lane polled the object in vain.
void note_poll(Warp& warp, const Op& op, u32 lane, u32 object);
/// True when everybody in the block has polled in vain for too long: a fault was recorded.
bool report_endless_polling(Block& block);

}  // namespace attest::emulator
