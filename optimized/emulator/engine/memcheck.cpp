// Judges addresses that the quick checks of the handlers did not accept: either they lie in another
// allocation than last time, or they lie nowhere they may.
#include <fmt/format.h>

#include <array>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/liveness.hpp"

namespace attest::emulator {
namespace {

constexpr u64 kHostBytes = u64{1} << 47;  // user addresses on x86-64
constexpr u64 kNullBytes = 4096;          // no allocation begins this low

/// "reads", "writes" or "updates".
std::string_view verb_of(const Op& op, const Warp& w, std::string_view space) {
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  if (i.opcode == "atom" || i.opcode == "red" || i.opcode == "mbarrier") return "updates";
  const bool stores = (i.opcode == "cp" && space == "shared") || i.opcode == "st" ||
                      i.opcode == "stmatrix" ||
                      (i.opcode == "wmma" && !i.modifiers.empty() && i.modifiers[0] == "store");
  return stores ? "writes" : "reads";
}

std::string access_text(const Op& op, const Warp& w, u32 bytes, std::string_view space) {
  return fmt::format("{} {} bytes of {} memory", verb_of(op, w, space), bytes, space);
}

void fault_global(const Op& op, Warp& w, u32 lane, u64 address, u32 bytes) {
  const Memory& memory = *w.block->launch->memory;
  const bool misplaced = address & (bytes - 1);
  const auto range = memory.find_accessible(address);
  const bool inside = range && range->end - address >= bytes;
  const std::string why = inside && misplaced
                              ? fmt::format("the address is not aligned to {} bytes", bytes)
                              : memory.describe(address, bytes);
  fault(w, op, lane, "memcheck",
        fmt::format("{} at {:#x}: {}", access_text(op, w, bytes, "global"), address, why));
}

/// A generic address in one of the windows; 0 and a recorded fault when it may not be used.
u64 place_in_window(const Op& op, Warp& w, u32 lane, u64 address, u32 bytes) {
  const u64 offset = address & (kWindowBytes - 1);
  const bool misplaced = address & (bytes - 1);
  const auto within = [&](u64 window, u64 size) {
    return address >= window && address - window < kWindowBytes && offset + bytes <= size &&
           !misplaced;
  };
  if (within(kSharedWindow, w.shared_bytes)) return reinterpret_cast<u64>(w.shared) + offset;
  if (within(kLocalWindow, w.local_stride))
    return reinterpret_cast<u64>(w.local) + lane * w.local_stride + offset;
  if (within(kParamWindow, w.parameter_bytes) && verb_of(op, w, "parameter") == "reads")
    return reinterpret_cast<u64>(w.parameters) + offset;
  const auto in_window = [&](u64 window) {
    return address >= window && address - window < kWindowBytes;
  };
  if (in_window(kSharedWindow))
    fault_place(op, w, lane, offset, bytes, Space::shared);
  else if (in_window(kLocalWindow))
    fault_place(op, w, lane, offset, bytes, Space::local);
  else if (in_window(kParamWindow))
    fault_place(op, w, lane, offset, bytes, Space::param);
  else if (in_window(kCodeWindow))
    fault(w, op, lane, "memcheck",
          fmt::format("{} at {:#x}: this is the address of a function",
                      access_text(op, w, bytes, "generic"), address));
  else
    fault_global(op, w, lane, address, bytes);
  return 0;
}

}  // namespace

void fault_place(const Op& op, Warp& w, u32 lane, u64 offset, u32 bytes, Space space) {
  std::string_view name = "shared";
  u64 size = w.shared_bytes;
  if (space == Space::local) name = "local", size = w.local_stride;
  if (space == Space::param) name = "parameter", size = w.parameter_bytes;
  std::string why;
  if (offset + bytes <= size && offset <= size) {
    why = (offset & (bytes - 1)) ? fmt::format("the address is not aligned to {} bytes", bytes)
                                 : std::string("it may not be written");
  } else if (space == Space::shared && offset >= kWindowBytes && offset >> 32 != kNone) {
    why = "the address does not lie in shared memory";
  } else if (s32(u32(offset)) < 0 && space == Space::shared) {
    why = fmt::format("{} bytes before the shared memory of the block", -s64(s32(u32(offset))));
  } else if (space == Space::shared) {
    const u64 dynamic = w.block->launch->dynamic_shared_bytes;
    why = fmt::format("the block has {} bytes ({} static and {} dynamic)", size, size - dynamic,
                      dynamic);
  } else {
    why = fmt::format("there are {} bytes", size);
  }
  fault(w, op, lane, "memcheck",
        fmt::format("{} at offset {:#x}: {}", access_text(op, w, bytes, name), offset, why));
}

bool find_places(const Op& op, Warp& w, u64* at, u32 bytes, Space space) {
  const LaunchState& launch = *w.block->launch;
  Interval& near = w.intervals[op.cache];
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    const u64 address = at[lane];
    if (address >= kSharedWindow && (space == Space::generic || address >= kCodeWindow)) {
      at[lane] = place_in_window(op, w, lane, address, bytes);
      if (at[lane] == 0) return false;
      continue;
    }
    if (address & (bytes - 1)) {
      fault_global(op, w, lane, address, bytes);
      return false;
    }
    if (!launch.options.checks.memcheck && address >= kNullBytes && address < kHostBytes) {
      near = {kNullBytes, kHostBytes};
      continue;
    }
    if (address - near.low < near.count) continue;
    const auto range = launch.memory->find_accessible(address);
    if (!range || range->end - address < bytes) {
      fault_global(op, w, lane, address, bytes);
      return false;
    }
    near = {range->begin, range->end - range->begin - bytes + 1};
  }
  return true;
}

}  // namespace attest::emulator
