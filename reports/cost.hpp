// What a call of a subject costs, and the least time that a machine could take for it. Values and
// arithmetic; knows neither subjects nor how anything is counted.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/profile.hpp"

namespace attest {

/// A GPU as far as a roofline knows it.
struct Machine {
  std::string_view name;
  int architecture;  // 90 for sm_90
  double multiprocessors, hertz;
  double tensor_flops;  // per second, dense, f16 and bf16
  double memory_bytes;  // per second
  // Per multiprocessor and cycle.
  double warp_instructions, f32_flops, special_operations, shared_bytes;
  // Of a multiprocessor, for occupancy.
  int registers, threads, blocks;
  std::int64_t shared_capacity, shared_reserved;  // reserved: per block
};
std::span<const Machine> machines();

/// What one kernel of a call takes of a multiprocessor.
struct KernelUse {
  int registers = 0;  // 0: unknown
  std::int64_t spill_bytes = 0;
};

/// One kernel in one call.
struct KernelCost {
  emulator::KernelProfile profile;
  std::vector<KernelUse> use;  // per machine; empty: nothing assembled it
};

/// One call.
struct CallCost {
  std::string operation, problem;  // problem: words of a case line
  std::string declined;            // why there is nothing else
  std::int64_t least_bytes = 0;    // that have to be read and written, each once
  std::int64_t tiled_bytes = 0;    // the same with K and V once per tile of queries; 0: no tiles
  std::vector<KernelCost> kernels;
};

/// Seconds below which the machine cannot do it, whatever else is in its favour, and what decides.
struct Roofline {
  double seconds = 0;
  std::string_view bound;  // "tensor", "memory", "issue", "f32", "special" or "shared"
};
/// Memory counts least_bytes: what a cache as large as needed would let through.
Roofline roofline(const CallCost& call, const Machine& machine);

/// Blocks that are on a multiprocessor together; 0: unknown.
int resident_blocks(const KernelCost& kernel, std::size_t machine);

/// Of the issued warp instructions, those that are mma.m16n8k16.
double tensor_share(const emulator::Totals& totals);

/// The table as Markdown.
std::string cost_table(std::span<const CallCost> calls);

}  // namespace attest
