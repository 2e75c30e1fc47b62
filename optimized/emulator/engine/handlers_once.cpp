// Handlers in which nothing is worth vectorising: what lanes agree on, barriers, calls, ends of
// threads. Compiled for the oldest instruction set and used by all.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/order.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_float.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

namespace attest::emulator::baseline {
namespace {

/// Checks the member mask in operand `members`. nullptr in `next`: all have come.
struct Gathering {
  bool complete = true;
  const Op* next = nullptr;
};
Gathering gather_members(const Op& op, Warp& w, u32 operand) {
  const u32* members = reinterpret_cast<const u32*>(slot<u32>(w, operand));
  u32 named = 0, unnamed = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    named |= members[l];
    unnamed |= ~members[l] & (1u << l);
  }
  if (((named & w.live & ~w.mask) | unnamed) == 0) {
    if (w.watch & kWatchRace) order_confer(w, w.mask);
    return {};
  }
  return {false, wait_for_lanes(w, op, named, unnamed)};
}

/// Lanes of the fragment with the same member mask as `lane`: each such group acts by itself.
u32 group_of(const Op& op, const Warp& w, u32 operand, u32 lane) {
  (void)op;
  const u32* members = reinterpret_cast<const u32*>(slot<u32>(w, operand));
  return members[lane] & w.mask;
}

// vote: a: predicate; b: member mask
enum class Vote : u8 { ballot, any, all, uni };
template <Vote kMode>
const Op* vote(const Op& op, Warp& w) {
  const Gathering g = gather_members(op, w, op.b);
  if (!g.complete) return g.next;
  const u32 p = w.predicates[op.a] ^ u32(op.immediate);
  u32 result_bits = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 group = group_of(op, w, op.b, l), votes = p & group;
    if (kMode == Vote::ballot) {
      reinterpret_cast<u32*>(slot<u32>(w, op.d))[l] = votes;
      continue;
    }
    const bool yes = kMode == Vote::any   ? votes != 0
                     : kMode == Vote::all ? votes == group
                                          : votes == 0 || votes == group;
    result_bits |= u32(yes) << l;
  }
  if (kMode != Vote::ballot) write_predicate(w, op.d, result_bits);
  return &op + 1;
}

// match: a: value; b: member mask; c: predicate or none
template <class T, bool kAll>
const Op* match(const Op& op, Warp& w) {
  const Gathering g = gather_members(op, w, op.b);
  if (!g.complete) return g.next;
  const u8* a = slot<T>(w, op.a);
  u32 found[kLanes] = {}, agree = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 group = group_of(op, w, op.b, l);
    for (u32 rest = group; rest; rest &= rest - 1) {
      const u32 m = u32(__builtin_ctz(rest));
      if (read<T>(a, m) == read<T>(a, l)) found[l] |= 1u << m;
    }
    if (kAll && found[l] != group) found[l] = 0;
    agree |= u32(found[l] != 0) << l;
  }
  u32* d = reinterpret_cast<u32*>(slot<u32>(w, op.d));
  for (u32 left = w.mask; left; left &= left - 1)
    d[__builtin_ctz(left)] = found[__builtin_ctz(left)];
  if (kAll && op.c != kNone) write_predicate(w, op.c, agree);
  return &op + 1;
}

// redux: a: value; b: member mask
/// A lane alone also passes through F when F(x, x) is what the operation makes of x.
template <auto F, bool kIdempotent = false>
const Op* redux(const Op& op, Warp& w) {
  const Gathering g = gather_members(op, w, op.b);
  if (!g.complete) return g.next;
  using T = decltype(F(0, 0));
  const T* a = reinterpret_cast<const T*>(slot<T>(w, op.a));
  T results[kLanes] = {};
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    u32 rest = group_of(op, w, op.b, l);
    T r = a[__builtin_ctz(rest)];
    if (kIdempotent) r = F(r, r);
    for (rest &= rest - 1; rest; rest &= rest - 1) r = F(r, a[__builtin_ctz(rest)]);
    results[l] = r;
  }
  T* d = reinterpret_cast<T*>(slot<T>(w, op.d));
  for (u32 left = w.mask; left; left &= left - 1)
    d[__builtin_ctz(left)] = results[__builtin_ctz(left)];
  return &op + 1;
}
template <class T>
T redux_add(T a, T b) {
  return T(u32(a) + u32(b));
}
template <class T>
T redux_min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T redux_max(T a, T b) {
  return a < b ? b : a;
}
inline u32 redux_and(u32 a, u32 b) {
  return a & b;
}
inline u32 redux_or(u32 a, u32 b) {
  return a | b;
}
inline u32 redux_xor(u32 a, u32 b) {
  return a ^ b;
}

/// redux of floats: .abs takes magnitudes, .NaN lets a NaN win.
template <bool kMaximum, bool kNaN, bool kMagnitude>
u32 redux_f32(u32 a, u32 b) {
  const u32 kept = kMagnitude ? 0x7fffffffu : ~0u;
  return bits_as<u32>(extreme_f32<kMaximum, false, kNaN, false>(bits_as<float>(a & kept),
                                                                bits_as<float>(b & kept)));
}
template <bool kMaximum>
Handler select_redux_f32(const Spelling& s) {
  if (s.has(M::abs))
    return s.has(M::NaN) ? redux<redux_f32<kMaximum, true, true>, true>
                         : redux<redux_f32<kMaximum, false, true>, true>;
  return s.has(M::NaN) ? redux<redux_f32<kMaximum, true, false>, true>
                       : redux<redux_f32<kMaximum, false, false>, true>;
}

const Op* active_mask(const Op& op, Warp& w) {
  u32* d = reinterpret_cast<u32*>(slot<u32>(w, op.d));
  for (u32 left = w.mask; left; left &= left - 1) d[__builtin_ctz(left)] = w.active;
  return &op + 1;
}

// elect: d: lane or none; c: predicate; b: member mask
const Op* elect(const Op& op, Warp& w) {
  const Gathering g = gather_members(op, w, op.b);
  if (!g.complete) return g.next;
  u32 leaders = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u32 leader = u32(__builtin_ctz(group_of(op, w, op.b, l)));
    leaders |= u32(leader == l) << l;
    if (op.d != kNone) reinterpret_cast<u32*>(slot<u32>(w, op.d))[l] = leader;
  }
  write_predicate(w, op.c, leaders);
  return &op + 1;
}

// bar: a: barrier; b: thread count, when flagged; c: predicate of bar.red; choice: 0 sync, 1..3
// red, 4 arrive
const Op* barrier(const Op& op, Warp& w) {
  const u32 lane = u32(__builtin_ctz(w.active));
  const u32 number = reinterpret_cast<const u32*>(slot<u32>(w, op.a))[lane];
  const u32 needed =
      op.flags & kHasCount ? reinterpret_cast<const u32*>(slot<u32>(w, op.b))[lane] : 0;
  const u32 bits = op.choice >= 1 && op.choice <= 3 ? w.predicates[op.c] ^ u32(op.immediate) : 0;
  return arrive_at_barrier(w, op, number, needed, op.choice != 4, bits);
}

// bar.warp.sync: a: member mask. Lanes may stand at different bar.warp.sync instructions.
const Op* warp_barrier(const Op& op, Warp& w) {
  const u32* members = reinterpret_cast<const u32*>(slot<u32>(w, op.a));
  u32 named = 0, unnamed = 0;
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    named |= members[l];
    unnamed |= ~members[l] & (1u << l);
  }
  if (unnamed != 0) return wait_for_lanes(w, op, named, unnamed);
  u32 standing = w.active;
  for (u32 i = 0; i < w.other_count; ++i) {
    if (w.others[i].wait == Wait::warp_barrier && (w.others[i].mask & named) != 0)
      standing |= w.others[i].mask;
  }
  if ((named & w.live & ~standing) != 0) {
    park(w, &op, Wait::warp_barrier, 0, named);
    return next_fragment(w);
  }
  for (u32 i = 0; i < w.other_count; ++i) {
    Fragment& f = w.others[i];
    if (f.wait == Wait::warp_barrier && (f.mask & named) != 0) f.wait = Wait::none, f.pc = f.pc + 1;
  }
  for (u32 left = w.active; left != 0;) {  // lanes of one instruction may name different masks
    const u32 group = members[__builtin_ctz(left)];
    order_lanes(w, group & standing & w.live);
    left &= ~group;
  }
  return w.other_count == 0 ? &op + 1 : go_to(w, &op + 1);
}

const Op* exit_lanes(const Op& op, Warp& w) {
  return end_lanes(w, op);
}
const Op* trap(const Op& op, Warp& w) {
  return fault(w, op, u32(__builtin_ctz(w.active)), "trap", "the kernel executed trap");
}
const Op* nanosleep(const Op& op, Warp& w) {
  w.polled = 1;
  *w.clock += 1000;
  return w.other_count == 0 ? &op + 1 : rotate(w, &op + 1);
}

// alloca: d: wide address; a: size (wide); immediate: alignment
const Op* alloca_lanes(const Op& op, Warp& w) {
  Frame& frame = *w.frame;
  const u64* sizes = reinterpret_cast<const u64*>(slot<u64>(w, op.a));
  u64 largest = 0;
  for (u32 left = w.mask; left; left &= left - 1)
    largest = std::max(largest, sizes[__builtin_ctz(left)]);
  const u64 alignment = u64(op.immediate);
  const u64 base = (frame.local_top + alignment - 1) / alignment * alignment;
  if (largest > w.local_stride || base + largest > w.local_stride) {
    return fault(w, op, u32(__builtin_ctz(w.active)), "limit",
                 fmt::format("alloca of {} bytes: the stack has {} bytes per thread", largest,
                             w.local_stride));
  }
  frame.local_top = u32(base + largest);
  forget_local(w, w.mask, base, largest);
  u64* d = reinterpret_cast<u64*>(slot<u64>(w, op.d));
  for (u32 left = w.mask; left; left &= left - 1) d[__builtin_ctz(left)] = base;
  return &op + 1;
}
const Op* stack_save(const Op& op, Warp& w) {
  u64* d = reinterpret_cast<u64*>(slot<u64>(w, op.d));
  for (u32 left = w.mask; left; left &= left - 1) d[__builtin_ctz(left)] = w.frame->local_top;
  return &op + 1;
}
const Op* stack_restore(const Op& op, Warp& w) {
  // Only when the whole warp is here may room be given back: other lanes may still use it.
  if (w.active == w.live)
    w.frame->local_top =
        u32(reinterpret_cast<const u64*>(slot<u64>(w, op.a))[__builtin_ctz(w.active)]);
  return &op + 1;
}

bool in_window(u64 address, u64 window) {
  return address >= window && address - window < kWindowBytes;
}
/// Whether it lies in one of the constants that isspacep lists.
bool is_constant(const Op& op, u64 address) {
  for (u32 i = 0; i < op.list[0]; ++i) {
    const u32* const at = op.list + 1 + 4 * i;
    if (address >= (u64(at[1]) << 32 | at[0]) && address < (u64(at[3]) << 32 | at[2])) return true;
  }
  return false;
}

// isspacep: a: generic address; list: the module's constants; immediate: window, if it has one. Global memory holds the parameters of kernels too, but no constants.
template <Space kSpace>
const Op* is_space(const Op& op, Warp& w) {
  const u64* a = reinterpret_cast<const u64*>(slot<u64>(w, op.a));
  u32 bits = 0;
  for (u32 l = 0; l < kLanes; ++l) {
    bool inside = in_window(a[l], u64(op.immediate));
    if constexpr (kSpace == Space::constant) inside = is_constant(op, a[l]);
    if constexpr (kSpace == Space::global)
      inside = ((a[l] < kSharedWindow && a[l] != 0) || in_window(a[l], kParamWindow)) &&
               !is_constant(op, a[l]);
    bits |= u32(inside) << l;
  }
  write_predicate(w, op.d, bits);
  return &op + 1;
}

}  // namespace

Handler select_vote(const Spelling& s) {
  if (s.has(M::ballot)) return vote<Vote::ballot>;
  if (s.has(M::any)) return vote<Vote::any>;
  if (s.has(M::all)) return vote<Vote::all>;
  return s.has(M::uni) ? vote<Vote::uni> : nullptr;
}
Handler select_match(const Spelling& s) {
  if (s.type() == Type::b32) return s.has(M::all) ? match<u32, true> : match<u32, false>;
  return s.has(M::all) ? match<u64, true> : match<u64, false>;
}
Handler select_redux(const Spelling& s) {
  const bool is_signed = s.type() == Type::s32;
  if (s.type() == Type::f32)
    return s.has(M::max) ? select_redux_f32<true>(s) : select_redux_f32<false>(s);
  if (s.has(M::add)) return redux<redux_add<u32>>;
  if (s.has(M::min)) return is_signed ? redux<redux_min<s32>> : redux<redux_min<u32>>;
  if (s.has(M::max)) return is_signed ? redux<redux_max<s32>> : redux<redux_max<u32>>;
  if (s.has(M::and_)) return redux<redux_and>;
  if (s.has(M::or_)) return redux<redux_or>;
  return s.has(M::xor_) ? redux<redux_xor> : nullptr;
}
Handler select_activemask(const Spelling&) {
  return active_mask;
}
Handler select_elect(const Spelling&) {
  return elect;
}
Handler select_bar(const Spelling& s) {
  return s.has(M::warp) ? warp_barrier : barrier;
}
Handler select_barrier(const Spelling&) {
  return barrier;
}
Handler select_ret(const Spelling&) {
  return return_from;
}
Handler select_exit(const Spelling&) {
  return exit_lanes;
}
Handler select_trap(const Spelling&) {
  return trap;
}
Handler select_nanosleep(const Spelling&) {
  return nanosleep;
}
Handler select_alloca(const Spelling&) {
  return alloca_lanes;
}
Handler select_stacksave(const Spelling&) {
  return stack_save;
}
Handler select_stackrestore(const Spelling&) {
  return stack_restore;
}
Handler select_isspacep(const Spelling& s) {
  if (s.has(M::global)) return is_space<Space::global>;
  if (s.has(M::constant)) return is_space<Space::constant>;
  return is_space<Space::generic>;
}
Handler select_fns(const Spelling&) {
  return lanewise<find_nth_set>;
}

}  // namespace attest::emulator::baseline
