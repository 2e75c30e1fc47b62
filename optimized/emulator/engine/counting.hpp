// From counts of operations to what kernels and source lines cost. Knows decoded code and the table
// of costs; what a warp counts while it runs is in handlers_warp.cpp and handlers_count.cpp.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/costs.hpp"

namespace attest::emulator {

/// Where one host thread counts.
struct CountRoom {
  std::vector<InstructionCount> counts;  // by Code::counts_at
  std::vector<AccessPattern> patterns;

  explicit CountRoom(const Program& program)
      : counts(program.counts, InstructionCount{}), patterns(kPatterns, AccessPattern{}) {}
};

/// Adds a host thread's counts to those of the launch.
void add_counts(LaunchState& launch, const CountRoom& room);

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
  std::vector<u32> code_starts;       // Code::counts_at, ascending
  u32 blocks = 0;
  u32 coverage_at = 0;  // where coverage.hpp keeps them
};

/// What a kernel has cost in all launches so far.
struct KernelCounts {
  std::shared_ptr<const CountPlan> plan;
  u64 launches = 0;
  std::vector<Totals> lines;  // by CountPlan::places
  std::vector<bool> covered;  // by basic block
};

/// The plan of the program, made at the first call. Not for use by two threads at once.
std::shared_ptr<const CountPlan> plan_of(const Program& program, const InstructionSet& isa);
/// Executions by warps of each basic block in the launch.
std::vector<u64> block_executions(const CountPlan& plan, const LaunchState& launch);
/// Returns what the launch adds.
Totals add_launch(KernelCounts& kernel, const LaunchState& launch);

KernelProfile profile_of(const KernelCounts& kernel);

}  // namespace attest::emulator
