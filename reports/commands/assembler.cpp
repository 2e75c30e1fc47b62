// ptxas reads a file and tells on standard error.
#include "reports/commands/assembler.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "optimized/emulator/runtime/linkage.hpp"
#include "reference/text.hpp"
#include "reports/commands/temporary_folder.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  return access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
}

std::string quoted(const fs::path& path) {
  std::string text = "'";
  for (const char c : path.string()) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What `command` prints, standard error included.
std::string output_of(const std::string& command, int& status) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw Error("no program can be started: " + command);
  std::string text;
  char piece[4096];
  for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof piece, pipe)) > 0;) {
    text.append(piece, got);
  }
  status = pclose(pipe);
  return text;
}

/// The number before `unit` in a line such as "Used 71 registers, 32768 bytes smem"; 0 without one.
std::int64_t number_before(const std::string& line, const std::string& unit) {
  const std::size_t at = line.find(" " + unit);
  if (at == std::string::npos) return 0;
  std::size_t first = at;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
  return first == at ? 0 : std::stoll(line.substr(first, at - first));
}

}  // namespace

std::optional<fs::path> assembler() {
  if (const char* named = std::getenv("ATTEST_PTXAS")) {
    if (is_program(named)) return named;
    throw Error(fmt::format("ATTEST_PTXAS: {} cannot be executed", named));
  }
  if (is_program(ATTEST_BUILT_WITH_PTXAS)) return ATTEST_BUILT_WITH_PTXAS;
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / "ptxas")) return fs::path(folder) / "ptxas";
  }
  return std::nullopt;
}

Resources read_resources(const std::string& printed) {
  Resources resources;
  KernelResources* kernel = nullptr;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const std::size_t at = line.find(kEntry); at != std::string::npos) {
      const std::size_t first = at + kEntry.size();
      kernel = &resources[line.substr(first, line.find('\'', first) - first)];
    }
    if (kernel == nullptr) continue;
    if (line.find("bytes stack frame") != std::string::npos) {
      kernel->stack_bytes = number_before(line, "bytes stack frame");
      kernel->spill_bytes =
          number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
    }
    if (line.find("Used ") != std::string::npos) {
      kernel->registers = static_cast<int>(number_before(line, "registers"));
      kernel->static_shared_bytes = number_before(line, "bytes smem");
    }
  }
  return resources;
}

Resources assemble(const fs::path& ptxas, const fs::path& plugin, int architecture) {
  Resources all;
  const TemporaryFolder folder("ptxas");
  for (const std::string& text : emulator::embedded_ptx(plugin)) {
    const fs::path source = folder.path() / "kernels.ptx";
    std::ofstream(source, std::ios::binary) << text;
    int status = 0;
    const std::string printed =
        output_of(fmt::format("{} -v -arch=sm_{} -o {} {}", quoted(ptxas), architecture,
                              quoted(folder.path() / "kernels.cubin"), quoted(source)),
                  status);
    if (status != 0) {
      throw Error(fmt::format("{} cannot assemble {} for sm_{}: {}", ptxas.string(),
                              plugin.string(), architecture,
                              printed.substr(0, printed.find('\n'))));
    }
    Resources kernels = read_resources(printed);
    if (kernels.empty() && text.find(".entry") != std::string::npos) {
      throw Error(fmt::format("{} names none of the kernels of {}: is it ptxas? It said: {}",
                              ptxas.string(), plugin.string(),
                              printed.empty() ? "nothing" : printed.substr(0, printed.find('\n'))));
    }
    all.merge(kernels);
  }
  return all;
}

}  // namespace attest
