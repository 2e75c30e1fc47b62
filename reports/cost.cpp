// Roofline and table. All figures of machines stand in kMachines, with their source.
#include "reports/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace attest {
namespace {

// NVIDIA H100 and H200 Tensor Core GPU data sheets, SXM (989.4 TFLOP/s dense in f16 and bf16, 3.35
// and 4.8 TB/s); the clock at which the H100 architecture white paper states its peaks. Per cycle
// and multiprocessor: CUDA C++ Programming Guide, "Arithmetic Instructions" and "Technical
// Specifications per Compute Capability", 9.0; four schedulers issue one warp instruction each.
constexpr Machine kHopper{.name = "H100",
                          .architecture = 90,
                          .multiprocessors = 132,
                          .hertz = 1.83e9,
                          .tensor_flops = 989.4e12,
                          .memory_bytes = 3.35e12,
                          .warp_instructions = 4,
                          .f32_flops = 256,
                          .special_operations = 16,
                          .shared_bytes = 128,
                          .registers = 65536,
                          .threads = 2048,
                          .blocks = 32,
                          .shared_capacity = 228 * 1024,
                          .shared_reserved = 1024};
constexpr Machine with(Machine machine, std::string_view name, double memory_bytes) {
  machine.name = name;
  machine.memory_bytes = memory_bytes;
  return machine;
}
constexpr Machine kMachines[] = {kHopper, with(kHopper, "H200", 4.8e12)};

emulator::Totals sum_of(const CallCost& call) {
  emulator::Totals sum;
  for (const KernelCost& kernel : call.kernels) sum += kernel.profile.totals;
  return sum;
}

double quotient(double a, double b) {
  return b > 0 ? a / b : 0;
}

std::string ratio(double value) {
  return value > 0 ? fmt::format("{:.2f}", value) : "-";
}

std::string row_of(const CallCost& call, const KernelCost& kernel, bool first) {
  const emulator::KernelProfile& profile = kernel.profile;
  const emulator::Totals& t = profile.totals;
  const emulator::Totals whole = sum_of(call);
  const auto bytes = static_cast<double>(whole.global_read_bytes + whole.global_written_bytes);
  std::string row =
      fmt::format("| {} | {} ", first ? call.operation : "", first ? call.problem : "");
  row += fmt::format("| {} | {} x {} | {} ", profile.kernel.substr(profile.kernel.rfind(':') + 1),
                     profile.grid_blocks, profile.block_threads, profile.block_shared_bytes);
  if (kernel.use.empty()) {
    row += "| - | - | - ";
  } else {
    const KernelUse& use = kernel.use.front();
    row += fmt::format("| {} | {} | {} ", use.registers, use.spill_bytes,
                       resident_blocks(kernel, 0) * static_cast<int>(profile.block_threads) / 32);
  }
  row += fmt::format("| {} | {} ",
                     first ? ratio(quotient(bytes, static_cast<double>(call.least_bytes))) : "",
                     first ? ratio(quotient(bytes, static_cast<double>(call.tiled_bytes))) : "");
  row += fmt::format("| {} | {} | {:.0f} % ",
                     ratio(quotient(static_cast<double>(t.global_sectors),
                                    static_cast<double>(t.global_sectors_least))),
                     t.shared_passes - t.shared_passes_least, 100 * tensor_share(t));
  for (const Machine& machine : kMachines) {
    const Roofline roof = roofline(call, machine);
    row += first ? fmt::format("| {:.2f} us, {} ", roof.seconds * 1e6, roof.bound) : "| ";
  }
  return row + "|\n";
}

}  // namespace

std::span<const Machine> machines() {
  return kMachines;
}

Roofline roofline(const CallCost& call, const Machine& machine) {
  const emulator::Totals t = sum_of(call);
  const double per_cycle = machine.multiprocessors * machine.hertz;
  const auto seconds = [&](std::uint64_t count, double rate) {
    return static_cast<double>(count) / (rate * per_cycle);
  };
  constexpr double kBytesOfPass = 128;  // of shared memory: 32 banks of four bytes
  const Roofline candidates[] = {
      {static_cast<double>(t.tensor_flops) / machine.tensor_flops, "tensor"},
      {static_cast<double>(call.least_bytes) / machine.memory_bytes, "memory"},
      {seconds(t.warp_instructions, machine.warp_instructions), "issue"},
      {seconds(t.f32_flops, machine.f32_flops), "f32"},
      {seconds(t.special_operations, machine.special_operations), "special"},
      {static_cast<double>(t.shared_passes) * kBytesOfPass / (machine.shared_bytes * per_cycle),
       "shared"}};
  return *std::ranges::max_element(candidates, {}, &Roofline::seconds);
}

int resident_blocks(const KernelCost& kernel, std::size_t machine) {
  if (kernel.use.empty() || kernel.profile.block_threads == 0) return 0;
  // CUDA C++ Programming Guide, "Hardware Multithreading": registers go to warps 256 at a time.
  constexpr int kRegisterUnit = 256, kWarp = 32;
  const Machine& m = kMachines[machine];
  const int warps = (static_cast<int>(kernel.profile.block_threads) + kWarp - 1) / kWarp;
  const int registers = (kernel.use[machine].registers * kWarp + kRegisterUnit - 1) /
                        kRegisterUnit * kRegisterUnit * warps;
  const auto shared =
      static_cast<std::int64_t>(kernel.profile.block_shared_bytes) + m.shared_reserved;
  return std::min({m.blocks, m.threads / (warps * kWarp), m.registers / std::max(registers, 1),
                   static_cast<int>(m.shared_capacity / shared)});
}

double tensor_share(const emulator::Totals& totals) {
  constexpr double kFlops = 2.0 * 16 * 8 * 16;  // of one mma.m16n8k16
  return quotient(static_cast<double>(totals.tensor_flops) / kFlops,
                  static_cast<double>(totals.warp_instructions));
}

std::string cost_table(std::span<const CallCost> calls) {
  std::string text =
      "| operation | problem | kernel | blocks x threads | shared bytes | registers | spilled "
      "| warps/SM | bytes/least | bytes/tiled | sectors/least | bank conflicts | mma ";
  for (const Machine& machine : kMachines) text += fmt::format("| {} at least ", machine.name);
  text += "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---";
  for (std::size_t i = 0; i < std::size(kMachines); ++i) text += "|---";
  text += "|\n";
  for (const CallCost& call : calls) {
    if (!call.declined.empty()) {
      text +=
          fmt::format("| {} | {} | nothing: {} |\n", call.operation, call.problem, call.declined);
    }
    bool first = true;
    for (const KernelCost& kernel : call.kernels)
      text += row_of(call, kernel, std::exchange(first, false));
  }
  return text;
}

}  // namespace attest
