// run: any CUDA program on the emulator. The emulating libcudart is loaded into the program and its
// children before any other, so that every libcudart they ask for by name is that one; what its
// processes saw comes back in files.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <tuple>

#include "fuzz/run.hpp"
#include "optimized/emulator/runtime/linkage.hpp"
#include "reference/text.hpp"
#include "reports/commands/child.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/emulation.hpp"
#include "reports/commands/standard_streams.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/commands/temporary_folder.hpp"
#include "reports/formats.hpp"
#include "reports/program_record.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A folder for one run: the libraries under names that the loader can be told, and the records.
class Workplace {
 public:
  Workplace() {
    const fs::path emulator = program_folder() / "emulator";
    for (const char* major : {"12", "13"}) {
      const fs::path library = emulator / fmt::format("libcudart.so.{}", major);
      if (!fs::exists(library)) {
        throw Error(fmt::format("there is no {}: build attest again", library.string()));
      }
      libraries_.push_back((folder_.path() / library.filename()).string());
      fs::create_symlink(library, libraries_.back());
    }
    fs::create_symlink(emulator / "libcudart.so.13", folder_.path() / "libcudart.so");
    fs::create_directory(records());
  }
  fs::path records() const { return folder_.path() / "records"; }

  std::map<std::string, std::string> environment(const emulator::DeviceOptions& options) const {
    const auto value = [](const char* name) {
      const char* text = std::getenv(name);
      return std::string(text == nullptr ? "" : text);
    };
    // What the user preloads (a sanitizer's runtime, say) may insist on being first.
    std::vector<std::string> preloaded = libraries_, folders{folder_.path().string()};
    if (const std::string theirs = value("LD_PRELOAD"); !theirs.empty()) {
      preloaded.insert(preloaded.begin(), theirs);
    }
    if (const std::string theirs = value("LD_LIBRARY_PATH"); !theirs.empty()) {
      folders.push_back(theirs);
    }
    return {{"ATTEST_EMULATOR", print(options)},
            {"ATTEST_RECORD", records().string()},
            {"LD_PRELOAD", joined(preloaded, ":")},
            {"LD_LIBRARY_PATH", joined(folders, ":")}};
  }

  /// The records that came since the last call, oldest process first.
  std::vector<ProcessRecord> collect() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(records())) files.push_back(entry.path());
    // File times are coarse; where two are the same, the process with the lower number was first.
    std::ranges::sort(files, {}, [](const fs::path& file) {
      const std::string name = file.filename().string();
      return std::tuple(fs::last_write_time(file), name.size(), name);
    });
    std::vector<ProcessRecord> processes;
    for (const fs::path& file : files) {
      std::ifstream stream(file, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      // A process that was killed while it made the file has said nothing.
      if (text.find('\n') != std::string::npos) {
        processes.push_back(read_process_record(text, file.string()));
      }
      fs::remove(file);
    }
    return processes;
  }

 private:
  TemporaryFolder folder_{"run"};
  std::vector<std::string> libraries_;
};

/// What can be told before anything runs. Scripts, and programs that load their kernels later, say
/// nothing here.
void refuse_what_cannot_run(const fs::path& program) {
  constexpr std::string_view kElf{"\177ELF"}, kScript{"#!"};
  std::string magic(kElf.size(), '\0');
  std::ifstream(program, std::ios::binary).read(magic.data(), kElf.size());
  if (magic.starts_with(kScript)) return;
  if (magic != kElf) {
    throw Error(
        fmt::format("{}: is no program: neither an ELF file nor a script that begins with #!",
                    program.string()));
  }
  const std::string why =
      emulator::emulation_obstacle(emulator::inspect_linkage(program, emulator::ElfKind::program));
  if (!why.empty()) {
    throw Error(fmt::format("{} cannot run on the emulator: {}", program.string(), why));
  }
}

void write_program_reports(const RunCommand& options, const ProgramRun& run) {
  if (!options.json.empty()) write_whole(options.json, json_of(run));
  if (options.report.empty()) return;
  const fs::path report = options.report;
  require_writable_folder(report);
  write_whole(report / "program.json", json_of(run));
  write_whole(report / "program.txt", text_of(run));
}

}  // namespace

int run(const RunCommand& options) {
  emulator::DeviceOptions device = chosen(options.emulation);
  device.threads = options.threads;
  device.instruction_limit = options.limit;
  device.counters = options.counters;
  if (options.program.empty()) throw Error("run: which program? attest run -- PROGRAM ARGS");
  if (options.json == "-")
    throw Error("--json: standard output is the program's own; name a file, ./- if it must be");
  if (options.schedules == 0) throw Error("--schedules: 0 runs show nothing");
  const fs::path program = program_named(options.program.front());
  refuse_what_cannot_run(program);
  std::optional<FolderLock> lock;
  if (!options.report.empty()) {
    require_writable_folder(options.report);
    lock.emplace(options.report);
  }
  if (!options.json.empty()) require_writable_file(options.json);
  const Workplace workplace;

  ProgramRun result;
  result.version = version();
  result.numerics = print(device.numerics);
  result.checks = print(device.checks);
  result.command = options.program;
  result.schedule = options.schedule;
  std::string schedule = fmt::format("{}", result.schedule);
  if (options.schedules > 1) {
    schedule += fmt::format("..{}", result.schedule + options.schedules - 1);
  }
  say(stderr, "{}, numerics {}, schedule {}, checks {}: running {}\n", version_text(),
      result.numerics, schedule, result.checks, one_line(joined(options.program, " ")));
  const auto begun = std::chrono::steady_clock::now();
  for (result.schedules = 0; result.schedules < options.schedules;) {
    device.schedule = result.schedule + result.schedules++;
    result.end =
        run_child(program, options.program, workplace.environment(device), workplace.records());
    std::ranges::move(workplace.collect(), std::back_inserter(result.processes));
    if (conclusion_of(result).exit_code != 0 || signal_seen() != 0) break;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  say(stderr, "{}", text_of(result));
  return despite_trouble(conclusion_of(result).exit_code,
                         [&] { write_program_reports(options, result); });
}

}  // namespace attest
