// Selection, movement, branches, and what lanes tell each other; and the loop that runs
// a warp.
#include "optimized/emulator/engine/checks/watching.hpp"
#include "optimized/emulator/engine/order.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_float.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {
namespace {

// --- predicates ---
const Op* predicate_logic(const Op& op, Warp& w) {
  const u32 a = w.predicates[op.a] ^ u32(op.immediate);  // the immediate negates the first operand
  const u32 b = w.predicates[op.b];
  u32 r = a;
  switch (op.choice) {
    case 0:
      r = a & b;
      break;
    case 1:
      r = a | b;
      break;
    case 2:
      r = a ^ b;
      break;
    case 3:
      r = ~a;
      break;
    default:
      break;
  }
  write_predicate(w, op.d, r);
  return &op + 1;
}
const Op* predicate_constant(const Op& op, Warp& w) {
  write_predicate(w, op.d, u32(op.immediate));
  return &op + 1;
}

template <class T>
const Op* select_lanes(const Op& op, Warp& w) {
  const u8* a = slot<T>(w, op.a);
  const u8* b = slot<T>(w, op.b);
  const u32 chosen = w.predicates[op.c] ^ u32(op.immediate);
  u8* d = target<T>(op, w);
  ATTEST_LANES write<T>(d, l, (chosen >> l) & 1 ? read<T>(a, l) : read<T>(b, l));
  commit<T>(op, w);
  return &op + 1;
}
template <class T>
ATTEST_INLINE T by_sign(T a, T b, s32 c) {
  return c >= 0 ? a : b;
}
template <class T, bool kFlush>
ATTEST_INLINE T by_sign_f32(T a, T b, float c) {
  return operand<kFlush>(c) >= 0 ? a : b;
}

ATTEST_INLINE u64 pack_words(u32 a, u32 b) {
  return u64(b) << 32 | a;
}
ATTEST_INLINE u32 high_word(u64 a) {
  return u32(a >> 32);
}

// --- the guard, block leaders, branches ---
const Op* guarded(const Op& op, Warp& w) {
  const u32 all = w.mask;
  const u32 on = all & (op.guard_negated ? ~w.predicates[op.guard] : w.predicates[op.guard]);
  w.uncounted += op.flags & kUncounted ? 1 : 0;
  undo_count(w, op, 0, all & ~on);
  if (on == 0) return &op + 1;
  w.mask = on;
  const Op* next = op.inner(op, w);
  w.mask = all;
  return next;
}
const Op* uncounted(const Op& op, Warp& w) {
  ++w.uncounted;
  return op.inner(op, w);
}
const Op* join(const Op& op, Warp& w) {
  ++w.uncounted;
  const Op* next = &op + 1;
  return next < w.join_at ? next : go_to(w, next);
}
const Op* bra(const Op& op, Warp& w) {
  const Op* to = op.target;
  return to < w.join_at ? to : go_to(w, to);
}
const Op* bra_conditional(const Op& op, Warp& w) {
  w.uncounted += op.flags & kUncounted ? 1 : 0;
  const u32 taken =
      w.active & (op.guard_negated ? ~w.predicates[op.guard] : w.predicates[op.guard]);
  if (taken == w.active) {
    const Op* to = op.target;
    return to < w.join_at ? to : go_to(w, to);
  }
  return taken == 0 ? &op + 1 : split(w, op, op.target, taken);
}

// --- special registers ---
u32 lane_mask(Special which, u32 lane) {
  const u32 own = 1u << lane;
  switch (which) {
    case Special::lanemask_eq:
      return own;
    case Special::lanemask_le:
      return own | (own - 1);
    case Special::lanemask_lt:
      return own - 1;
    case Special::lanemask_ge:
      return ~(own - 1);
    default:
      return ~(own | (own - 1));
  }
}
u64 special_value(const Op& op, const Warp& w, u32 lane) {
  const Special which = Special(op.choice);
  switch (which) {
    case Special::tid_x:
    case Special::tid_y:
    case Special::tid_z:
      return w.thread[op.choice][lane];
    case Special::ntid_x:
    case Special::ntid_y:
    case Special::ntid_z:
      return w.block_extent[op.choice - unsigned(Special::ntid_x)];
    case Special::ctaid_x:
    case Special::ctaid_y:
    case Special::ctaid_z:
      return w.block_index[op.choice - unsigned(Special::ctaid_x)];
    case Special::nctaid_x:
    case Special::nctaid_y:
    case Special::nctaid_z:
      return w.grid[op.choice - unsigned(Special::nctaid_x)];
    case Special::laneid:
      return lane;
    case Special::warpid:
      return w.index;
    case Special::nwarpid:
      return (w.block_extent[0] * w.block_extent[1] * w.block_extent[2] + kLanes - 1) / kLanes;
    case Special::nsmid:
      return 1;
    case Special::total_smem_size:
      return w.shared_bytes;
    case Special::dynamic_smem_size:
      return u64(op.immediate);
    case Special::clock:
    case Special::globaltimer:
      return *w.clock;
    case Special::clock_hi:
      return *w.clock >> 32;
    case Special::envreg1:
      return w.grid_workspace >> 32;
    case Special::envreg2:
      return u32(w.grid_workspace);
    case Special::smid:
    case Special::gridid:
    case Special::zero:
    case Special::kCount:
      return 0;
    case Special::one:
      return 1;
    default:
      return lane_mask(which, lane);
  }
}
template <class T>
const Op* special(const Op& op, Warp& w) {
  const bool timed = Special(op.choice) == Special::clock ||
                     Special(op.choice) == Special::clock_hi ||
                     Special(op.choice) == Special::globaltimer;
  if (timed) {
    // A clock counts what was executed, which the block knows between turns: end this one first.
    if (w.resume != &op) {
      w.resume = &op;
      return nullptr;
    }
    w.resume = nullptr;
  }
  u8* d = target<T>(op, w);
  for (unsigned l = 0; l < kLanes; ++l) write<T>(d, l, T(special_value(op, w, l)));
  commit<T>(op, w);
  return &op + 1;
}
template <class T>
const Op* frame_address(const Op& op, Warp& w) {
  u8* d = target<T>(op, w);
  const T value = T(w.frame->local_base + u64(op.immediate));
  ATTEST_LANES write<T>(d, l, value);
  commit<T>(op, w);
  return &op + 1;
}

// --- shfl ---
/// to[l] = from[source[l]]
ATTEST_INLINE void permute_lanes(u32* to, const u32* from, const u32* source) {
#ifdef __AVX512F__
  const __m512i low = _mm512_load_si512(from), high = _mm512_load_si512(from + 16);
  for (unsigned i = 0; i < kLanes; i += 16) {
    const __m512i at = _mm512_load_si512(source + i);
    _mm512_store_si512(to + i, _mm512_permutex2var_epi32(low, at, high));
  }
#else
  for (unsigned l = 0; l < kLanes; ++l) to[l] = from[source[l]];
#endif
}

enum class Shuffle : u8 { up, down, bfly, idx };
/// A lane that takes its value from one that does not execute the instruction, or that its own
/// member mask leaves out, gets 0xffffffff (as f32 a NaN). PTX leaves that value undefined and only
/// its use is a mistake, which reductions over a full tree avoid by ignoring it: so no fault here,
/// but the checker of initialisation follows it.
template <Shuffle kMode>
const Op* shuffle(const Op& op, Warp& w) {
  // b: lane or distance; c: clamp and segment mask; list[0]: member mask; list[1]: predicate or
  // none
  const u32* members = reinterpret_cast<const u32*>(slot<u32>(w, op.list[0]));
  u32 named = 0, unnamed = 0;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    named |= members[l];
    unnamed |= ~members[l] & (1u << l);
  }
  if (((named & w.live & ~w.mask) | unnamed) != 0) return wait_for_lanes(w, op, named, unnamed);
  if ((w.watch & kWatchRace) && !w.watching->together) order_confer(w, w.mask);
  const u32* a = reinterpret_cast<const u32*>(slot<u32>(w, op.a));
  const u32* b = reinterpret_cast<const u32*>(slot<u32>(w, op.b));
  const u32* c = reinterpret_cast<const u32*>(slot<u32>(w, op.c));
  u32* words = reinterpret_cast<u32*>(w.scratch);
  alignas(64) u32 source[kLanes], absent[kLanes];
  const u32 present = w.mask;
  ATTEST_LANES {
    const u32 segment = (c[l] >> 8) & 31, clamp = c[l] & 31, distance = b[l] & 31;
    const u32 low = l & segment, high = low | (clamp & ~segment);
    u32 from = 0;
    switch (kMode) {
      case Shuffle::up:
        from = l - distance;
        break;
      case Shuffle::down:
        from = l + distance;
        break;
      case Shuffle::bfly:
        from = l ^ distance;
        break;
      case Shuffle::idx:
        from = low | (distance & ~segment);
        break;
    }
    const bool valid = kMode == Shuffle::up ? s32(from) >= s32(high) : from <= high;
    source[l] = valid ? from & 31 : l;
    words[l] = valid ? ~0u : 0u;
    absent[l] = valid ? (((present & members[l]) >> (from & 31)) & 1) - 1u : 0u;
  }
  const u32 inside = mask_of(words);
  if (w.watch & kWatchInit) {
    const u32 undefined = mask_of(absent) & w.mask;
    if ((undefined | w.watching->tracks) != 0) shuffle_undefined(op, w, source, undefined);
  }
  permute_lanes(words, a, source);
  ATTEST_LANES words[l] |= absent[l];
  if (op.d != kNone) merge<u32>(slot<u32>(w, op.d), w.scratch, w.mask);
  if (op.list[1] != kNone) write_predicate(w, op.list[1], inside);
  return &op + 1;
}

}  // namespace

const Handler kPlain[std::size_t(Plain::kCount)] = {
    guarded,
    uncounted,
    join,
    bra,
    bra_conditional,
    lanewise<copy<u32>>,
    lanewise<copy<u64>>,
    [](const Op& op, Warp& w) -> const Op* {
      const u8* a = slot<u32>(w, op.a);
      u8* d = target<u64>(op, w);
      ATTEST_LANES write<u64>(d, l, read<u32>(a, l));
      commit<u64>(op, w);
      return &op + 1;
    },
    [](const Op& op, Warp& w) -> const Op* {
      const u8* a = slot<s32>(w, op.a);
      u8* d = target<s64>(op, w);
      ATTEST_LANES write<s64>(d, l, read<s32>(a, l));
      commit<s64>(op, w);
      return &op + 1;
    },
    [](const Op& op, Warp& w) -> const Op* {
      const u8* a = slot<u64>(w, op.a);
      u8* d = target<u32>(op, w);
      ATTEST_LANES write<u32>(d, l, u32(read<u64>(a, l)));
      commit<u32>(op, w);
      return &op + 1;
    },
    predicate_logic,
    predicate_constant,
    select_lanes<u32>,
    select_lanes<u64>,
    special<u32>,
    special<u64>,
    frame_address<u64>,
    frame_address<u32>,
    lanewise<pack_words>,
    lanewise<high_word>,
    [](const Op& op, Warp&) -> const Op* { return &op + 1; },
};

Handler select_selp(const Spelling& s) {
  if (ptx::size_of(s.type()) < 2) return nullptr;
  return s.type_count == 1 && ptx::size_of(s.type()) == 8 ? select_lanes<u64> : select_lanes<u32>;
}
Handler select_slct(const Spelling& s) {
  if (ptx::size_of(s.type()) < 2) return nullptr;
  const bool wide = ptx::size_of(s.type()) == 8;
  if (s.types[1] == Type::s32) return wide ? lanewise<by_sign<u64>> : lanewise<by_sign<u32>>;
  if (s.types[1] == Type::f32)
    return wide ? (s.has(M::ftz) ? lanewise<by_sign_f32<u64, true>>
                                 : lanewise<by_sign_f32<u64, false>>)
                : (s.has(M::ftz) ? lanewise<by_sign_f32<u32, true>>
                                 : lanewise<by_sign_f32<u32, false>>);
  return nullptr;
}
Handler select_shfl(const Spelling& s) {
  if (s.has(M::up)) return shuffle<Shuffle::up>;
  if (s.has(M::down)) return shuffle<Shuffle::down>;
  if (s.has(M::bfly)) return shuffle<Shuffle::bfly>;
  return s.has(M::idx) ? shuffle<Shuffle::idx> : nullptr;
}

namespace {

ATTEST_INLINE bool is_tracking(const Warp& w) {
  return w.watching != nullptr && w.watching->tracks != 0;
}

template <bool kFollows>
const Op* run_on(Warp& w, const Op* op, s64 left, s64& budget) {
  for (; left > 0 && op != nullptr; --left) {
    if constexpr (kFollows) {
      if (is_tracking(w)) [[unlikely]]
        track_undefined(*op, w);
    }
    op = op->run(*op, w);
  }
  budget = left;
  return op;
}

/// Counts a straight run of operations by the same lanes at its two ends only. Which of them are
/// instructions of the text is sorted out at the end of the launch.
const Op* run_counting(Warp& w, const Op* op, s64& budget) {
  s64 left = budget;
  while (left > 0 && op != nullptr) {
    const u32 active = w.active;
    InstructionCount* const counts = w.counts;
    u8* const touched = w.touched;
    const Op* const code = w.first_op;
    InstructionCount& first = counts[op - code];
    const Op* next;
    for (;;) {
      --left;
      if (is_tracking(w)) [[unlikely]]
        track_undefined(*op, w);
      next = op->run(*op, w);
      if (next != op + 1 || w.active != active || left <= 0) break;
      op = next;
    }
    InstructionCount& behind = counts[op + 1 - code];
    const s64 lanes = __builtin_popcount(active);
    touched[(&first - counts) / kCountPage] = touched[(&behind - counts) / kCountPage] = 1;
    ++first.begun, first.begun_lanes += lanes;
    --behind.begun, behind.begun_lanes -= lanes;
    op = next;
  }
  budget = left;
  return op;
}

}  // namespace

const Op* run(Warp& w, const Op* op, s64& budget) {
  if (w.counts != nullptr) return run_counting(w, op, budget);
  const bool follows = w.watching != nullptr && (w.watch & kWatchInit);
  return follows ? run_on<true>(w, op, budget, budget) : run_on<false>(w, op, budget, budget);
}

}  // namespace attest::emulator::ATTEST_ISA
