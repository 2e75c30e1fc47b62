// Device function calls, direct and through addresses: arguments, frames, returns.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/state.hpp"

namespace attest::emulator {
namespace {

// Deeper than any stack of CUDA's default size allows.
constexpr u32 kDepthMax = 2048;

u8* local_of(const Warp& w, u32 lane) {
  return w.local + lane * w.local_stride;
}

/// Copies one value per lane between the frames of caller and callee.
void pass(Warp& w, u32 lanes, const Frame& from_frame, const Passing& from, const Frame& to_frame,
          const Passing& to) {
  for (u32 left = lanes; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    u64 value[32] = {0};
    const u32 bytes = std::min(from.bytes, to.bytes);
    const auto address = [&](const Frame& f, const Passing& p) -> u8* {
      if (!p.in_register) return local_of(w, lane) + f.local_base + p.at;
      const u32 tag = p.at & 1;
      return p.bytes == 8 ? f.wide[tag] + p.at + lane * 8 : f.narrow[tag] + p.at + lane * 4;
    };
    u8* const source = address(from_frame, from);
    u8* const target = address(to_frame, to);
    if (bytes <= sizeof value) {
      std::memcpy(value, source, bytes);
      std::memcpy(target, value, bytes);
    } else {
      std::memmove(target, source, bytes);
    }
    if (!to.in_register) fill_local(w, lane, to_frame.local_base + to.at, to.bytes);
  }
}

}  // namespace

/// The value of argument i of the call, for one lane.
u64 argument(const Warp& w, const CallSite& site, std::size_t i, u32 lane) {
  u64 value = 0;
  if (i >= site.arguments.size()) return 0;
  const Passing& p = site.arguments[i];
  const Frame& f = *w.frame;
  const u8* from = p.in_register ? (p.bytes == 8 ? f.wide[p.at & 1] + p.at + lane * 8
                                                 : f.narrow[p.at & 1] + p.at + lane * 4)
                                 : w.local + lane * w.local_stride + f.local_base + p.at;
  std::memcpy(&value, from, std::min<std::size_t>(p.bytes, 8));
  return value;
}

namespace {

const Op* fault_lane(Warp& w, const Op& op, std::string_view kind, const std::string& what) {
  return fault(w, op, u32(__builtin_ctz(w.active)), kind, what);
}

/// The callee of an indirect call for the lane, or nullptr.
const Code* callee_at(const Warp& w, u64 address) {
  const Program& program = *w.block->launch->program;
  if (address < kCodeWindow || (address - kCodeWindow) % 16 != 0 || address == kCodeWindow)
    return nullptr;
  const auto it = program.codes.find(u32((address - kCodeWindow) / 16 - 1));
  return it == program.codes.end() || it->second->function->entry ? nullptr : it->second.get();
}

const Op* enter(const Op& op, Warp& w, const CallSite& site, const Code& callee, u32 lanes) {
  Frame& caller = *w.frame;
  if (callee.parameters.size() != site.arguments.size()) {
    return fault_lane(
        w, op, "unsupported",
        fmt::format("'{}' is called with {} arguments and takes {}", callee.function->name,
                    site.arguments.size(), callee.parameters.size()));
  }
  const u32 base = (caller.local_top + 15) / 16 * 16;
  if (caller.depth + 1 >= kDepthMax || base + callee.frame_bytes > w.local_stride) {
    return fault_lane(
        w, op, "limit",
        fmt::format("the call stack is exhausted: {} calls deep, {} of {} bytes per thread",
                    caller.depth, base, w.local_stride));
  }
  // Lanes that already are inside the same activation share its frame, and so can meet again.
  Frame* frame = nullptr;
  for (u32 i = 0; i < w.other_count && frame == nullptr; ++i) {
    for (Frame* f = w.others[i].frame; f != nullptr; f = f->parent) {
      if (f->parent == &caller && f->call_site == &op && f->code == &callee && f->lanes != 0) {
        frame = f;
        break;
      }
    }
  }
  if (frame == nullptr) frame = new_frame(*w.block, callee, &caller, &op, &op + 1, base);
  frame->lanes |= lanes;
  // Local memory of a call starts unwritten, like its registers.
  for (u32 left = callee.frame_bytes ? lanes : 0; left; left &= left - 1)
    std::memset(local_of(w, u32(__builtin_ctz(left))) + base, 0xff, callee.frame_bytes);
  forget_local(w, lanes, base, callee.frame_bytes);
  for (std::size_t i = 0; i < site.arguments.size(); ++i) {
    pass(w, lanes, caller, site.arguments[i], *frame, callee.parameters[i]);
  }
  w.active = w.mask = lanes;
  load_frame(w, frame);
  return go_to(w, callee.ops.data());
}

}  // namespace

namespace {

/// malloc: each active lane for itself; 0 when the heap is used up.
const Op* allocate_lanes(const Op& op, Warp& w, const CallSite& site) {
  if (site.arguments.size() != 1 || site.results.size() != 1)
    return fault_lane(w, op, "unsupported", "malloc takes one argument and gives one result");
  const Passing& p = site.results[0];
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    const u64 bytes = argument(w, site, 0, lane);
    const u64 place = reinterpret_cast<u64>(w.block->launch->memory->allocate_heap(bytes));
    u8* const to = p.in_register ? w.frame->wide[0] + p.at + lane * 8
                                 : local_of(w, lane) + w.frame->local_base + p.at;
    if (p.in_register && p.bytes != 8)
      return fault_lane(w, op, "unsupported", "malloc gives a 64-bit address");
    std::memcpy(to, &place, std::min<u32>(p.bytes, sizeof place));
  }
  return &op + 1;
}

const Op* free_lanes(const Op& op, Warp& w, const CallSite& site) {
  if (site.arguments.size() != 1)
    return fault_lane(w, op, "unsupported", "free takes one argument");
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    const u64 place = argument(w, site, 0, lane);
    if (place == 0 || w.block->launch->memory->release_heap(place)) continue;
    return fault(
        w, op, lane, "memcheck",
        fmt::format("frees {:#x}, which malloc of a kernel did not give, or not any more", place));
  }
  return &op + 1;
}

}  // namespace

const Op* call(const Op& op, Warp& w) {
  const CallSite& site = w.frame->code->calls[op.cache];
  switch (site.builtin) {
    case Builtin::vprintf:
      return print_formatted(op, w, site);
    case Builtin::assertfail:
      return fail_assertion(op, w, site);
    case Builtin::malloc:
      return allocate_lanes(op, w, site);
    case Builtin::free:
      return free_lanes(op, w, site);
    case Builtin::unknown:
      return fault_lane(
          w, op, "unsupported",
          fmt::format(
              "the function '{}' has no body in this module; link it in, or compile without -rdc",
              site.name));
    case Builtin::none:
      break;
  }
  if (site.target != nullptr) return enter(op, w, site, *site.target, w.active);
  // Lanes with different targets part here; each group calls for itself.
  const u64* addresses = reinterpret_cast<const u64*>(w.wide[site.address & 1] + site.address);
  const u32 first = u32(__builtin_ctz(w.active));
  u32 same = 0;
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    if (addresses[lane] == addresses[first]) same |= 1u << lane;
  }
  const Code* callee = callee_at(w, addresses[first]);
  if (callee == nullptr) {
    return fault(w, op, first, "memcheck",
                 fmt::format("calls {:#x}, which is no function of this module", addresses[first]));
  }
  if (same != w.active) {
    // The others come back to this call when the group has gone inside.
    Fragment rest{&op, w.frame, w.active & ~same, Wait::none, 0, 0};
    w.others[w.other_count++] = rest;
    undo_count(w, op, 0, rest.mask);
    w.active = w.mask = same;
  }
  return enter(op, w, site, *callee, same);
}

const Op* return_from(const Op& op, Warp& w) {
  Frame* frame = w.frame;
  if (frame->parent == nullptr) return end_lanes(w, op);
  Frame& caller = *frame->parent;
  const CallSite& site = caller.code->calls[frame->call_site->cache];
  const std::size_t count = std::min(site.results.size(), frame->code->results.size());
  for (std::size_t i = 0; i < count; ++i) {
    pass(w, w.active, *frame, frame->code->results[i], caller, site.results[i]);
  }
  const Op* back = frame->return_to;
  frame->lanes &= ~w.active;
  if (frame->lanes == 0) w.block->spare_frames.push_back(frame);
  load_frame(w, &caller);
  return go_to(w, back);
}

}  // namespace attest::emulator
