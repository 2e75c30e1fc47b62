// The counters of `attest run --counters`: summed over processes, and the hottest lines as a table.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/program_record.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr std::size_t kLinesShown = 5;  // per kernel; program.json has all

std::string share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? ""
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// How often what was needed at least; empty when nothing was.
std::string times(std::uint64_t count, std::uint64_t least) {
  return least == 0
             ? ""
             : fmt::format("{:.2f} x", static_cast<double>(count) / static_cast<double>(least));
}

std::string row(std::string_view place, const emulator::Totals& t, std::uint64_t whole) {
  constexpr std::uint64_t kLanes = 32;
  const std::uint64_t flops = t.f32_flops + t.f16_flops + t.f64_flops + t.tensor_flops;
  std::string line = fmt::format(
      "  {:<32}  {:>12}  {:>7}  {:>7}  {:>12}  {:>12}  {:>7}  {:>7}", one_line(place),
      t.warp_instructions, share_of(t.warp_instructions, whole),
      share_of(t.idle_lanes, kLanes * t.warp_instructions), flops,
      t.global_read_bytes + t.global_written_bytes, times(t.global_sectors, t.global_sectors_least),
      times(t.shared_passes, t.shared_passes_least));
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

emulator::Profile profile_of(const ProgramRun& run) {
  std::map<std::string, emulator::KernelProfile> kernels;
  std::map<std::pair<std::string, std::string>, emulator::Totals> lines;
  for (const ProcessRecord& process : run.processes) {
    for (const emulator::KernelProfile& kernel : process.profile) {
      emulator::KernelProfile& sum = kernels[kernel.kernel];
      sum.kernel = kernel.kernel;
      sum.launches += kernel.launches;
      sum.blocks = std::max(sum.blocks, kernel.blocks);
      sum.blocks_covered = std::max(sum.blocks_covered, kernel.blocks_covered);
      sum.grid_blocks = kernel.grid_blocks;
      sum.block_threads = kernel.block_threads;
      sum.block_shared_bytes = kernel.block_shared_bytes;
      sum.totals += kernel.totals;
      for (const emulator::LineProfile& line : kernel.lines) {
        lines[{kernel.kernel, line.place}] += line.totals;
      }
    }
  }
  const auto instructions = [](const auto& each) { return each.totals.warp_instructions; };
  for (const auto& [key, totals] : lines) kernels[key.first].lines.push_back({key.second, totals});
  emulator::Profile profile;
  for (auto& [name, kernel] : kernels) {
    std::ranges::stable_sort(kernel.lines, std::ranges::greater{}, instructions);
    profile.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(profile, std::ranges::greater{}, instructions);
  return profile;
}

std::vector<std::string> hottest_lines(const emulator::Profile& profile) {
  std::vector<std::string> text;
  if (profile.empty()) return text;
  text.push_back(fmt::format("  {:<32}  {:>12}  {:>7}  {:>7}  {:>12}  {:>12}  {:>7}  {:>7}",
                             "hottest lines", "warp instr.", "share", "idle", "flops",
                             "global bytes", "sectors", "banks"));
  for (const emulator::KernelProfile& kernel : profile) {
    const std::uint64_t whole = kernel.totals.warp_instructions;
    text.push_back(fmt::format("{}, {} of {} basic blocks", one_line(kernel.kernel),
                               kernel.blocks_covered, kernel.blocks));
    text.push_back(row("all lines", kernel.totals, whole));
    for (std::size_t i = 0; i < std::min(kLinesShown, kernel.lines.size()); ++i) {
      text.push_back(row(kernel.lines[i].place, kernel.lines[i].totals, whole));
    }
  }
  return text;
}

}  // namespace attest
