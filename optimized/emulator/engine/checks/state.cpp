// Sizes and beginnings of what the checkers keep.
#include "optimized/emulator/engine/checks/state.hpp"

#include <algorithm>
#include <cstring>

#include "optimized/emulator/engine/written_bits.hpp"

namespace attest::emulator {
namespace {

u64 local_bytes(const Block& block) {
  return block.launch->local_bytes * kLanes * block.launch->warps_per_block;
}

void fill_local_bits(Warp& w, u32 lane, u64 base, u64 bytes, bool value) {
  const u64 begin = (u64(w.index) * kLanes + lane) * w.local_stride + base;
  fill_bits(w.block->checks->local_bits.data(), begin, begin + bytes, value);
}

Stamp limit_of(const BlockChecks& c, u32 time) {
  if (time <= c.stamp_base) return kStampLow;
  return std::min(time - c.stamp_base, kStampTimeMax) << kStampTimeShift | kStampLow;
}

}  // namespace

void build_checks(Block& block) {
  const LaunchState& launch = *block.launch;
  const Checks& on = launch.options.checks;
  if (!on.initcheck && !on.racecheck) return;
  block.checks = std::make_shared<BlockChecks>();
  BlockChecks& c = *block.checks;
  const Program& program = *launch.program;
  c.watching.resize(launch.warps_per_block);
  c.regions.resize(program.interval_count);
  c.reported.resize(program.interval_count);
  c.carried.assign(std::size_t(program.carried_count) * launch.warps_per_block, Carried{});
  if (on.initcheck) {
    c.shared_bits.resize(launch.shared_bytes / 8 + kBitRoom);
    c.local_bits.resize(local_bytes(block) / 8 + kBitRoom);
  }
  const u32 shift = std::min<u32>(program.shared_granule, 2);
  if (on.racecheck) {
    // A little more, so that rows of 16 stamps may be read whole.
    const std::size_t granules = (launch.shared_bytes >> shift) + 16;
    c.units.assign((launch.shared_bytes >> kUnitShift) + 1, Unit{});
    c.writers.assign(granules, 0), c.readers.assign(granules, 0);
    c.writer_ops.assign(granules, kUnknownOp), c.reader_ops.assign(granules, kUnknownOp);
    c.order.resize(launch.warps_per_block);
  }
  for (Warp& w : block.warps) {
    Watching& v = c.watching[w.index];
    v = {};
    v.together = 1;
    v.granule_shift = shift;
    v.units = c.units.data();
    v.writers = c.writers.data(), v.readers = c.readers.data();
    v.writer_ops = c.writer_ops.data(), v.reader_ops = c.reader_ops.data();
    v.shared_bits = c.shared_bits.data(), v.local_bits = c.local_bits.data();
    v.local_begin = reinterpret_cast<u64>(block.local.get());
    v.regions = c.regions.data();
    v.carried = c.carried.data() + std::size_t(program.carried_count) * w.index;
    w.watching = &v;
  }
}

void start_checks(Block& block) {
  if (block.checks == nullptr) return;
  BlockChecks& c = *block.checks;
  std::fill(c.reported.begin(), c.reported.end(), u8{0});
  std::fill(c.shared_bits.begin(), c.shared_bits.end(), u8{0});
  std::fill(c.local_bits.begin(), c.local_bits.end(), u8{0});
  forget_undefined(block);
  if (c.order.empty()) return;
  // Time goes on from block to block, so that what the last one did counts as long past.
  c.plain = true;
  c.given.clear();
  for (Gathering& g : c.barriers) g = {};
  for (WarpOrder& o : c.order) o = {};
  const ClockRef nothing = std::make_shared<Clock>(
      Clock{std::make_shared<Times>(block.launch->threads_per_block, 0), nullptr});
  for (WarpOrder& o : c.order) o.lanes[0].known = nothing;
  order_block(block);
}

void forget_local(Warp& w, u32 lanes, u64 base, u64 bytes) {
  if (!(w.watch & kWatchInit) || bytes == 0) return;
  for (u32 left = lanes; left; left &= left - 1)
    fill_local_bits(w, u32(__builtin_ctz(left)), base, bytes, false);
}

void fill_local(Warp& w, u32 lane, u64 base, u64 bytes) {
  if (!(w.watch & kWatchInit)) return;
  fill_local_bits(w, lane, base, bytes, true);
}

void show_knowledge(Block& block, u32 warp) {
  BlockChecks& c = *block.checks;
  Watching& v = c.watching[warp];
  WarpOrder& o = c.order[warp];
  v.together = o.together ? 1 : 0;
  v.others = v.others_and_own = 0;
  if (!o.together) return;
  const Times& own = *o.lanes[0].known->own;
  v.least = ~Stamp{0};
  for (u32 u = 0; u < block.launch->warps_per_block; ++u) {
    const auto first = own.begin() + u * kLanes;
    const auto last = u + 1 == block.launch->warps_per_block ? own.end() : first + kLanes;
    v.known[u] = limit_of(c, *std::min_element(first, last));
    v.least = std::min(v.least, v.known[u]);
  }
}

void show_time(Block& block) {
  BlockChecks& c = *block.checks;
  if (c.time - c.stamp_base >= kStampTimeMax) {
    // Once in half a million events stamps have no more room: what they say is forgotten.
    std::fill(c.writers.begin(), c.writers.end(), Stamp{0});
    std::fill(c.readers.begin(), c.readers.end(), Stamp{0});
    std::fill(c.units.begin(), c.units.end(), Unit{});
    c.sets.clear(), c.merged.clear();
    c.stamp_base = c.time - 1;
    for (u32 i = 0; i < c.watching.size(); ++i) show_knowledge(block, i);
  }
  for (u32 i = 0; i < c.watching.size(); ++i) {
    c.watching[i].now = (c.time - c.stamp_base) << kStampTimeShift | i << 5;
    c.watching[i].others = c.watching[i].others_and_own = 0;
  }
}

bool report_once(Warp& w, const Op& op, u8 kind) {
  u8& reported = w.block->checks->reported[op.cache];
  if (reported & kind) return false;
  reported |= kind;
  return true;
}

bool stored_bytes(const Op& op, const Warp& w, u32 lane, u32 bytes, u8* to) {
  if (!(memory_flags(op) & kValues)) return false;
  const u32 width = bytes / op.count;
  for (u32 i = 0; i < op.count; ++i) {
    const u32 slot = op.count == 1 ? op.d : op.list[i];
    const u8* from =
        width == 8 ? w.wide[slot & 1] + slot + lane * 8 : w.narrow[slot & 1] + slot + lane * 4;
    std::memcpy(to + i * width, from, width);
  }
  return true;
}

}  // namespace attest::emulator
