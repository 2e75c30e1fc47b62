// Starts blocks and runs their warps in turn.
#include "optimized/emulator/engine/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/counting.hpp"

namespace attest::emulator {
namespace {

// A warp runs this long before its block looks at the next one, unless it has to wait earlier.
constexpr s64 kWarpQuantum = 8192;

void place_threads(Warp& w, const LaunchState& launch) {
  const u32 first = w.index * kLanes;
  const u32 count = std::min(kLanes, launch.threads_per_block - first);
  w.existing = count == kLanes ? kAllLanes : (1u << count) - 1;
  for (u32 l = 0; l < kLanes; ++l) {
    const u32 t = first + l;
    w.thread[0][l] = t % launch.extent[0];
    w.thread[1][l] = t / launch.extent[0] % launch.extent[1];
    w.thread[2][l] = t / (launch.extent[0] * launch.extent[1]);
  }
}

/// What was never written reads as all ones, as f32 and f64 a NaN: a program that relies on zeros
/// shows it, and a wrong one still gives the same bits each time. Predicates read as false.
void poison_registers(const Frame& frame) {
  const u8* const predicates = reinterpret_cast<const u8*>(frame.predicates);
  std::memset(frame.storage, 0xff, std::size_t(predicates - frame.storage));
  std::memset(frame.predicates, 0, frame.code->predicate_slots * sizeof(u32));
}

/// The first use of a block object: memory of the right sizes.
void build_block(Block& block, LaunchState& launch) {
  block.launch = &launch;
  const Code& code = *launch.program->entry;
  block.warps = std::vector<Warp>(launch.warps_per_block);
  block.shared_room.resize(launch.shared_bytes + 64);
  block.intervals.assign(launch.program->interval_count + 1, Interval{0, 0});
  const std::size_t local = launch.local_bytes * kLanes * launch.warps_per_block;
  if (local != 0) block.local = {static_cast<u8*>(std::calloc(local + 64, 1)), std::free};
  for (u32 i = 0; i < launch.warps_per_block; ++i) {
    Warp& w = block.warps[i];
    w.index = i;
    place_threads(w, launch);
    w.frame = new_frame(block, code, nullptr, nullptr, nullptr, 0);
    block.entry_frames.push_back(w.frame);
    w.local = local ? block.local.get() + i * kLanes * launch.local_bytes : nullptr;
    w.local_stride = launch.local_bytes;
    w.parameters = launch.parameters.data();
    w.parameter_bytes = launch.program->parameter_bytes;
    w.intervals = block.intervals.data();
    w.block = &block;
    w.watching = nullptr;
    w.watch = u8((launch.options.checks.initcheck ? kWatchInit : 0) |
                 (launch.options.checks.racecheck ? kWatchRace : 0) |
                 (block.room != nullptr ? kWatchCount : 0));
    w.clock = launch.shares_clock ? &launch.clock : &block.clock;
    w.forbidden = &block.async.bounds;
    w.grid_workspace = launch.grid_workspace;
    w.numerics = &launch.options.numerics;
    w.counts = nullptr;
    w.patterns = block.room != nullptr ? block.room->patterns.data() : nullptr;
    w.grid = launch.grid;
    w.block_extent = launch.extent;
    w.block_index = block.index;
  }
  build_checks(block);
}

}  // namespace

Frame* new_frame(Block& block, const Code& code, Frame* parent, const Op* call_site,
                 const Op* return_to, u32 local_base) {
  const u64 narrow = u64(code.narrow_slots) * sizeof(Splat<u32>),
            wide = u64(code.wide_slots) * sizeof(Splat<u64>);
  const u64 bytes = narrow + wide + code.predicate_slots * sizeof(u32) + 64;
  Frame* frame = nullptr;
  for (std::size_t i = 0; i < block.spare_frames.size() && frame == nullptr; ++i) {
    if (block.spare_frames[i]->storage_bytes < bytes) continue;
    frame = block.spare_frames[i];
    block.spare_frames[i] = block.spare_frames.back();
    block.spare_frames.pop_back();
  }
  if (frame == nullptr) {
    block.frames.push_back(std::make_unique<Frame>());
    frame = block.frames.back().get();
    block.frame_storage.emplace_back(
        static_cast<u8*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free);
    frame->storage_bytes = bytes;
    frame->storage = block.frame_storage.back().get();
  }
  frame->parent = parent;
  frame->code = &code;
  frame->call_site = call_site;
  frame->return_to = return_to;
  frame->narrow[0] = frame->storage;
  frame->wide[0] = frame->storage + narrow;
  frame->predicates = reinterpret_cast<u32*>(frame->storage + narrow + wide);
  // Constants are reached with an operand whose bit 0 is set: hence one byte less.
  frame->narrow[1] = reinterpret_cast<u8*>(reinterpret_cast<u64>(code.narrow_constants.data()) - 1);
  frame->wide[1] = reinterpret_cast<u8*>(reinterpret_cast<u64>(code.wide_constants.data()) - 1);
  frame->local_base = local_base;
  frame->local_top = local_base + code.frame_bytes;
  frame->depth = parent ? parent->depth + 1 : 0;
  frame->lanes = 0;
  poison_registers(*frame);
  return frame;
}

void start_block(Block& block, LaunchState& launch, u64 number) {
  if (block.launch == nullptr) build_block(block, launch);
  block.number = number;
  block.index[0] = u32(number % launch.grid[0]);
  block.index[1] = u32(number / launch.grid[0] % launch.grid[1]);
  block.index[2] = u32(number / (u64(launch.grid[0]) * launch.grid[1]));
  block.live_threads = launch.threads_per_block;
  block.next_warp = 0;
  block.clock = launch.clock;
  block.schedule = Schedule(launch.options.schedule, launch.number, number);
  block.faulted = false;
  block.wrote = block.idled = false;
  block.spin = Spin{};
  block.printed.clear();
  reset_async(block);
  for (Barrier& b : block.barriers) b = Barrier{};
  const u64 misaligned = reinterpret_cast<u64>(block.shared_room.data()) % 64;
  u8* shared = block.shared_room.data() + (misaligned ? 64 - misaligned : 0);
  if (launch.shared_bytes) std::memset(shared, 0xff, launch.shared_bytes);  // poison
  const Code& code = *launch.program->entry;
  block.spare_frames.clear();
  for (const auto& frame : block.frames) {
    if (frame->parent != nullptr) block.spare_frames.push_back(frame.get());
  }
  for (Warp& w : block.warps) {
    Frame* frame = block.entry_frames[w.index];
    poison_registers(*frame);
    frame->local_top = code.frame_bytes;
    frame->lanes = w.existing;
    load_frame(w, frame);
    for (u32 l = 0; l < kLanes && w.local != nullptr; ++l)
      std::memset(w.local + l * w.local_stride, 0xff, code.frame_bytes);
    w.shared = shared;
    w.shared_bytes = launch.shared_bytes;
    w.mask = w.active = w.live = w.existing;
    w.other_count = 0;
    w.uncounted = 0;
    w.polled = w.rotated = w.wrote = 0;
    w.lane_first = w.lane_skip = 0;
    w.join_at = reinterpret_cast<const Op*>(~u64{0});
    w.resume = code.ops.data();
  }
  start_checks(block);
}

namespace {

/// How long the warp may run now. Under a seed: any time, its lanes take effect in any order, and
/// some of what is under way arrives before.
s64 begin_turn(Block& block, Warp& w) {
  constexpr u32 kShifts = 14;  // down to a single operation
  Schedule& schedule = block.schedule;
  if (!schedule.permutes()) return kWarpQuantum;
  deliver_some(block);
  w.lane_first = u8(schedule.below(kLanes));
  w.lane_skip = u8(2 * schedule.below(kLanes / 2));
  return kWarpQuantum >> schedule.below(kShifts);
}

/// Who is next after `w` had its turn and stopped at `op`.
void end_turn(Block& block, Warp& w, const Op* op) {
  Schedule& schedule = block.schedule;
  if (op != nullptr) {
    // Out of budget: other fragments get a turn, so that one that spins starves nobody.
    w.resume = op;
    const bool rotates = schedule.permutes() ? schedule.one_in(2) : w.rotated == 0;
    if (w.other_count != 0) w.resume = rotates ? rotate(w, op) : go_to(w, op);
    w.rotated ^= 1;
  } else if (w.resume != nullptr && w.active == 0) {
    w.resume = nullptr;
  }
  const std::size_t count = block.warps.size();
  block.next_warp =
      schedule.permutes() ? schedule.below(u32(count)) : (block.next_warp + 1) % count;
}

}  // namespace

Progress run_block(Block& block, s64 quantum, bool& polled) {
  LaunchState& launch = *block.launch;
  std::size_t idle = 0;
  while (idle < block.warps.size()) {
    Warp& w = block.warps[block.next_warp];
    const Op* op = w.resume != nullptr ? w.resume : next_fragment(w);
    if (op == nullptr) {
      block.next_warp = (block.next_warp + 1) % block.warps.size();
      ++idle;
      continue;
    }
    idle = 0;
    s64 given = std::min(begin_turn(block, w), quantum);
    if (block.faulted) return Progress::faulted;
    if (launch.limited)
      given = std::min(given, launch.instructions_left.load(std::memory_order_relaxed));
    if (given <= 0 && launch.limited) {
      fault(w, *op, u32(__builtin_ctz(w.active)), "limit",
            "the launch has used up its limit of instructions; a loop may never end");
      return Progress::faulted;
    }
    s64 budget = given;
    const u64 uncounted = w.uncounted;
    op = launch.isa->run(w, op, budget);
    const s64 executed = given - budget - s64(w.uncounted - uncounted);
    launch.warp_instructions.fetch_add(u64(executed), std::memory_order_relaxed);
    if (launch.limited)
      launch.instructions_left.fetch_sub(std::max<s64>(executed, 1), std::memory_order_relaxed);
    quantum -= given - budget;
    *w.clock += u64(given - budget);
    polled |= w.polled != 0;
    block.wrote |= w.wrote != 0;
    w.polled = w.wrote = 0;
    if (block.faulted) return Progress::faulted;
    end_turn(block, w, op);
    if (quantum <= 0) return Progress::paused;
  }
  if (block.live_threads == 0) {
    end_async(block);
    return Progress::finished;
  }
  return report_deadlock(block);
}

}  // namespace attest::emulator
