// A thread block that runs: its warps, shared and local memory, barriers. A block is an object that
// can be left and resumed at any operation, so that one host thread can run many of them in turn.
#pragma once
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/async.hpp"
#include "optimized/emulator/engine/code.hpp"
#include "optimized/emulator/engine/schedule.hpp"

namespace attest::emulator {

struct BlockChecks;   // checks/state.hpp
struct LaunchChecks;  // checks/state.hpp

/// What all blocks of a launch share.
struct LaunchState {
  const Program* program = nullptr;
  const InstructionSet* isa = nullptr;
  Memory* memory = nullptr;
  u32 grid[3] = {1, 1, 1}, extent[3] = {1, 1, 1};
  u32 threads_per_block = 1, warps_per_block = 1;
  u64 blocks = 1;
  u64 shared_bytes = 0, dynamic_shared_bytes = 0;
  u64 local_bytes = 0;  // per lane
  std::vector<u8> parameters;
  DeviceOptions options;
  bool cooperative = false;
  u64 number = 0;        // of the launch, since the device was configured
  u64 resident_max = 1;  // blocks that take turns at a time
  u64 clock = 0;         // %clock at its beginning; goes on when blocks share it
  bool shares_clock = false;
  u64 grid_workspace = 0;  // address, when cooperative

  // The first fault by block number: the same for every number of host threads.
  std::mutex mutex;
  u64 fault_block = ~u64{0};
  CheckerFinding fault;
  std::atomic<u64> fault_block_seen{~u64{0}};
  // Findings that do not stop the launch: one per kind and operation, of the first block.
  struct Noted {
    u64 block;
    CheckerFinding finding;
  };
  std::map<std::tuple<std::string, u32, u32>, Noted> noted;  // kind, code, instruction

  std::shared_ptr<LaunchChecks> checks;  // nullptr: races are not checked
  std::atomic<s64> instructions_left{0};
  bool limited = false;
  std::vector<std::pair<u64, std::string>> printed;  // by block number
  std::atomic<u64> warp_instructions{0};
  std::vector<std::shared_ptr<CountRoom>> rooms;  // of host threads that are done
};

/// How often a block that polls came back to a state it was in before (spinning.cpp).
struct Spin {
  u64 state = 0, turns = 0, epoch = 0;
  u32 returns = 0;
  bool spins = false;  // for ever
};

enum class BarrierUse : u8 { syncs, arrives, reduces };

struct Barrier {
  BarrierUse use = BarrierUse::syncs;
  u32 arrived = 0;  // threads
  u32 needed = 0;   // threads; 0: all of the block
  u32 popc = 0;     // bar.red
  bool all = true, any = false;
};

constexpr u32 kBarriers = 16;

struct Block {
  LaunchState* launch = nullptr;
  CountRoom* room = nullptr;  // of the host thread that runs the block; nullptr: nothing is counted
  u64 number = 0;
  u32 index[3] = {0, 0, 0};
  std::vector<Warp> warps;
  std::vector<u8> shared_room;  // a little more, to align it
  std::unique_ptr<u8, void (*)(void*)> local{nullptr, std::free};
  std::vector<Interval> intervals;
  Barrier barriers[kBarriers];
  u32 live_threads = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // in use and spare
  std::vector<std::unique_ptr<u8, void (*)(void*)>> frame_storage;
  std::vector<Frame*> spare_frames;
  std::vector<Frame*> entry_frames;  // by warp
  std::string printed;
  std::shared_ptr<BlockChecks> checks;  // nullptr: neither initcheck nor racecheck
  bool faulted = false;
  bool wrote = false;  // since last asked
  bool idled = false;  // polled in its last turn, and wrote nothing
  Spin spin;
  std::size_t next_warp = 0;
  Schedule schedule;
  Async async;
  u64 clock = 0;
};

enum class Progress : u8 { finished, paused, faulted };

/// Prepares a block for `number`, reusing whatever it already owns.
void start_block(Block& block, LaunchState& launch, u64 number);
/// Runs it for about `quantum` warp instructions. `polled` says whether it looked at memory that
/// another block may change.
Progress run_block(Block& block, s64 quantum, bool& polled);

/// Records a fault at an operation of a warp and stops the block. Returns nullptr, for handlers.
const Op* fault(Warp& warp, const Op& op, u32 lane, std::string_view kind, std::string_view what);

/// Records a finding that does not stop the block; one per kind and operation is kept.
void note(Warp& warp, const Op& op, u32 lane, std::string_view kind, std::string_view what);
/// What was noted, by block and then by place in the program.
std::vector<CheckerFinding> taken_findings(LaunchState& launch);

/// "k.cu:12", or "PTX line 7".
std::string line_text(const LoadedModuleState& module, const ptx::Instruction& instruction);
/// The same of an operation that a warp executes.
std::string line_of(const Warp& warp, const Op& op);
/// "kernel k, block (0,0,0), thread (1,0,0), k.cu:12".
std::string place_text(const Warp& warp, const Op& op, u32 lane);
/// "k.cu:12 (st.shared.f32)": the access to memory with that Op::cache, or nothing.
std::string access_text(const LaunchState& launch, u32 cache);

// --- fragments (warp.cpp) ---
/// Loads the next runnable fragment of the warp, or leaves warp.resume at nullptr.
const Op* next_fragment(Warp& warp);
/// Sets the current fragment aside, to wait.
void park(Warp& warp, const Op* pc, Wait wait, u8 barrier, u32 members);
/// The lanes of warp.mask end.
const Op* end_lanes(Warp& warp, const Op& op);
void load_frame(Warp& warp, Frame* frame);
/// Lets another runnable fragment have the next quantum.
const Op* rotate(Warp& warp, const Op* pc);
bool has_runnable(const Warp& warp);

// --- barriers (barrier.cpp) ---
const Op* arrive_at_barrier(Warp& warp, const Op& op, u32 barrier, u32 needed, bool waits,
                            u32 predicate_bits);
/// Threads ended: barriers that waited for all of the block may be complete.
void barriers_after_exit(Block& block);
std::string describe_waiting(const Block& block);
/// Nobody in the block can run: records who waits where, and why.
Progress report_deadlock(Block& block);

// --- calls (calls.cpp) ---
const Op* call(const Op& op, Warp& warp);
const Op* return_from(const Op& op, Warp& warp);
Frame* new_frame(Block& block, const Code& code, Frame* parent, const Op* call_site,
                 const Op* return_to, u32 local_base);
/// vprintf, in text_output.cpp.
u64 argument(const Warp& warp, const CallSite& site, std::size_t i, u32 lane);
const Op* print_formatted(const Op& op, Warp& warp, const CallSite& site);
const Op* fail_assertion(const Op& op, Warp& warp, const CallSite& site);

/// A block that polls had a turn in which nobody wrote anything; `epoch` names the time since
/// anybody did. True when it has come back to the same state so often that it will do so for ever.
bool spins_for_ever(Block& block, u64 epoch);
/// Every block that may run does so: records who polls where.
void report_spinning(Block& block, u64 resident, u64 unstarted);
/// Whether blocks may run at the same time on several host threads, since none can see another:
/// what they compute is then the same in every order.
bool blocks_are_independent(const LaunchState& launch);
/// Runs all blocks, over several host threads when they are independent; true when no fault
/// occurred.
bool run_launch(LaunchState& launch, unsigned threads);

}  // namespace attest::emulator
