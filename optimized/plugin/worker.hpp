// A subject in a process of its own: a plugin is loaded by the program attest-worker, fed through
// shared memory, and may crash, hang or exit without taking attest with it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "optimized/emulator/options.hpp"
#include "optimized/emulator/profile.hpp"
#include "reference/subject.hpp"

namespace attest {

// Enumerators are spelled as they are printed.
enum class DeviceChoice : std::uint8_t { automatic, cuda, emulated };

struct WorkerOptions {
  std::filesystem::path plugin;
  DeviceChoice device = DeviceChoice::automatic;
  // Then a call that does nothing is a fault: hung. Of one still at work nobody can tell: Error.
  double case_seconds = 20;
  std::uint64_t memory_bytes = 4ULL << 30;  // of the worker process
  emulator::DeviceOptions emulator;         // its instruction limit follows from each call
  bool counters = true;                     // Reply::counters; on top of what `emulator` says
};

/// Starts a worker and asks the plugin to describe itself. The Subject owns the worker; after a
/// fault the next call starts a fresh one. Not for use by two threads at once.
/// Throws Error when the plugin is missing, is no library, lacks the symbol, has another ABI
/// version, links cudart statically, has no PTX, crashes while loading, or when `cuda` is asked
/// for and there is no driver.
Subject open_plugin(const WorkerOptions& options);

/// A Subject whose kernels can be looked at one by one.
struct ProfiledPlugin {
  Subject subject;
  /// What its launches have cost since this was last asked, kernel by kernel, without source lines;
  /// empty when nothing is counted.
  std::function<emulator::Profile()> profile;
};
ProfiledPlugin open_profiled_plugin(const WorkerOptions& options);

}  // namespace attest
