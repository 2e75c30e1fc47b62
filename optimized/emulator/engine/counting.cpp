// Sums counts over host threads, spreads them over source lines, and gives them their meaning.
#include "optimized/emulator/engine/counting.hpp"

#include <algorithm>
#include <unordered_map>

#include "optimized/emulator/engine/coverage.hpp"

namespace attest::emulator {
namespace {

void add(InstructionCount& to, const InstructionCount& from) {
  to.begun += from.begun, to.begun_lanes += from.begun_lanes;
  to.undone += from.undone, to.undone_lanes += from.undone_lanes;
  to.divergent += from.divergent;
  to.global_bytes += from.global_bytes;
  to.sectors += from.sectors, to.least_sectors += from.least_sectors;
  to.shared_bytes += from.shared_bytes;
  to.passes += from.passes, to.least_passes += from.least_passes;
  to.local_bytes += from.local_bytes;
}

bool ends_block(const ptx::Instruction& i) {
  return i.opcode == "bra" || i.opcode == "brx" || i.opcode == "ret" || i.opcode == "exit";
}

/// The instructions of a function at which its basic blocks begin.
std::vector<bool> block_starts(const ptx::Function& f) {
  std::vector<bool> starts(f.body.size() + 1, false);
  starts[0] = true;
  for (const u32 leader : f.leaders) starts[std::min<std::size_t>(leader, f.body.size())] = true;
  for (std::size_t i = 0; i < f.body.size(); ++i) {
    if (ends_block(f.body[i])) starts[i + 1] = true;
  }
  starts.back() = false;
  return starts;
}

class Planner {
 public:
  Planner(const Program& program, const InstructionSet& isa) : program_(program), isa_(isa) {
    plan_->kernel = readable_name(program.entry->function->name);
    plan_->operations.resize(program.counts);
  }

  std::shared_ptr<const CountPlan> make() {
    for (const auto& [index, code] : program_.codes) add_code(*code);
    plan_->coverage_at = reserve_coverage(plan_->blocks);
    return plan_;
  }

 private:
  u32 line_of(const ptx::Instruction& i) {
    const u64 key =
        i.source.line != 0 ? u64(i.source.file) << 32 | i.source.line : u64{1} << 63 | i.text_line;
    const auto [it, fresh] = lines_.emplace(key, u32(plan_->places.size()));
    if (fresh) plan_->places.push_back(line_text(*program_.module, i));
    return it->second;
  }

  void add_code(const Code& code) {
    const auto& body = code.function->body;
    const std::vector<bool> starts = block_starts(*code.function);
    const Handler join = isa_.plain[std::size_t(Plain::join)];
    u32 begun = kNone;  // the last instruction whose block has its operation
    for (std::size_t n = 0; n < code.ops.size(); ++n) {
      const Op& op = code.ops[n];
      if (op.origin >= body.size()) continue;
      CountPlan::Operation& operation = plan_->operations[code.counts_at + n];
      operation.line = line_of(body[op.origin]);
      operation.cost = cost_of(body[op.origin]);
      operation.counted = op.run != join && !(op.flags & kUncounted);
      // The joining operation belongs to whoever falls in; those who jump begin behind it.
      if (op.run == join || op.origin == begun || !starts[op.origin]) continue;
      begun = op.origin;
      operation.block = plan_->blocks++;
    }
  }

  const Program& program_;
  const InstructionSet& isa_;
  std::shared_ptr<CountPlan> plan_ = std::make_shared<CountPlan>();
  std::unordered_map<u64, u32> lines_;
};

/// Calls visit(first operation) for each page that a run touches or passes through.
template <class F>
void for_each_page(const CountRoom& room, const F& visit) {
  s64 running = 0;
  for (std::size_t page = 0; page < room.touched.size(); ++page) {
    if (room.touched[page] == 0 && running == 0) continue;
    const std::size_t first = page * kCountPage;
    for (std::size_t n = first; n < first + kCountPage; ++n) running += room.counts[n].begun;
    visit(first);
  }
}

void clear_page(CountRoom& room, std::size_t first) {
  std::fill_n(room.counts.begin() + std::ptrdiff_t(first), kCountPage, InstructionCount{});
  room.touched[first / kCountPage] = 0;
}

/// The counts of all host threads, in the first of their rooms; the others are clean.
CountRoom& merged(LaunchState& launch) {
  CountRoom& all = *launch.rooms.front();
  for (std::size_t i = 1; i < launch.rooms.size(); ++i) {
    CountRoom& room = *launch.rooms[i];
    for_each_page(room, [&](std::size_t first) {
      for (std::size_t n = first; n < first + kCountPage; ++n) add(all.counts[n], room.counts[n]);
      all.touched[first / kCountPage] = 1;
      clear_page(room, first);
    });
  }
  return all;
}

void add_accesses(Totals& t, const Cost& cost, const InstructionCount& count) {
  if (cost.reads) t.global_read_bytes += count.global_bytes;
  if (cost.writes) t.global_written_bytes += count.global_bytes;
  if (cost.reads || cost.writes)
    t.global_sectors += count.sectors, t.global_sectors_least += count.least_sectors;
  t.shared_bytes += count.shared_bytes;
  t.shared_passes += count.passes, t.shared_passes_least += count.least_passes;
  t.local_bytes += count.local_bytes;
}

void add_executions(Totals& t, const Cost& cost, u64 executions, u64 lanes) {
  t.warp_instructions += executions, t.thread_instructions += lanes;
  t.idle_lanes += executions * kLanes - lanes;
  t.*cost.unit += lanes * cost.per_lane + executions * cost.per_warp;
  t.barriers += cost.barrier ? executions : 0;
}

}  // namespace

std::shared_ptr<CountRoom> take_room(LaunchState& launch) {
  const std::scoped_lock lock(launch.mutex);
  auto& spare = launch.program->rooms;
  if (spare.empty()) return std::make_shared<CountRoom>(*launch.program);
  std::shared_ptr<CountRoom> room = std::move(spare.back());
  spare.pop_back();
  return room;
}

void give_room(LaunchState& launch, std::shared_ptr<CountRoom> room) {
  const std::scoped_lock lock(launch.mutex);
  launch.rooms.push_back(std::move(room));
}

std::shared_ptr<const CountPlan> plan_of(const Program& program, const InstructionSet& isa) {
  if (program.plan == nullptr) program.plan = Planner(program, isa).make();
  return program.plan;
}

void add_launch(KernelCounts& kernel, LaunchState& launch, bool good) {
  const CountPlan& plan = *kernel.plan;
  CountRoom& room = merged(launch);
  if (good) {
    ++kernel.launches;
    kernel.grid_blocks = launch.blocks;
    kernel.block_threads = launch.threads_per_block;
    kernel.block_shared_bytes = launch.shared_bytes;
  }
  kernel.lines.resize(plan.places.size());
  kernel.covered.resize(plan.blocks, false);
  std::vector<u64> blocks(plan.blocks, 0);
  s64 runs = 0, run_lanes = 0;
  for_each_page(room, [&](std::size_t first) {
    for (std::size_t n = first; n < first + kCountPage; ++n) {
      const InstructionCount& count = room.counts[n];
      runs += count.begun, run_lanes += count.begun_lanes;
      if (runs == 0) continue;
      const CountPlan::Operation& operation = plan.operations[n];
      const u64 executions = u64(runs - count.undone);
      if (operation.block != kNone) blocks[operation.block] = executions;
      if (!good) continue;
      Totals& line = kernel.lines[operation.line];
      add_accesses(line, operation.cost, count);
      if (!operation.counted) continue;
      add_executions(line, operation.cost, executions, u64(run_lanes - count.undone_lanes));
      line.divergent_branches += count.divergent;
    }
    clear_page(room, first);
  });
  for (u32 i = 0; good && i < plan.blocks; ++i) {
    if (blocks[i] != 0) kernel.covered[i] = true;
  }
  show_coverage(plan.coverage_at, blocks);
  for (auto& each : launch.rooms) launch.program->rooms.push_back(std::move(each));
  launch.rooms.clear();
}

Totals totals_of(const KernelCounts& kernel) {
  Totals sum;
  for (const Totals& line : kernel.lines) sum += line;
  return sum;
}

KernelProfile profile_of(const KernelCounts& kernel) {
  KernelProfile profile;
  profile.kernel = kernel.plan->kernel;
  profile.launches = kernel.launches;
  profile.grid_blocks = kernel.grid_blocks;
  profile.block_threads = kernel.block_threads;
  profile.block_shared_bytes = kernel.block_shared_bytes;
  profile.totals = totals_of(kernel);
  profile.blocks = kernel.plan->blocks;
  profile.blocks_covered = u64(std::count(kernel.covered.begin(), kernel.covered.end(), true));
  for (std::size_t i = 0; i < kernel.lines.size(); ++i) {
    if (kernel.lines[i] != Totals{})
      profile.lines.push_back({kernel.plan->places[i], kernel.lines[i]});
  }
  std::stable_sort(profile.lines.begin(), profile.lines.end(), [](const auto& a, const auto& b) {
    return a.totals.warp_instructions > b.totals.warp_instructions;
  });
  return profile;
}

}  // namespace attest::emulator
