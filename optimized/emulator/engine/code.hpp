// Decoded code: one Code per function, gathered into the Program of a kernel, in the module it came
// from. Built once, read by every warp.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/engine/isa.hpp"
#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/engine/memory.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

/// Where one parameter or argument of a device function lives: in local memory of its frame, or in
/// a register.
struct Passing {
  bool in_register = false;
  u32 at = 0;  // byte offset within the frame's local memory, or slot operand
  u32 bytes = 0;
};

enum class Builtin : u8 { none, vprintf, assertfail, malloc, free, unknown };

struct CallSite {
  const Code* target = nullptr;  // direct
  Builtin builtin = Builtin::none;
  std::string name;     // of the callee, for messages
  u32 address = kNone;  // wide slot with the function's address, when indirect
  std::vector<Passing> results, arguments;
};

template <class T>
struct alignas(64) Splat {
  T lanes[kLanes];
};

struct Code {
  const ptx::Function* function = nullptr;
  u32 index = 0;  // in the module: orders the pcs of different functions
  std::vector<Op> ops;
  std::vector<Splat<u32>> narrow_constants;
  std::vector<Splat<u64>> wide_constants;
  std::deque<std::vector<u32>> lists;
  std::deque<CallSite> calls;
  std::deque<std::string> notes;  // why an operation is unsupported
  u32 narrow_slots = 0, wide_slots = 0, predicate_slots = 0;
  u32 frame_bytes = 0;  // local memory of one activation, per lane
  u32 counts_at = 0;    // where the counts of its operations begin among those of the program
  std::vector<Passing> parameters, results;
};

struct LoadedModuleState;
struct CountPlan;
struct CountRoom;

/// A kernel with everything it can reach.
struct Program {
  const LoadedModuleState* module = nullptr;
  const Code* entry = nullptr;
  std::map<u32, std::unique_ptr<Code>> codes;   // by function index
  std::unordered_map<std::string, u64> shared;  // offsets of shared variables
  u32 static_shared_bytes = 0;
  u32 dynamic_shared_alignment = 1;
  std::vector<u32> parameter_offsets;
  u32 parameter_bytes = 0;
  u32 interval_count = 1;  // of Op::cache; 0: accesses no memory
  u32 carried_count = 0;   // values that copies carry past the initialisation checker
  u8 shared_granule = 16;  // log2 of the narrowest access to shared memory, later at most 2
  u8 global_granule = 16;  // the same for global and generic addresses
  u32 counts = 0;      // one per operation of each code, and one behind; each code begins a page
  bool worst = false;  // approximate instructions err: NumericModel::worst
  bool calls = false;
  bool communicates = false;  // may tell other blocks something: atomics, volatile, fences, ...
  bool recursive = false;     // or indirect: the depth of calls is not known
  // Made at the first launch that counts, and used by one launch at a time.
  mutable std::shared_ptr<const CountPlan> plan;
  mutable std::vector<std::shared_ptr<CountRoom>> rooms;
};

/// What a module is once its variables have addresses.
struct LoadedModuleState {
  ptx::Module module;
  std::unordered_map<std::string, Memory::Range> variables;
  std::unordered_map<std::string, u32> functions;  // indices
  std::mutex mutex;
  /// By function, instruction set of the host, and whether NumericModel::worst is on.
  std::map<std::tuple<u32, const InstructionSet*, bool>, std::unique_ptr<Program>> programs;

  u64 address_of_function(u32 index) const { return kCodeWindow + (u64(index) + 1) * 16; }
};

/// Decodes a kernel and what it calls. Never fails: what cannot be decoded becomes an operation
/// that reports itself when executed.
std::unique_ptr<Program> build_program(LoadedModuleState& module, u32 entry,
                                       const InstructionSet& isa, bool worst);

/// The key of a function's own shared variable in Program::shared: other functions may have one of
/// the same name.
std::string own_name(u32 function, const std::string& name);

}  // namespace attest::emulator
