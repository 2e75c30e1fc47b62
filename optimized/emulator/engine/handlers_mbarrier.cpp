// mbarrier: initialisation, arrivals, waits. The object's state is async.cpp's; the 64 bits in
// shared memory only show it. Compiled for the oldest instruction set and used by all.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/lane.hpp"
#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/order.hpp"
#include "optimized/emulator/engine/select.hpp"

namespace attest::emulator::baseline {
namespace {

constexpr u32 kObjectBytes = 8;
constexpr u32 kCountMax = (1u << 20) - 1;  // of arrivals and of bytes, as PTX states
constexpr u32 kStateBits = 20;             // a state is phase << 20 | pending arrivals

// Operands of all: a: address (flags: how wide, and whether generic), immediate: added to it;
// b: count, bytes, state or parity, or none; d: state or predicate, or none.

/// The object's offset in shared memory; kNone and a fault when it cannot be one.
u32 offset_of(const Op& op, Warp& w, u32 lane) {
  const bool wide = op.choice & kObjectWide;
  u64 at = (wide ? read<u64>(slot<u64>(w, op.a), lane) : read<u32>(slot<u32>(w, op.a), lane)) +
           u64(op.immediate);
  if (!wide) at = u32(at);
  if (op.choice & kObjectGeneric) {
    if (at < kSharedWindow || at - kSharedWindow >= kWindowBytes) {
      fault(w, op, lane, "memcheck",
            fmt::format("the mbarrier at {:#x} does not lie in shared memory", at));
      return kNone;
    }
    at -= kSharedWindow;
  }
  if (at > w.shared_bytes || w.shared_bytes - at < kObjectBytes || at % kObjectBytes != 0) {
    fault_place(op, w, lane, at, kObjectBytes, Space::shared);
    return kNone;
  }
  return u32(at);
}

/// Whoever uses an mbarrier must know that it was initialised. Its own later uses by the thread
/// that did so hide that write from the race checker, so it is kept with the object.
void judge_use(const Op& op, Warp& w, u32 lane, u32 offset, const MBarrier& object) {
  if (!(w.watch & kWatchRace) || object.maker == w.index * kLanes + lane ||
      object.made <= known_time(w, lane, w.block->number, object.maker) ||
      !report_once(w, op, kWatchRace))
    return;
  const Warp& other = w.block->warps[object.maker / kLanes];
  const u32 l = object.maker % kLanes;
  note(
      w, op, lane, "racecheck",
      fmt::format("uses the mbarrier at offset {:#x}, which thread ({},{},{}) initialised; nothing "
                  "orders the two: a barrier between them is missing",
                  offset, other.thread[0][l], other.thread[1][l], other.thread[2][l]));
}

/// The mbarrier a lane means; nullptr and a fault when there is none.
MBarrier* object_of(const Op& op, Warp& w, u32 lane, u32& offset) {
  offset = offset_of(op, w, lane);
  if (offset == kNone) return nullptr;
  auto& objects = w.block->async.objects;
  const auto it = objects.find(offset);
  if (it != objects.end()) {
    judge_use(op, w, lane, offset, it->second);
    return &it->second;
  }
  fault(w, op, lane, "barrier",
        fmt::format("no mbarrier was initialised at offset {:#x} of shared memory", offset));
  return nullptr;
}

u64 place_of(const Warp& w, u32 offset) {
  return reinterpret_cast<u64>(w.shared) + offset;
}

/// Shows the checkers of races and initialisation that the object is used.
void show(const Op& op, Warp& w, u32 lane, Access access, u32 offset) {
  const u8 watch = w.watch;
  w.watch &= kWatchInit | kWatchRace;
  if (w.watch != 0)
    watch_lane(op, w, lane, access, Space::shared, place_of(w, offset), kObjectBytes);
  w.watch = watch;
}

u32 operand(const Op& op, const Warp& w, u32 lane, u32 otherwise) {
  return op.b == kNone ? otherwise : read<u32>(slot<u32>(w, op.b), lane);
}

bool count_is_good(const Op& op, Warp& w, u32 lane, u32 count) {
  if (count >= 1 && count <= kCountMax) return true;
  fault(w, op, lane, "barrier",
        fmt::format("an mbarrier counts from 1 to {}, not {}", kCountMax, count));
  return false;
}

const Op* initialise(const Op& op, Warp& w) {
  Block& block = *w.block;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 offset = offset_of(op, w, l), count = operand(op, w, l, 0);
    if (offset == kNone || !count_is_good(op, w, l, count)) return nullptr;
    show(op, w, l, Access::write, offset);
    if (block.async.objects.contains(offset)) {
      note(w, op, l, "barrier",
           fmt::format("the mbarrier at offset {:#x} is initialised again; invalidate it first",
                       offset));
    }
    const u32 now = w.watch & kWatchRace ? block.checks->time : 0;
    block.async.objects[offset] = {count, count, 0, 0, w.index * kLanes + l, now};
    forbid(block.async, offset, kObjectBytes, true);
    count_arrivals(block, offset, 0, 0);
  }
  refresh_forbidden(block);
  return &op + 1;
}

const Op* invalidate(const Op& op, Warp& w) {
  Block& block = *w.block;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 offset = 0;
    if (object_of(op, w, l, offset) == nullptr) return nullptr;
    show(op, w, l, Access::update, offset);
    block.async.objects.erase(offset);
    forbid(block.async, offset, kObjectBytes, false);
  }
  refresh_forbidden(block);
  return &op + 1;
}

enum class Arrive : u8 { once, dropping, expecting };
template <Arrive kHow, bool kCompletes>
const Op* arrive(const Op& op, Warp& w) {
  Block& block = *w.block;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 offset = 0;
    MBarrier* const object = object_of(op, w, l, offset);
    if (object == nullptr) return nullptr;
    const u32 count = kHow == Arrive::expecting ? 1 : operand(op, w, l, 1);
    if (!count_is_good(op, w, l, count)) return nullptr;
    if (count > object->pending || (!kCompletes && count == object->pending)) {
      return fault(w, op, l, "barrier",
                   fmt::format("{} arrivals at the mbarrier at offset {:#x}, whose phase {} lacks "
                               "{} of {}{}",
                               count, offset, object->phase, object->pending, object->arrivals,
                               kCompletes ? "" : " and may not be completed by .noComplete"));
    }
    show(op, w, l, Access::update, offset);
    if (op.d != kNone)
      write<u64>(slot<u64>(w, op.d), l, object->phase << kStateBits | object->pending);
    if (kHow == Arrive::expecting) object->bytes += operand(op, w, l, 0);
    if (kHow == Arrive::dropping) object->arrivals -= count;
    order_release(w, l, place_of(w, offset));
    count_arrivals(block, offset, count, 0);
  }
  return &op + 1;
}

template <bool kExpects>
const Op* count_bytes(const Op& op, Warp& w) {
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 offset = 0;
    MBarrier* const object = object_of(op, w, l, offset);
    if (object == nullptr) return nullptr;
    const s64 bytes = operand(op, w, l, 0);
    const s64 after = object->bytes + (kExpects ? bytes : -bytes);
    if (after > s64(kCountMax) || after < -s64(kCountMax)) {
      return fault(
          w, op, l, "barrier",
          fmt::format("the mbarrier at offset {:#x} would wait for {} bytes; {} is the most",
                      offset, after, kCountMax));
    }
    show(op, w, l, Access::update, offset);
    if (kExpects)
      object->bytes = after;
    else
      count_arrivals(*w.block, offset, 0, bytes);
  }
  return &op + 1;
}

/// Whether the lane's phase is over; a fault (false in `good`) when its state belongs to no phase
/// that may be asked for.
template <bool kParity>
bool is_over(const Op& op, Warp& w, u32 lane, u32 offset, const MBarrier& object, bool& good) {
  if (kParity) return (object.phase & 1) != (read<u32>(slot<u32>(w, op.b), lane) & 1);
  const u64 phase = read<u64>(slot<u64>(w, op.b), lane) >> kStateBits;
  good = phase == object.phase || phase + 1 == object.phase;
  if (!good) {
    fault(w, op, lane, "barrier",
          fmt::format("the mbarrier at offset {:#x} is in phase {}; the state is of phase {}, and "
                      "only the current and the preceding one can be waited for",
                      offset, object.phase, phase));
  }
  return phase < object.phase;
}

/// Whoever waits would go on polling: what is under way for the object comes about now, or, under a
/// seed, at one of the next times.
void deliver_to(Block& block, u32 object) {
  constexpr u32 kPolls = 4;
  Async& async = block.async;
  for (std::size_t i = 0; i < async.arrivals.size();) {
    if (async.arrivals[i].object == object &&
        (!block.schedule.permutes() || block.schedule.one_in(kPolls))) {
      i = i + 1 - bring_about(block, i);
    } else {
      ++i;
    }
  }
}

template <bool kParity>
const Op* wait(const Op& op, Warp& w) {
  Block& block = *w.block;
  u32 over = 0, last = kNone;
  bool good = true;
  for (u32 left = w.mask; left && good; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 offset = 0;
    const MBarrier* const object = object_of(op, w, l, offset);
    if (object == nullptr) return nullptr;
    show(op, w, l, Access::update, offset);
    if (is_over<kParity>(op, w, l, offset, *object, good)) {
      over |= 1u << l;
      order_acquire(w, l, place_of(w, offset));
      if (offset != last) land_after_phase(block, offset);
      last = offset;
    } else {
      note_poll(w, op, l, offset);
    }
  }
  if (!good) return nullptr;
  write_predicate(w, op.d, over);
  if (over == w.mask) {
    block.async.progress();
    return &op + 1;
  }
  if (over != 0) block.async.progress();
  for (u32 left = w.mask & ~over; left && !block.faulted; left &= left - 1)
    deliver_to(block, offset_of(op, w, u32(__builtin_ctz(left))));
  if (block.faulted || report_endless_polling(block)) return nullptr;
  // Others get their turn, in this warp and beside it: what is waited for has to come from them.
  w.resume = w.other_count == 0 ? &op + 1 : rotate(w, &op + 1);
  return nullptr;
}

// d: arrivals; b: state
const Op* pending_count(const Op& op, Warp& w) {
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    write<u32>(slot<u32>(w, op.d), l, u32(read<u64>(slot<u64>(w, op.b), l)) & kCountMax);
  }
  return &op + 1;
}

/// cp.async.mbarrier.arrive: an arrival that comes about when the thread's copies have.
template <bool kCounted>
const Op* arrive_after_copies(const Op& op, Warp& w) {
  Async& async = w.block->async;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 offset = 0;
    MBarrier* const object = object_of(op, w, l, offset);
    if (object == nullptr) return nullptr;
    if (!kCounted && object->pending == kCountMax) {
      return fault(w, op, l, "barrier",
                   fmt::format("the mbarrier at offset {:#x} lacks {} arrivals already, the most "
                               "there can be",
                               offset, kCountMax));
    }
    show(op, w, l, Access::update, offset);
    object->pending += kCounted ? 0 : 1;
    async.arrivals.push_back({&op, w.index, l, offset, async.serial});
  }
  return &op + 1;
}

}  // namespace

Handler select_mbarrier(const Spelling& s) {
  if (s.opcode == Opcode::cp)
    return s.has(M::noinc) ? arrive_after_copies<true> : arrive_after_copies<false>;
  if (s.has(M::init)) return initialise;
  if (s.has(M::inval)) return invalidate;
  if (s.has(M::test_wait) || s.has(M::try_wait)) return s.has(M::parity) ? wait<true> : wait<false>;
  if (s.has(M::pending_count)) return pending_count;
  const bool completes = !s.has(M::noComplete);
  if (s.has(M::arrive) && s.has(M::expect_tx))
    return completes ? arrive<Arrive::expecting, true> : nullptr;
  if (s.has(M::arrive)) return completes ? arrive<Arrive::once, true> : arrive<Arrive::once, false>;
  if (s.has(M::arrive_drop)) {
    if (s.has(M::expect_tx)) return nullptr;
    return completes ? arrive<Arrive::dropping, true> : arrive<Arrive::dropping, false>;
  }
  if (s.has(M::expect_tx)) return count_bytes<true>;
  return s.has(M::complete_tx) ? count_bytes<false> : nullptr;
}

}  // namespace attest::emulator::baseline
