// What `attest run` says at the end, and what it means for the exit code.
#include <fmt/format.h>

#include <string.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "properties/ask.hpp"
#include "reports/program_record.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr std::size_t kNameWidth = 60;  // leaves room for the numbers on a line of 100

/// A reason that the testbed could not tell rather than that the program is wrong.
bool is_ours(const ProgramFinding& finding) {
  return finding.kind == kUnsupported;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string kinds_of(const std::vector<const ProgramFinding*>& findings) {
  std::vector<std::string> kinds;
  for (const ProgramFinding* finding : findings) {
    if (std::ranges::find(kinds, finding->kind) == kinds.end()) kinds.push_back(finding->kind);
  }
  return joined(kinds, ", ");
}

/// The first obstacle of a kind, or nullptr.
const Obstacle* obstacle_of(const ProgramRun& run, std::string_view kind) {
  for (const ProcessRecord& process : run.processes) {
    for (const Obstacle& obstacle : process.obstacles) {
      if (obstacle.kind == kind) return &obstacle;
    }
  }
  return nullptr;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  const char* meaning = sigdescr_np(number);
  if (name == nullptr || meaning == nullptr) return fmt::format("signal {}", number);
  return fmt::format("SIG{} ({})", name, meaning);
}

std::string end_of_program(const ProgramEnd& end) {
  if (end.signal != 0) return fmt::format("the program was ended by {}", signal_name(end.signal));
  return fmt::format("the program's exit code is {}", end.exit_code);
}

/// Who died, where somebody did; empty otherwise.
std::string death_of(const ProgramRun& run) {
  if (run.end.signal != 0) return end_of_program(run.end);
  for (const ProcessRecord& process : run.processes) {
    if (process.died == 0) continue;
    return fmt::format("process {} ({}) was ended by {}; {}", process.process,
                       one_line(process.command), signal_name(process.died),
                       end_of_program(run.end));
  }
  return {};
}

/// A process that launched something and ended in silence: killed, or by _exit. One that became
/// another program goes on in a later record.
const ProcessRecord* silent_process(const ProgramRun& run) {
  for (std::size_t i = 0; i < run.processes.size(); ++i) {
    const ProcessRecord& process = run.processes[i];
    const auto later = run.processes.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool goes_on = std::any_of(later, run.processes.end(), [&](const ProcessRecord& other) {
      return other.process == process.process;
    });
    const bool silent = !process.ended && process.died == 0 && !process.kernels.empty();
    if (silent && !goes_on) return &process;
  }
  return nullptr;
}

/// Why nothing at all can be said of the program's kernels; empty when something can.
std::string nothing_proven(const ProgramRun& run) {
  if (run.processes.empty()) {
    return "the program never called the CUDA runtime: it may have ended before, or have a runtime "
           "of its own inside (nvcc's default); link it, or the library with the kernels, with "
           "nvcc -cudart shared";
  }
  if (kernels_of(run).empty()) return "no kernel was launched, so nothing was checked";
  return {};
}

/// Names of templates can be longer than a screen; program.json has them whole.
std::string clipped(const std::string& name) {
  const std::string line = one_line(name);
  return line.size() <= kNameWidth ? line : line.substr(0, kNameWidth - 3) + "...";
}

std::string told(const ProgramFinding& finding) {
  return one_line(fmt::format("{}: {}", finding.kind, finding.what));
}

std::string word_of_options(const ProcessRecord& process, std::string_view name) {
  const std::size_t at = process.options.find(fmt::format("{}=", name));
  if (at == std::string::npos) return {};
  const std::string rest = process.options.substr(at + name.size() + 1);
  return rest.substr(0, rest.find(' '));
}

}  // namespace

std::vector<const ProgramFinding*> findings_of(const ProgramRun& run) {
  std::vector<const ProgramFinding*> findings;
  std::set<std::tuple<std::string, std::string, std::string, std::uint32_t>> known;
  for (const ProcessRecord& process : run.processes) {
    for (const ProgramFinding& finding : process.findings) {
      const std::string where = finding.line != 0 ? finding.file : finding.what;
      if (known.insert({finding.kind, finding.kernel, where, finding.line}).second) {
        findings.push_back(&finding);
      }
    }
  }
  return findings;
}

std::vector<KernelCounts> kernels_of(const ProgramRun& run) {
  std::map<std::string, KernelCounts> by_name;
  for (const ProcessRecord& process : run.processes) {
    for (const KernelCounts& counts : process.kernels) {
      KernelCounts& sum = by_name[counts.kernel];
      sum.kernel = counts.kernel;
      sum.launches += counts.launches;
      sum.warp_instructions += counts.warp_instructions;
    }
  }
  std::vector<KernelCounts> kernels;
  for (auto& [name, counts] : by_name) kernels.push_back(std::move(counts));
  std::ranges::stable_sort(kernels, std::ranges::greater{}, &KernelCounts::warp_instructions);
  return kernels;
}

ProgramConclusion conclusion_of(const ProgramRun& run) {
  const std::vector<const ProgramFinding*> findings = findings_of(run);
  std::vector<const ProgramFinding*> wrong;
  for (const ProgramFinding* finding : findings) {
    if (!is_ours(*finding)) wrong.push_back(finding);
  }
  if (!wrong.empty()) {
    return {1, fmt::format("the program is wrong: {} ({}); {}", counted(wrong.size(), "finding"),
                           kinds_of(wrong), end_of_program(run.end))};
  }
  if (!findings.empty()) {
    return {2, "could not tell: a kernel came to an instruction that is not emulated"};
  }
  if (const Obstacle* crash = obstacle_of(run, "crash")) {
    return {2, fmt::format("could not tell: {}; please report it, with the program; {}",
                           one_line(crash->what), end_of_program(run.end))};
  }
  if (const Obstacle* obstacle = obstacle_of(run, "load")) {
    return {2, fmt::format("could not tell: {}", one_line(obstacle->what))};
  }
  if (const std::string why = nothing_proven(run); !why.empty()) {
    return {2, fmt::format("could not tell: {}; {}", why, end_of_program(run.end))};
  }
  const Obstacle* missing = obstacle_of(run, "call");
  if (missing != nullptr && run.end.exit_code != 0) {
    return {2, fmt::format("could not tell: {}, and {}", one_line(missing->what),
                           end_of_program(run.end))};
  }
  if (const std::string death = death_of(run); !death.empty()) {
    // A process that nobody waited for, or whose end the program passed over, left its work undone.
    const int code = run.end.exit_code != 0 ? run.end.exit_code : 2;
    return {code, fmt::format("the program died: {}; nothing was found before", death)};
  }
  std::string seen;
  if (const ProcessRecord* silent = silent_process(run)) {
    seen =
        fmt::format(", as far as was seen: process {} ended without a last word", silent->process);
  }
  return {run.end.exit_code,
          fmt::format("no findings in {}{}; {}",
                      counted(run.schedules, run.schedules == 1 ? "run" : "schedule"), seen,
                      end_of_program(run.end))};
}

std::string text_of(const ProgramRun& run) {
  std::string text;
  const auto say = [&](const std::string& line) { text += fmt::format("attest: {}\n", line); };
  std::set<const ProgramFinding*> first;
  for (const ProgramFinding* finding : findings_of(run)) first.insert(finding);
  std::set<std::string> obstacles;
  for (const ProcessRecord& process : run.processes) {
    std::string where;
    if (run.schedules > 1)
      where = fmt::format(" (schedule {})", word_of_options(process, "schedule"));
    if (run.schedules == 1 && run.processes.size() > 1) {
      where = fmt::format(" (process {}: {})", process.process, one_line(process.command));
    }
    for (const ProgramFinding& finding : process.findings) {
      if (first.contains(&finding)) say(told(finding) + where);
    }
    for (const Obstacle& obstacle : process.obstacles) {
      if (obstacles.insert(obstacle.what).second) say(one_line(obstacle.what) + where);
    }
  }
  const auto is_limit = [](const ProgramFinding* finding) { return finding->kind == "limit"; };
  if (std::ranges::any_of(first, is_limit)) {
    say("a launch that needs more instructions may have them: --limit N, 0 for any number");
  }
  const std::vector<KernelCounts> kernels = kernels_of(run);
  std::size_t widest = std::string_view("kernel").size();
  for (const KernelCounts& counts : kernels) widest = std::max(widest, counts.kernel.size());
  widest = std::min(widest, kNameWidth);
  if (!kernels.empty())
    say(fmt::format("{:<{}}  {:>8}  {:>17}", "kernel", widest, "launches", "warp instructions"));
  for (const KernelCounts& counts : kernels) {
    say(fmt::format("{:<{}}  {:>8}  {:>17}", clipped(counts.kernel), widest, counts.launches,
                    counts.warp_instructions));
  }
  for (const std::string& line : hottest_lines(profile_of(run))) say(line);
  for (const ProcessRecord& process : run.processes) {
    if (!process.ended && !process.kernels.empty() && run.schedules == 1) {
      say(fmt::format("process {} ended without a last word: its counts may be higher",
                      process.process));
    }
  }
  say(conclusion_of(run).reason);
  return text;
}

}  // namespace attest
