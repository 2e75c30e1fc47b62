// Subjects built beside the test: our kernels and the mutants, in worker processes on the emulator.
// Test code; no program includes this.
#pragma once
#include <filesystem>
#include <fstream>
#include <sstream>
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

/// A line of mutants/catalogue.txt: name, who kills it, what is wrong.
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
    MutantBeside& mutant = mutants.emplace_back();
    mutant.name = line.substr(0, line.find('\t'));
    mutant.plugin = folder / (mutant.name + ".so");
    const std::size_t begin = line.find('\t') + 1;
    std::istringstream names(line.substr(begin, line.find('\t', begin) - begin));
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      mutant.killed_by.push_back(name);
    }
  }
  return mutants;
}

}  // namespace attest
