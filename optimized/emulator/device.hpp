// The emulated device as the runtime sees it: memory, loaded modules, launches, findings.
// One device per process. Nothing here knows of the CUDA API; runtime/ maps that onto this.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/options.hpp"
#include "optimized/emulator/profile.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// Something a checker saw. `kind` is one word: memcheck, initcheck, racecheck, async, assert,
/// trap, deadlock, unsupported, barrier, limit, api. `what` is one sentence that names kernel,
/// block, thread and source line; the rest says the same to machines, as far as it is known.
struct CheckerFinding {
  std::string kind;
  std::string what;
  std::string kernel = {};
  std::string file = {};  // the whole path that the PTX gives
  std::uint32_t line = 0;
  std::array<std::uint32_t, 3> block{}, thread{};
};

/// A loaded module: globals placed in device memory, kernels decoded when first launched.
class LoadedModule;

class Device {
 public:
  static Device& instance();

  void configure(const DeviceOptions& options);

  // --- memory: every address the device may touch lies in exactly one live allocation ---
  /// Poisoned (0xff…), 256-byte aligned, with red zones on both sides. nullptr when out of memory.
  void* allocate(std::size_t bytes);
  /// Lets kernels touch host memory. False when it overlaps with an allocation. release() undoes
  /// it.
  bool adopt(void* begin, std::size_t bytes);
  /// Whether the address lies in memory that was adopted, and that only the host can unmap. In
  /// doubt, since it asks without waiting, as a signal handler must: false.
  bool is_the_hosts(const void* address) const;
  /// False when `address` is not the start of a live allocation.
  bool release(void* address);
  /// Narrows what kernels may touch of an allocation to [begin, begin + bytes): the rest of it
  /// becomes guard zone. Used by the worker process. False when not inside one allocation.
  bool restrict_access(void* begin, std::size_t bytes);
  /// For the initialisation checker: the bytes were written from outside of kernels, or (false)
  /// hold nothing that anybody wrote, as freshly allocated memory does.
  void mark_written(void* begin, std::size_t bytes, bool written = true);
  /// A copy between two places, of which either may be host memory: what was never written stays
  /// so.
  void copy_written(void* to, const void* from, std::size_t bytes);
  /// What is wrong with copying these bytes to the host: how many hold nothing that anybody wrote,
  /// and where; empty when all do, or the rest is padding of structs.
  std::string describe_unwritten(const void* begin, std::size_t bytes) const;
  struct Allocation {
    void* base = nullptr;
    std::size_t bytes = 0;
  };
  /// The live allocation that contains `address`, or an empty one.
  Allocation find_allocation(const void* address) const;
  std::size_t bytes_in_use() const;

  // --- code ---
  std::shared_ptr<LoadedModule> load(std::string_view ptx);  // throws ptx::SyntaxError
  /// Address and size of a module-scope variable; {nullptr, 0} when there is none.
  Allocation find_variable(const LoadedModule& module, std::string_view name) const;
  bool has_kernel(const LoadedModule& module, std::string_view name) const;
  std::vector<std::string> kernel_names(const LoadedModule& module) const;
  struct KernelFacts {
    std::uint32_t static_shared_bytes = 0, local_bytes = 0, constant_bytes = 0;
    std::uint32_t architecture = 0;  // that the PTX is for
    std::uint32_t registers_estimate = 0, max_threads_per_block = 1024;
    std::vector<std::uint32_t> parameter_bytes;  // in order: what a launch must supply
  };
  KernelFacts facts(const LoadedModule& module, std::string_view kernel) const;

  // --- running ---
  struct Launch {
    Dim3 grid, block;
    std::uint32_t dynamic_shared_bytes = 0;
    void** arguments = nullptr;  // one pointer per parameter
    bool cooperative = false;
    std::uint64_t resident_blocks = 0;  // that the GPU would hold at a time; 0: as many as it may
  };
  enum class Status : std::uint8_t { ok, invalid_configuration, faulted };
  /// Runs to completion. After `faulted` the device refuses further launches until reset_findings,
  /// as a CUDA context does after a sticky error. Findings of initcheck, racecheck and async do not
  /// stop a launch.
  Status launch(LoadedModule& module, std::string_view kernel, const Launch& launch);

  /// Findings since the last call of reset_findings, oldest first, at most 64.
  const std::vector<CheckerFinding>& findings() const;
  void reset_findings();

  struct Counts {
    std::uint64_t launches = 0, warp_instructions = 0;
  };
  Counts counts() const;
  /// What was counted since the device was made; empty unless options().counters.
  Profile profile() const;
  /// The sum over all kernels of profile().
  Totals totals() const;
  const DeviceOptions& options() const;
  /// Changes options().instruction_limit, and nothing else, between launches.
  void limit_instructions(std::uint64_t per_launch);

 private:
  Device();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attest::emulator
