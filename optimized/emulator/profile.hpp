// What launches cost, as the emulator counted it: per kernel and per source line. Values, and the
// lines of text in which they leave the emulator. Knows nothing of how anything is counted.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest::emulator {

struct Totals {
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  // Floating-point operations: an addition or a product is one, a fused multiply-add two.
  std::uint64_t f32_flops = 0, f16_flops = 0, f64_flops = 0;
  std::uint64_t tensor_flops = 0;        // 2 m n k per mma
  std::uint64_t special_operations = 0;  // ex2, lg2, rcp, sqrt, sin, tanh, div ... of any format
  std::uint64_t integer_operations = 0;  // and logic, shifts, comparisons, selections, minima
  // Instructions by threads.
  std::uint64_t conversions = 0, moves = 0, control = 0, memory = 0;
  // Global memory: bytes over threads, as the instructions ask for them; no cache is modelled.
  std::uint64_t global_read_bytes = 0, global_written_bytes = 0;
  // 32-byte sectors that the lanes of one access touch, and the fewest that could hold their bytes.
  std::uint64_t global_sectors = 0, global_sectors_least = 0;
  std::uint64_t shared_bytes = 0;
  // Passes over the 32 banks, and what they had been without conflicts.
  std::uint64_t shared_passes = 0, shared_passes_least = 0;
  std::uint64_t local_bytes = 0;
  std::uint64_t barriers = 0;            // of a block, waited at by warps
  std::uint64_t divergent_branches = 0;  // that split the lanes of a warp
  std::uint64_t idle_lanes = 0;  // 32 per warp instruction less the threads that executed it

  bool operator==(const Totals&) const = default;
  Totals& operator+=(const Totals& other);
};

/// The members of Totals, in the order of the text and of attest_emulator_totals.
struct TotalColumn {
  std::string_view name;
  std::uint64_t Totals::*value;
};
std::span<const TotalColumn> total_columns();

struct LineProfile {
  std::string place;  // "flash_prefill.cu:120", or "PTX line 7" without -lineinfo
  Totals totals;
  bool operator==(const LineProfile&) const = default;
};

struct KernelProfile {
  std::string kernel;  // readable, without parameters
  std::uint64_t launches = 0;
  // Basic blocks of the kernel and of what it calls, and those that some warp has entered.
  std::uint64_t blocks = 0, blocks_covered = 0;
  // Of the last launch: how many thread blocks it had, and what each of them took.
  std::uint64_t grid_blocks = 0, block_threads = 0, block_shared_bytes = 0;
  Totals totals = {};
  std::vector<LineProfile> lines = {};  // that were executed; most warp instructions first
  bool operator==(const KernelProfile&) const = default;
};

/// Most warp instructions first. Launches that faulted are not in it.
using Profile = std::vector<KernelProfile>;

/// A kernel's name as a person would write it, without the parameters; what is no mangled name
/// stays as it is.
std::string readable_name(const std::string& mangled);

/// Lines of fields separated by tabs. The first line names the fields:
///   record kernel place launches blocks blocks_covered grid_blocks block_threads
///   block_shared_bytes warp_instructions ... (as total_columns)
/// Then per kernel one line with record "kernel" and an empty place, followed by its lines with
/// record "line" and 0 for everything up to the totals.
std::string print(const Profile& profile);
/// Empty when `text` is not such lines; `problem` then says where and why.
std::optional<Profile> parse_profile(std::string_view text, std::string& problem);

}  // namespace attest::emulator
