// What a process that runs by itself on the emulator leaves behind: a file of text records in the
// folder that the environment variable ATTEST_RECORD names. Every line is written whole and at
// once, so that a crash loses nothing. README.md states the format; whoever reads it is elsewhere.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/device.hpp"

namespace attest::emulator::runtime {

class Record {
 public:
  static Record& instance();

  /// Whether somebody asked for it. Otherwise the functions below do nothing.
  bool on() const { return !folder_.empty(); }
  /// The first line after those that say which process this is.
  void options(const DeviceOptions& options);
  /// Each (kind, kernel, source line) once.
  void finding(const CheckerFinding& finding);
  /// Something of the program's that the emulator cannot do; `kind` is load or call. Each text
  /// once.
  void obstacle(std::string_view kind, std::string_view text);
  /// A kernel has run, or begun to.
  void began(const std::string& kernel);
  void ended(const std::string& kernel, std::uint64_t warp_instructions);
  /// The process ends as it should.
  void close();

 private:
  Record();
  void line(const std::vector<std::string>& fields);
  void begin();
  void count(const std::string& kernel);

  struct Counts {
    std::uint64_t launches = 0, warp_instructions = 0;
  };
  std::mutex mutex_;
  std::string folder_, options_;
  int process_ = 0;   // that the file belongs to: a forked one begins a file of its own
  std::string path_;  // opened for each line: programs may close descriptors they did not open
  std::map<std::string, Counts> kernels_;
  std::set<std::string> written_;
};

}  // namespace attest::emulator::runtime
