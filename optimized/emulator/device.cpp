// The device: one per process. Places modules in memory, starts launches, keeps findings.
#include "optimized/emulator/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/copied_out.hpp"
#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/counting.hpp"
#include "optimized/emulator/engine/isa.hpp"
#include "optimized/emulator/own_work.hpp"

namespace attest::emulator {
namespace {

constexpr std::size_t kFindingsMax = 64;
// What a block may have on the largest GPUs (sm_90: 227 KiB).
constexpr u64 kSharedBytesMax = 227 * 1024;
// Local memory per thread on every GPU since sm_20 (CUDA programming guide).
constexpr u64 kLocalBytesMax = 512 * 1024;
constexpr u32 kThreadsMax = 1024, kBlockDepthMax = 64, kGridSideMax = 65535,
              kGridWidthMax = 0x7fffffff;
// cudaLimitStackSize is 1 KiB by default and may be raised; calls get this much per thread.
constexpr u64 kStackBytes = 16 * 1024;
// Blocks that take turns when nobody says how many a GPU would hold: 108 multiprocessors (A100) of
// at most 32.
constexpr u64 kResidentMax = 108 * 32;
// What cooperative groups find through %envreg1 and %envreg2 (driver_abi.h of CUDA 13): the size of
// this record, and the barrier of the grid, which begins as 0.
struct GridWorkspace {
  u32 bytes = sizeof(GridWorkspace), barrier = 0;
};

}  // namespace

class LoadedModule {
 public:
  LoadedModuleState state;
  Memory* memory = nullptr;
  ~LoadedModule() {
    for (const auto& [name, range] : state.variables)
      memory->release(reinterpret_cast<void*>(range.begin));
  }
};

struct Device::State {
  Memory memory;
  DeviceOptions options;
  const InstructionSet* isa = &choose_instruction_set();
  std::vector<CheckerFinding> findings;
  std::shared_ptr<LaunchChecks> race_checks;  // one launch at a time uses it
  bool faulted = false;
  u64 launches_before = 0;  // the options now in force
  std::atomic<u64> launches{0}, warp_instructions{0};
  std::vector<KernelCounts> counted;
  mutable std::mutex mutex;  // findings, faulted and counted
  std::mutex launching;      // one launch at a time

  void add_finding(CheckerFinding finding) {
    const std::scoped_lock lock(mutex);
    if (findings.size() < kFindingsMax) findings.push_back(std::move(finding));
  }

  void count(const Program& program, LaunchState& launch, bool good) {
    const std::shared_ptr<const CountPlan> plan = plan_of(program, *isa);
    const std::scoped_lock lock(mutex);
    auto kernel = std::find_if(counted.begin(), counted.end(),
                               [&](const KernelCounts& k) { return k.plan == plan; });
    if (kernel == counted.end()) {
      kernel = counted.insert(counted.end(), KernelCounts{});
      kernel->plan = plan;
    }
    add_launch(*kernel, launch, good);
  }

  const Program* program(LoadedModuleState& module, std::string_view kernel) {
    const auto it = module.functions.find(std::string(kernel));
    if (it == module.functions.end() || !module.module.functions[it->second].entry) return nullptr;
    const std::scoped_lock lock(module.mutex);
    const bool worst = options.numerics.worst.has_value();
    std::unique_ptr<Program>& program = module.programs[{it->second, isa, worst}];
    if (program != nullptr) return program.get();
    const OwnWork own("decoded the kernel", it->first.c_str());
    program = build_program(module, it->second, *isa, worst);
    return program.get();
  }
};

Device::Device() : state_(std::make_unique<State>()) {}

Device& Device::instance() {
  // Never destroyed: kernels may be registered and freed by destructors that run later.
  static Device* const device = new Device;
  return *device;
}

void Device::configure(const DeviceOptions& options) {
  state_->options = options;
  state_->launches_before = state_->launches;
  state_->isa = &choose_instruction_set();
}

void* Device::allocate(std::size_t bytes) {
  return state_->memory.allocate(bytes);
}
bool Device::adopt(void* begin, std::size_t bytes) {
  return state_->memory.adopt(reinterpret_cast<u64>(begin), bytes);
}
bool Device::is_the_hosts(const void* address) const {
  return state_->memory.is_the_hosts(reinterpret_cast<u64>(address));
}
bool Device::release(void* address) {
  return state_->memory.release(address);
}
bool Device::restrict_access(void* begin, std::size_t bytes) {
  return state_->memory.restrict_access(reinterpret_cast<u64>(begin), bytes);
}
void Device::mark_written(void* begin, std::size_t bytes, bool written) {
  state_->memory.mark_written(reinterpret_cast<u64>(begin), bytes, written);
}
void Device::copy_written(void* to, const void* from, std::size_t bytes) {
  state_->memory.copy_written(reinterpret_cast<u64>(to), reinterpret_cast<u64>(from), bytes);
}
std::string Device::describe_unwritten(const void* begin, std::size_t bytes) const {
  const u64 address = reinterpret_cast<u64>(begin);
  const Memory::Written written = state_->memory.written_at(address);
  if (written.bits == nullptr || !state_->options.checks.initcheck) return {};
  const u64 offset = address - written.begin;
  const Unwritten found =
      unwritten_in(written.bits, offset, std::min<u64>(bytes, written.bytes - offset));
  if (found.bytes == 0) return {};
  const u64 first = written.begin + found.first;
  const std::string who = state_->memory.storer_of(first);
  return fmt::format(
      "{} of {} bytes {}, the first at {:#x}: byte {} of a {}-byte allocation{}", found.bytes,
      bytes, who.empty() ? "were never written" : "hold values that nothing defines", first,
      found.first, written.bytes, who.empty() ? "" : fmt::format("; {} stored it", who));
}
Device::Allocation Device::find_allocation(const void* address) const {
  const auto range = state_->memory.find(reinterpret_cast<u64>(address));
  if (!range) return {};
  return {reinterpret_cast<void*>(range->begin), range->end - range->begin};
}
std::size_t Device::bytes_in_use() const {
  return state_->memory.bytes_in_use();
}

namespace {

/// Copies initial values and resolves the addresses inside them.
void initialise(const LoadedModuleState& m, const ptx::Variable& v, u8* to) {
  std::memset(to, 0, v.bytes);
  if (!v.initial.empty())
    std::memcpy(to, v.initial.data(), std::min<std::size_t>(v.initial.size(), v.bytes));
  for (const auto& patch : v.patches) {
    u64 address = 0;
    if (const auto it = m.variables.find(patch.target.name); it != m.variables.end())
      address = it->second.begin;
    if (const auto it = m.functions.find(patch.target.name); it != m.functions.end())
      address = m.address_of_function(it->second);
    address += u64(patch.target.addend);
    if (patch.offset + patch.bytes <= v.bytes)
      std::memcpy(to + patch.offset, &address, std::min<std::size_t>(patch.bytes, 8));
  }
}

}  // namespace

std::shared_ptr<LoadedModule> Device::load(std::string_view text) {
  auto loaded = std::make_shared<LoadedModule>();
  loaded->memory = &state_->memory;
  LoadedModuleState& m = loaded->state;
  const OwnWork own("read", "a module's PTX");
  m.module = ptx::parse(text);
  for (u32 i = 0; i < m.module.functions.size(); ++i) m.functions[m.module.functions[i].name] = i;
  for (const auto& [name, of] : m.module.aliases) m.functions[name] = m.functions.at(of);
  for (const ptx::Variable& v : m.module.variables) {
    if (v.space != ptx::Space::global && v.space != ptx::Space::constant) continue;
    void* place = state_->memory.allocate(v.bytes, v.name, v.alignment);
    if (place == nullptr) continue;  // any use of it is then reported as undefined
    const u64 begin = reinterpret_cast<u64>(place);
    m.variables[v.name] = {begin, begin + v.bytes};
  }
  for (const ptx::Variable& v : m.module.variables) {
    if (const auto it = m.variables.find(v.name); it != m.variables.end())
      initialise(m, v, reinterpret_cast<u8*>(it->second.begin));
  }
  return loaded;
}

Device::Allocation Device::find_variable(const LoadedModule& module, std::string_view name) const {
  const auto it = module.state.variables.find(std::string(name));
  if (it == module.state.variables.end()) return {};
  return {reinterpret_cast<void*>(it->second.begin), it->second.end - it->second.begin};
}

bool Device::has_kernel(const LoadedModule& module, std::string_view name) const {
  const auto it = module.state.functions.find(std::string(name));
  return it != module.state.functions.end() && module.state.module.functions[it->second].entry;
}

std::vector<std::string> Device::kernel_names(const LoadedModule& module) const {
  std::vector<std::string> names;
  for (const ptx::Function& function : module.state.module.functions) {
    if (function.entry) names.push_back(function.name);
  }
  return names;
}

Device::KernelFacts Device::facts(const LoadedModule& module, std::string_view kernel) const {
  KernelFacts facts;
  const Program* program = state_->program(const_cast<LoadedModule&>(module).state, kernel);
  if (program == nullptr) return facts;
  const ptx::Function& f = *program->entry->function;
  // "sm_90a": the number, and what only that architecture has.
  const std::string& target = module.state.module.target;
  facts.architecture =
      u32(std::strtoul(target.c_str() + std::min<std::size_t>(target.size(), 3), nullptr, 10));
  facts.static_shared_bytes = program->static_shared_bytes;
  facts.local_bytes = program->entry->frame_bytes;
  for (const ptx::Variable& v : module.state.module.variables) {
    if (v.space == ptx::Space::constant) facts.constant_bytes += u32(v.bytes);
  }
  // A physical register is 32 bits wide; 255 is the most a thread can have.
  facts.registers_estimate =
      std::min(255u, program->entry->narrow_slots + 2 * program->entry->wide_slots);
  const auto& limit = f.reqntid[0] ? f.reqntid : f.maxntid;
  if (limit[0] != 0)
    facts.max_threads_per_block = limit[0] * std::max(limit[1], 1u) * std::max(limit[2], 1u);
  for (const ptx::Parameter& p : f.parameters) facts.parameter_bytes.push_back(p.bytes);
  return facts;
}

namespace {

/// Why a launch cannot begin, or empty.
std::string refusal(const Program& program, const Device::Launch& launch) {
  const Dim3 &g = launch.grid, &b = launch.block;
  const u64 threads = u64(b.x) * b.y * b.z;
  const ptx::Function& f = *program.entry->function;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > kGridWidthMax || g.y > kGridSideMax ||
      g.z > kGridSideMax) {
    return fmt::format("the grid is {} x {} x {}", g.x, g.y, g.z);
  }
  if (threads == 0 || threads > kThreadsMax || b.z > kBlockDepthMax)
    return fmt::format("the block is {} x {} x {} threads", b.x, b.y, b.z);
  const auto& limit = f.reqntid[0] ? f.reqntid : f.maxntid;
  const u64 most = u64(limit[0]) * std::max(limit[1], 1u) * std::max(limit[2], 1u);
  if (most != 0 && threads > most)
    return fmt::format("the kernel was compiled for at most {} threads per block", most);
  if (f.reqntid[0] && (b.x != f.reqntid[0] || b.y != std::max(f.reqntid[1], 1u) ||
                       b.z != std::max(f.reqntid[2], 1u))) {
    return "the kernel requires another block size (.reqntid)";
  }
  if (u64(program.static_shared_bytes) + launch.dynamic_shared_bytes > kSharedBytesMax) {
    return fmt::format("{} bytes of shared memory are wanted",
                       u64(program.static_shared_bytes) + launch.dynamic_shared_bytes);
  }
  u64 local_bytes = 0;
  for (const auto& [index, code] : program.codes)
    local_bytes = std::max<u64>(local_bytes, code->frame_bytes);
  if (local_bytes > kLocalBytesMax)
    return fmt::format("{} bytes of local memory per thread are wanted", local_bytes);
  if (!f.parameters.empty() && launch.arguments == nullptr) return "there are no arguments";
  return {};
}

void fill_launch(LaunchState& l, const Program& program, const Device::Launch& launch) {
  l.program = &program;
  const Dim3 &g = launch.grid, &b = launch.block;
  l.grid[0] = g.x, l.grid[1] = g.y, l.grid[2] = g.z;
  l.extent[0] = b.x, l.extent[1] = b.y, l.extent[2] = b.z;
  l.threads_per_block = b.x * b.y * b.z;
  l.warps_per_block = (l.threads_per_block + kLanes - 1) / kLanes;
  l.blocks = u64(g.x) * g.y * g.z;
  l.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  l.shared_bytes = u64(program.static_shared_bytes) + launch.dynamic_shared_bytes;
  l.cooperative = launch.cooperative;
  l.resident_max = launch.resident_blocks != 0 ? launch.resident_blocks : kResidentMax;
  l.local_bytes = program.entry->frame_bytes;
  if (program.calls) {
    l.local_bytes += kStackBytes;
    for (const auto& [index, code] : program.codes) l.local_bytes += code->frame_bytes;
  }
  l.parameters.resize(program.parameter_bytes);
  const auto& parameters = program.entry->function->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::memcpy(l.parameters.data() + program.parameter_offsets[i], launch.arguments[i],
                parameters[i].bytes);
  }
}

void print(const LaunchState& l) {
  constexpr std::size_t kPrintedMax = 1 << 20;  // per launch, as CUDA's default buffer
  std::size_t printed = 0;
  for (const auto& [number, text] : l.printed) {
    const std::size_t count = std::min(text.size(), kPrintedMax - printed);
    std::fwrite(text.data(), 1, count, stdout);
    printed += count;
  }
  if (printed != 0) std::fflush(stdout);
}

}  // namespace

Device::Status Device::launch(LoadedModule& module, std::string_view kernel, const Launch& launch) {
  State& s = *state_;
  const std::scoped_lock one_at_a_time(s.launching);
  {
    const std::scoped_lock lock(s.mutex);
    if (s.faulted) return Status::faulted;
  }
  const Program* program = s.program(module.state, kernel);
  if (program == nullptr || !refusal(*program, launch).empty())
    return Status::invalid_configuration;
  LaunchState l;
  l.isa = s.isa;
  l.memory = &s.memory;
  l.options = s.options;
  l.limited = s.options.instruction_limit != 0;
  l.instructions_left = s64(s.options.instruction_limit);
  fill_launch(l, *program, launch);
  if (l.options.checks.racecheck) {
    if (s.race_checks == nullptr) s.race_checks = std::make_shared<LaunchChecks>();
    start_launch_checks(*s.race_checks, l.threads_per_block);
    l.checks = s.race_checks;
  }
  l.number = s.launches - s.launches_before;
  l.clock = s.warp_instructions;
  void* workspace = nullptr;
  if (launch.cooperative) {
    workspace = s.memory.allocate(sizeof(GridWorkspace), "the grid's workspace");
    if (workspace == nullptr) return Status::invalid_configuration;
    new (workspace) GridWorkspace;
    l.grid_workspace = reinterpret_cast<u64>(workspace);
  }
  bool good = false;
  {
    const OwnWork own("executed the kernel", program->entry->function->name.c_str(),
                      l.options.checks.memcheck);
    good = run_launch(l, s.options.threads);
  }
  if (workspace != nullptr) s.memory.release(workspace);
  print(l);
  ++s.launches;
  s.warp_instructions += l.warp_instructions;
  for (CheckerFinding& finding : taken_findings(l)) s.add_finding(std::move(finding));
  if (l.options.counters) s.count(*program, l, good);
  if (good) return Status::ok;
  s.add_finding(std::move(l.fault));
  const std::scoped_lock lock(s.mutex);
  s.faulted = true;
  return Status::faulted;
}

const std::vector<CheckerFinding>& Device::findings() const {
  return state_->findings;
}
void Device::reset_findings() {
  const std::scoped_lock lock(state_->mutex);
  state_->findings.clear();
  state_->faulted = false;
}
const DeviceOptions& Device::options() const {
  return state_->options;
}
void Device::limit_instructions(std::uint64_t per_launch) {
  state_->options.instruction_limit = per_launch;
}
Profile Device::profile() const {
  Profile profile;
  const std::scoped_lock lock(state_->mutex);
  for (const KernelCounts& kernel : state_->counted) profile.push_back(profile_of(kernel));
  std::stable_sort(profile.begin(), profile.end(), [](const auto& a, const auto& b) {
    return a.totals.warp_instructions > b.totals.warp_instructions;
  });
  return profile;
}
Totals Device::totals() const {
  const std::scoped_lock lock(state_->mutex);
  Totals sum;
  for (const KernelCounts& kernel : state_->counted) sum += totals_of(kernel);
  return sum;
}
Device::Counts Device::counts() const {
  return {state_->launches, state_->warp_instructions};
}

}  // namespace attest::emulator
