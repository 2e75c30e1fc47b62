// What programs left behind that ran by themselves on the emulator (`attest run`): read from the
// records of their processes, and rendered. Nothing here starts a program.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/profile.hpp"

namespace attest {

struct ProgramFinding {
  std::string kind, kernel, file, what;
  std::array<std::uint32_t, 3> block{}, thread{};
  std::uint32_t line = 0;  // 0: unknown
  bool operator==(const ProgramFinding&) const = default;
};

/// Something of the program's that the emulator cannot do.
struct Obstacle {
  // load: code cannot be used; call: a function is not emulated; crash: a fault of the emulator's
  // own
  std::string kind;
  std::string what;
  bool operator==(const Obstacle&) const = default;
};

struct KernelCounts {
  std::string kernel;
  std::uint64_t launches = 0, warp_instructions = 0;
  bool operator==(const KernelCounts&) const = default;
};

/// One process that called the CUDA runtime.
struct ProcessRecord {
  std::int64_t process = 0, parent = 0;
  std::string command, options;
  std::vector<ProgramFinding> findings;
  std::vector<Obstacle> obstacles;
  std::vector<KernelCounts> kernels;  // first launched first
  emulator::Profile profile;          // when counters were on, and it ended
  bool ended = false;                 // said a last word: counts are complete
  int died = 0;                       // the signal that ended it; 0: none that it lived to tell
  bool operator==(const ProcessRecord&) const = default;
};

/// The text is whole lines, of which the last may be cut off where the process died. Throws Error
/// naming file and line for anything else.
ProcessRecord read_process_record(std::string_view text, const std::string& file_name);
/// read(print(x)) == x.
std::string print(const ProcessRecord& record);

/// How the program itself ended.
struct ProgramEnd {
  bool started = false;
  int exit_code = 0;  // 128 + signal when it was killed
  int signal = 0;     // 0: none
};

/// A program run once, or under several schedules, and what its processes left.
struct ProgramRun {
  std::string version, numerics, checks;
  std::vector<std::string> command;
  std::uint64_t schedule = 0, schedules = 1;  // the first seed, and how many were run
  double seconds = 0;
  ProgramEnd end;  // of the last run
  std::vector<ProcessRecord> processes;
};

/// 1: there are findings. 2: the testbed could not tell. Else the program's own exit code. `reason`
/// is one sentence.
struct ProgramConclusion {
  int exit_code = 2;
  std::string reason;
};
ProgramConclusion conclusion_of(const ProgramRun& run);

/// Every finding of every process, told once.
std::vector<const ProgramFinding*> findings_of(const ProgramRun& run);
/// Counts per kernel over all processes, most warp instructions first.
std::vector<KernelCounts> kernels_of(const ProgramRun& run);

/// What was counted, per kernel and line, over all processes; most warp instructions first.
emulator::Profile profile_of(const ProgramRun& run);
/// The hottest lines of each kernel, for a terminal.
std::vector<std::string> hottest_lines(const emulator::Profile& profile);

/// Lines for a terminal, each begun with "attest: ".
std::string text_of(const ProgramRun& run);
/// program.json: schema 1 is documented in README.md.
std::string json_of(const ProgramRun& run);

}  // namespace attest
