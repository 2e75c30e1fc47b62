// Subjects built beside the test: our kernels and the mutants, in worker processes on the emulator.
// Test code; no program includes this.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "optimized/plugin/worker.hpp"

namespace attest {

inline std::filesystem::path folder_beside() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

inline Subject opened(const std::filesystem::path& plugin) {
  WorkerOptions options;
  options.plugin = plugin;
  options.device = DeviceChoice::emulated;
  return open_plugin(options);
}

inline Subject our_kernels() {
  return opened(folder_beside() / "plugins" / "attest_kernels.so");
}

/// A line of mutants/catalogue.txt.
struct MutantBeside {
  std::string name;
  std::vector<std::string> killed_by;
  std::filesystem::path plugin;
};

inline std::vector<MutantBeside> mutants_beside() {
  std::vector<MutantBeside> mutants;
  const std::filesystem::path folder = folder_beside() / "mutants";
  std::ifstream file(folder / "catalogue.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t first = line.find('\t');
    const std::string names = line.substr(first + 1, line.find('\t', first + 1) - first - 1);
    MutantBeside& mutant = mutants.emplace_back();
    mutant.name = line.substr(0, first);
    mutant.plugin = folder / (mutant.name + ".so");
    for (std::size_t begin = 0; begin <= names.size();) {
      const std::size_t end = std::min(names.find(',', begin), names.size());
      mutant.killed_by.push_back(names.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return mutants;
}

}  // namespace attest
