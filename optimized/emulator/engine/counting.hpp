// From counts of operations to what kernels and source lines cost. Knows decoded code and the table
// of costs; what a warp counts while it runs is in handlers_warp.cpp and handlers_count.cpp.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/costs.hpp"

namespace attest::emulator {

/// Where one host thread counts. All zero between launches, but for the patterns.
struct CountRoom {
  std::vector<InstructionCount> counts;  // by Code::counts_at
  std::vector<u8> touched;               // by page of counts
  std::vector<AccessPattern> patterns;

  explicit CountRoom(const Program& program)
      : counts(program.counts, InstructionCount{}),
        touched(program.counts / kCountPage, u8{0}),
        patterns(kPatterns, AccessPattern{}) {}
};

/// For a host thread that begins, and from one that is done.
std::shared_ptr<CountRoom> take_room(LaunchState& launch);
void give_room(LaunchState& launch, std::shared_ptr<CountRoom> room);

/// What each operation of a program is, so that counting a launch looks nothing up.
struct CountPlan {
  struct Operation {
    u32 line = 0;  // index into places
    Cost cost;
    bool counted = false;  // stands for the instruction; others of it only move data
    u32 block = kNone;     // of the basic block that it begins
  };
  std::string kernel;
  std::vector<std::string> places;
  std::vector<Operation> operations;  // as counts
  u32 blocks = 0;
  u32 coverage_at = 0;  // where coverage.hpp keeps them
};

/// What a kernel has cost in all launches so far.
struct KernelCounts {
  std::shared_ptr<const CountPlan> plan;
  u64 launches = 0;
  u64 grid_blocks = 0, block_threads = 0, block_shared_bytes = 0;  // of the last one
  std::vector<Totals> lines;                                       // by CountPlan::places
  std::vector<bool> covered;                                       // by basic block
};

/// The plan of the program, made at the first call. Not for use by two threads at once.
std::shared_ptr<const CountPlan> plan_of(const Program& program, const InstructionSet& isa);
/// Adds what the launch cost, unless it has faulted, and shows which blocks it ran. Leaves the
/// rooms as clean as they were.
void add_launch(KernelCounts& kernel, LaunchState& launch, bool good);

Totals totals_of(const KernelCounts& kernel);
KernelProfile profile_of(const KernelCounts& kernel);

}  // namespace attest::emulator
