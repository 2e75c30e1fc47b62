// The CUDA runtime of this process: a real libcudart, or the emulating one, chosen before the
// plugin is loaded so that the plugin's NEEDED entry resolves to it by SONAME. Needs no CUDA
// header: the few functions used have a C ABI that has not changed since CUDA 4.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "optimized/emulator/runtime/attest_emulator.h"
#include "optimized/plugin/worker.hpp"

namespace attest {

class CudaRuntime {
 public:
  struct Choice {
    DeviceChoice device = DeviceChoice::automatic;
    unsigned major = 13;   // of the libcudart the plugin asks for
    std::string emulator;  // its options, as print(DeviceOptions) writes them
  };
  /// Loads it. Throws Error when there is none, or no driver for `cuda`.
  explicit CudaRuntime(const Choice& choice);

  bool emulated() const { return restrict_ != nullptr; }
  /// Options for the emulator, as print(DeviceOptions) writes them; its launches count from 0
  /// again. Throws Error for options that it does not know.
  void configure(const std::string& options);
  /// For the crash handler; nullptr on a GPU.
  decltype(&attest_emulator_own_fault) own_fault() const { return own_fault_; }
  /// What Description::numerics says.
  const std::string& numerics() const { return numerics_; }
  /// Why a fat binary of the plugin cannot run on the emulator, or nothing.
  std::optional<std::string> load_error() const;

  enum class Direction : int { to_device = 1, to_host = 2 };  // as cudaMemcpyKind numbers them
  int malloc(void** address, std::size_t bytes) const { return malloc_(address, bytes); }
  void free(void* address) const { free_(address); }
  void copy(void* target, const void* source, std::size_t bytes, Direction direction) const;
  void restrict_access(void* begin, std::size_t bytes) const;
  /// What is there counts as never written.
  void mark_unwritten(void* begin, std::size_t bytes) const { unwritten_(begin, bytes); }

  /// On the emulator: memory of the host that kernels may touch, and may touch no more.
  void register_host(void* begin, std::size_t bytes) const;
  void unregister_host(void* begin) const { unregister_(begin); }

  /// Waits for the device; what went wrong since the last call, or nothing.
  std::optional<std::string> synchronize() const;
  void take_error() const { get_last_error_(); }

  /// The first finding of the emulator's checkers since the last reset, as (kind, text).
  struct Finding {
    std::string kind, text;
  };
  std::optional<Finding> finding() const;
  void reset() const;  // findings and sticky error; nothing on a GPU

  /// Since the process began; empty on a GPU.
  Counters counters() const;
  /// The kernels launched since this was last asked, a line for each; empty on a GPU.
  std::string launched() const;
  /// Warp instructions that a launch may execute from here on; nothing on a GPU.
  void limit_instructions(std::uint64_t per_launch) const;
  /// The same as counters() kernel by kernel, without source lines, as emulator::print writes it.
  std::string kernel_profile() const;

 private:
  void load_real(unsigned major);
  void load_emulated(const Choice& choice);

  void* library_ = nullptr;
  std::string numerics_, setting_;  // setting_: what the emulator's findings were made under
  int (*malloc_)(void**, std::size_t) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*memcpy_)(void*, const void*, std::size_t, int) = nullptr;
  int (*synchronize_)() = nullptr;
  int (*get_last_error_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  decltype(&attest_emulator_configure) configure_ = nullptr;
  decltype(&attest_emulator_restrict) restrict_ = nullptr;
  decltype(&attest_emulator_unwritten) unwritten_ = nullptr;
  int (*register_)(void*, std::size_t, unsigned) = nullptr;
  int (*unregister_)(void*) = nullptr;
  decltype(&attest_emulator_finding_count) finding_count_ = nullptr;
  decltype(&attest_emulator_finding_kind) finding_kind_ = nullptr;
  decltype(&attest_emulator_finding_text) finding_text_ = nullptr;
  decltype(&attest_emulator_reset) reset_ = nullptr;
  decltype(&attest_emulator_counts) counts_ = nullptr;
  decltype(&attest_emulator_totals) totals_ = nullptr;
  decltype(&attest_emulator_profile) profile_ = nullptr;
  decltype(&attest_emulator_launched) launched_ = nullptr;
  decltype(&attest_emulator_limit) limit_ = nullptr;
  decltype(&attest_emulator_load_error) load_error_ = nullptr;
  decltype(&attest_emulator_own_fault) own_fault_ = nullptr;
};

/// What was counted after `before`.
Counters difference(const Counters& after, const Counters& before);

}  // namespace attest
