// What a running warp is made of: decoded operations, frames, fragments, lanes.
// Plain data, shared by the code that is compiled once per instruction set and by the code that is
// compiled once. So nothing here may have an inline function that a linker could pick from the
// wrong instruction set: all are forced inline.
#pragma once
#include <cstdint>

namespace attest::emulator {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

inline constexpr unsigned kLanes = 32;
inline constexpr u32 kAllLanes = 0xffffffffu;
inline constexpr u32 kNone = ~0u;

struct NumericModel;
struct Op;
struct Warp;
struct Block;
struct Code;
struct Watching;  // checks/watching.hpp

/// Executes one operation on the current fragment and returns the next one, or nullptr when the
/// warp has nothing more to run for now (finished, waiting, or stopped by a fault).
using Handler = const Op* (*)(const Op&, Warp&);

/// A decoded operation. Operands are byte offsets into the frame's slots: narrow ones hold 32 lanes
/// of 4 bytes, wide ones 32 lanes of 8; bit 0 set means the constant pool of the code. Predicates
/// are one 32-bit word each, a bit per lane, and their operands are plain indices.
struct Op {
  Handler run;
  Handler inner;  // what `run` wraps, when it is a guard
  u32 d, a, b, c;
  s64 immediate;
  union {
    const u32* list;   // further operands
    const Op* target;  // of a branch
  };
  u32 origin;  // index into ptx::Function::body
  u32 cache;   // index into the worker's intervals
  u32 guard;   // predicate index, or kNone
  u8 guard_negated;
  u8 count;   // elements of a vector access
  u8 choice;  // small argument of the handler: which special register, which atomic
  u8 flags;
};
static_assert(sizeof(Op) == 72 || sizeof(Op) == 64);

enum OpFlag : u8 {
  kPolls = 1,      // reads memory that another block may change
  kUncounted = 2,  // not an instruction of the PTX text
  kAligned = 4,    // .aligned: all lanes of the warp must execute it together
  kHasCount = 8,   // bar: has a thread count
  kNoResult = 16,
  kHasMemoryFlags = 32,  // choice holds MemoryFlags
};

/// What Op::choice says of a load, store or atomic.
enum MemoryFlag : u8 {
  kStrong = 1,      // volatile, relaxed, acquire, release, atomic: may meet others of its kind
  kAcquires = 2,    // and what it learns is known at once
  kReleases = 4,    // and what was known before it is given away
  kBlockReach = 8,  // .cta
  kUnjudged = 16,   // initcheck does not look: parameters of functions, red.and, red.or
  kCarries = 32,    // a copy: op.list goes on with count numbers of carried values, or kNone
  kValues = 64,     // st: the slots hold what is stored
};

[[gnu::always_inline]] inline u8 memory_flags(const Op& op) {
  return op.flags & kHasMemoryFlags ? op.choice : u8{0};
}

/// One activation of a function by some lanes. Lanes that call from the same place share it.
struct Frame {
  Frame* parent;
  const Code* code;
  const Op* return_to;
  const Op* call_site;
  u8* narrow[2];  // slots, constants (minus one: the tag bit)
  u8* wide[2];
  u32* predicates;
  u32 local_base, local_top;  // this frame's part of each lane's local memory
  u32 depth;
  u32 lanes;  // still inside
  u8* storage;
  u64 storage_bytes;
};

/// whole_warp: at an .aligned operation, until every live lane of the warp stands at it.
enum class Wait : u8 { none, lanes, whole_warp, warp_barrier, block_barrier };

/// What one operation did; kept only when counters are on. `begun` and `begun_lanes` are counted
/// per straight run of operations: plus one where it begins, minus one behind its end. So their
/// sums from the first operation of a code on are executions, by warps and by lanes.
struct InstructionCount {
  s64 begun, begun_lanes;
  s64 undone, undone_lanes;  // counted by a run, yet not executed
  u64 divergent;             // branches that parted lanes
  // By lanes; what a generic address points to is found out at each access.
  u64 global_bytes, sectors, least_sectors;
  u64 shared_bytes, passes, least_passes;
  u64 local_bytes;
};

/// The addresses of an access that was looked at before, relative to the first lane's, and what it
/// came to: most operations have the same pattern each time.
struct alignas(64) AccessPattern {
  const Op* op;
  u64 kind;  // lanes, bytes per lane, space, and where in its sector the first lane lies
  u32 taken, least;
  alignas(64) u32 distance[kLanes];
};
/// Counts are gone through a page at a time, so that a short launch of a long kernel is cheap.
constexpr u32 kCountPage = 32;
constexpr u32 kPatterns = 1024;

/// What looks at every access to memory (watch.hpp). Which of them are on is one word per warp, so
/// that an access without any costs one test.
enum WatchFlag : u8 {
  kWatchInit = 1,
  kWatchRace = 2,
  kWatchCount = 4,
  kWatchPending = 8,  // set while the block has asynchronous copies under way, or mbarriers
};

/// Bounds of what ordinary accesses must not touch for now, to pass by it quickly: destinations of
/// copies under way and mbarriers as offsets in shared memory, sources as host addresses (writes).
struct Forbidden {
  u32 low[2] = {~0u, ~0u}, high[2] = {0, 0};
  u64 source_low = ~u64{0}, source_high = 0;
};

/// Lanes that stand at the same place. `wait` says why they cannot run.
struct Fragment {
  const Op* pc;
  Frame* frame;
  u32 mask;
  Wait wait;
  u8 barrier;
  u32 members;  // lanes waited for
};

/// The part of an allocation that an operation touched last: addresses low + [0, count) may be
/// the start of an access of that operation's width.
struct Interval {
  u64 low, count;
};

struct alignas(64) Warp {
  u8* narrow[2];
  u8* wide[2];
  u32* predicates;
  u32 mask;           // lanes that execute the current operation
  u32 active;         // lanes of the current fragment
  const Op* join_at;  // lowest pc among the other runnable fragments of this depth
  u8* shared;
  u64 shared_bytes;
  u8* local;  // lane-major
  u64 local_stride;
  const u8* parameters;
  u64 parameter_bytes;
  Interval* intervals;
  Block* block;
  Frame* frame;
  const Op* resume;  // where the current fragment goes on; nullptr: none is loaded
  u32 live;          // lanes that exist and have not exited
  u32 existing;      // lanes that the block's size gives this warp
  u32 index;         // within the block
  u32 other_count;
  u64 uncounted;
  u64* clock;  // of the block: advances with what it executes
  const Forbidden* forbidden;
  u64 grid_workspace;        // what %envreg1 and %envreg2 tell: of a cooperative launch, or 0
  u8 watch;                  // WatchFlag
  u8 polled;                 // touched memory that other blocks may change, since last asked
  u8 wrote;                  // changed memory, since last asked
  u8 rotated;                // the current fragment is not the one of lowest pc
  u8 lane_first, lane_skip;  // order of the lanes of one instruction: both 0, or as a seed has it
  Fragment others[kLanes];
  alignas(64) u8 scratch[kLanes * 8];
  alignas(64) u32 thread[3][kLanes];  // %tid
  Watching* watching;                 // what the checkers keep for this warp; nullptr: none is on
  const NumericModel* numerics;
  // Of the current frame's code, an element per operation; or nullptr: nothing is counted.
  InstructionCount* counts;
  u8* touched;         // of that code, a byte per kCountPage of them: a run begins or ends here
  const Op* first_op;  // of that code
  AccessPattern* patterns;  // kPatterns of them
  const u32* grid;          // nctaid[3]
  const u32* block_extent;  // ntid[3]
  const u32* block_index;   // ctaid[3]
};

/// The n-th lane in the order in which the lanes of one instruction take effect.
[[gnu::always_inline]] inline u32 ordered_lane(const Warp& w, u32 n) {
  return (w.lane_first + n * (w.lane_skip + 1u)) % kLanes;
}

// Address windows of the spaces that are no host memory. Bits 56..63 are never set in a host
// address, so no window can collide with one.
inline constexpr u64 kSharedWindow = 0x0100'0000'0000'0000;
inline constexpr u64 kLocalWindow = 0x0200'0000'0000'0000;
inline constexpr u64 kParamWindow = 0x0300'0000'0000'0000;
inline constexpr u64 kCodeWindow = 0x0400'0000'0000'0000;
inline constexpr u64 kWindowBytes = u64{1} << 32;

enum class Space : u8 { generic, global, shared, local, param, constant };

/// Where the lanes of one access point. same, consecutive: `first` is lane 0's place and the others
/// have the same or follow it. scattered: `at` has every lane's. offsets: lane l's place is
/// first + offset[l]; so are places in shared memory that are not the same or consecutive.
enum class Spread : u8 { same, consecutive, scattered, offsets, fault };

struct Places {
  u8* first = nullptr;
  union {
    alignas(64) u64 at[kLanes];
    alignas(64) u32 offset[kLanes];
  };
  Places() {}
};

enum class Access : u8 { read, write, update };

/// An operation of the current frame's code was counted `executions` times too often, or for lanes
/// that did not execute it.
[[gnu::always_inline]] inline void undo_count(Warp& w, const Op& op, u32 executions, u32 lanes) {
  if (w.counts == nullptr) [[likely]]
    return;
  w.counts[&op - w.first_op].undone += executions;
  w.counts[&op - w.first_op].undone_lanes += __builtin_popcount(lanes);
}

// --- what the handlers ask of the code that is compiled once (warp.cpp, memcheck.cpp, ...) ---
/// The current fragment wants to go on at `pc`; fragments with precedence go first, equals merge.
const Op* go_to(Warp& warp, const Op* pc);
/// The lanes `taken` go to the target, the others to the next operation.
const Op* split(Warp& warp, const Op& op, const Op* target, u32 taken);
/// The current fragment has come to a .sync operation without all lanes its member masks name: it
/// waits for them, or goes on when they stand here already. `unnamed` lanes execute the operation
/// though their own mask leaves them out, which is a fault.
const Op* wait_for_lanes(Warp& warp, const Op& op, u32 members, u32 unnamed);
/// The current fragment has come to an .aligned operation and is not the whole warp: it waits for
/// the other live lanes, or goes on with those that stand here already. Lanes that never come are a
/// finding. A handler begins with: if (!whole_warp_here(w)) return wait_for_warp(w, op);
const Op* wait_for_warp(Warp& warp, const Op& op);
[[gnu::always_inline]] inline bool whole_warp_here(const Warp& w) {
  return w.active == w.live;
}
/// Lanes come to an .aligned operation, but not all of the warp: they wait for the others, or it is
/// a fault at once when those can never come.
const Op* gather_warp(Warp& warp, const Op& op);
/// Checks and translates `at` (generic or global addresses) for the lanes of warp.mask.
/// False: a fault was recorded.
bool find_places(const Op& op, Warp& warp, u64* at, u32 bytes, Space space);
/// An access came near something forbidden: records a finding for each lane that touches it. `at`
/// are host addresses.
void judge_forbidden(const Op& op, Warp& warp, Access access, const u64* at, u32 bytes);
/// Records the fault of an access outside shared, local or param memory.
void fault_place(const Op& op, Warp& warp, u32 lane, u64 offset, u32 bytes, Space space);

}  // namespace attest::emulator
