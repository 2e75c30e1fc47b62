// What the checkers know of a running block and of a launch: who knows what of whom, which bytes of
// shared and local memory were written, who accessed what last. Data and its upkeep; the judgements
// are in initcheck.cpp, racecheck.cpp and global_races.cpp, the events in order.cpp.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/undefined.hpp"
#include "optimized/emulator/engine/checks/watching.hpp"
#include "optimized/emulator/engine/checks/world.hpp"
#include "optimized/emulator/engine/order.hpp"

namespace attest::emulator {

/// What somebody knows: of the own block, and of others.
struct Clock {
  TimesRef own;
  WorldRef others;
};
using ClockRef = std::shared_ptr<const Clock>;

/// What a lane knows, and what it has made ready to give or to take. A lane's own accesses are not
/// in it: it always knows those.
struct Knowledge {
  ClockRef known;
  // By Reach: what the last fence made visible to whoever reads a strong write that follows: a
  // clock, and the lane's own accesses up to a time.
  ClockRef visible[2];
  u32 visible_time[2] = {0, 0};
  WorldRef heard;  // by strong reads; known at the next fence or barrier
};

struct WarpOrder {
  bool together = true;  // all lanes know what lane 0 knows (but each its own visible_time)
  std::vector<Knowledge> lanes = std::vector<Knowledge>(1);  // or 32
  Knowledge& of(u32 lane) { return lanes[together ? 0 : lane]; }
};

/// What was given to a place by releases.
struct Given {
  // To threads of the block of that number, and to everyone; the second is part of the first.
  WorldRef within, beyond;
  u64 block = 0;
};

/// The lanes of several warps that read a granule; at most one entry per warp: its earliest.
struct ReaderSet {
  Stamp by_warp[kLanes] = {};  // 0: none; kind single or multi
  u16 ops[kLanes] = {};
};

struct Gathering {  // at a barrier for a part of the block
  bool used = false;
  Knowledge sum;
};

struct BlockChecks {
  std::vector<Watching> watching;  // by warp
  // initcheck
  std::vector<u8> shared_bits, local_bits;
  std::vector<Region> regions;
  std::vector<Carried> carried;
  Undefined undefined;
  // racecheck: shared memory
  std::vector<Unit> units;
  std::vector<Stamp> writers, readers;
  std::vector<u16> writer_ops, reader_ops;
  std::vector<ReaderSet> sets;
  std::unordered_map<u64, Stamp> merged;  // two stamps to the set of both
  u32 stamp_base = 0;                     // time 0 of stamps
  // order
  u32 time = 1;
  bool plain = true;  // nobody has used a fence or a strong access: known.own is all there is
  std::vector<WarpOrder> order;
  Gathering barriers[kBarriers];
  std::unordered_map<u64, Given> given;  // to places in shared memory
  struct {
    ClockRef from;
    WorldRef with;
    ClockRef both;
  } joined;                  // the last one: lanes often learn the same
  std::vector<u8> reported;  // by Op::cache: 1 initcheck, 2 racecheck
};

/// Who accessed a cell of global memory, and when.
///   time:26 | block:24 | beyond | strong | wide | multi | warp:5 | lane:5
/// strong alone: .cta. multi: several lanes of the warp. wide: several warps of the block.
using FarStamp = u64;

struct FarCell {
  FarStamp writer = 0;
  FarStamp readers[2] = {0, 0};
  u16 writer_op = 0, reader_ops[2] = {0, 0};
};

/// The cells of a page of memory, as wide as what its first access moved, and divided when a
/// narrower one comes: 1 << shift bytes each. What all blocks read is read so often that fetching
/// its cells would take most of the time; so four cells that no reader of a third block changes are
/// summed up in one word: the two blocks + 1, 0 when the cells have to be looked at, or all ones
/// before the first access, when they hold anything.
struct FarPage {
  u32 shift = 0;
  std::vector<FarCell> cells;
  std::vector<u64> quiet;
};
using FarPages = std::unordered_map<u64, std::unique_ptr<FarPage>>;  // by page of memory

struct LaunchChecks {
  std::unordered_map<u64, Given> given;  // to places elsewhere
  WorldJoins joins;
  FarPages pages;
  std::vector<std::unique_ptr<FarPage>> spare;  // of earlier launches: room costs most of a launch
  struct Near {
    u64 number = ~u64{0};
    FarPage* page = nullptr;
  };
  Near near[64];  // by page modulo 64
  u64 bytes = 0;
};

/// Whatever earlier launches did is ordered before the next one.
void start_launch_checks(LaunchChecks& checks, u32 threads_per_block);

/// The first use of a block object, and each start of a block.
void build_checks(Block& block);
void start_checks(Block& block);
/// Local memory of a frame that lanes enter holds nothing.
void forget_local(Warp& warp, u32 lanes, u64 base, u64 bytes);
/// A value was put into a lane's local memory by a call.
void fill_local(Warp& warp, u32 lane, u64 base, u64 bytes);
/// Lets the vector code see what a warp knows now. Called after every change.
void show_knowledge(Block& block, u32 warp);
void show_time(Block& block);

/// The known time of a thread of a block (which may be foreign) to a lane.
u32 known_time(Warp& warp, u32 lane, u64 block, u32 thread);
/// The largest over the threads of a range.
u32 known_time_of_any(Warp& warp, u32 lane, u64 block, u32 first, u32 count);

/// Strong accesses to a place: what it was given is heard; what is visible is given.
void order_hear(Warp& warp, u32 lane, u64 place, Reach reach);
void order_give(Warp& warp, u32 lane, u64 place, Reach reach, bool continues);

/// What acquires say beside the access: what was heard is known from now on.
void order_take(Warp& warp, u32 lanes, Reach reach);

/// True when this kind was not yet reported for the operation by this block.
bool report_once(Warp& warp, const Op& op, u8 kind);
/// The bytes a store writes for a lane, when the operation says so (kValues).
bool stored_bytes(const Op& op, const Warp& warp, u32 lane, u32 bytes, u8* to);

}  // namespace attest::emulator
