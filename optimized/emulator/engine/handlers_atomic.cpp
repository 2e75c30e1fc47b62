// atom and red: lanes update memory one after another, in their order; host threads by the host's
// atomic operations. Compiled for the oldest instruction set and used by all.
#include "optimized/emulator/engine/places.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::baseline {
namespace {

/// What is left in memory: old combined with b (and c).
template <class T>
using Update = T (*)(T old, T b, T c);

template <class T>
T put_add(T old, T b, T) {
  return T(old + b);
}
template <class T>
T put_min(T old, T b, T) {
  return b < old ? b : old;
}
template <class T>
T put_max(T old, T b, T) {
  return old < b ? b : old;
}
template <class T>
T put_and(T old, T b, T) {
  return T(old & b);
}
template <class T>
T put_or(T old, T b, T) {
  return T(old | b);
}
template <class T>
T put_xor(T old, T b, T) {
  return T(old ^ b);
}
template <class T>
T put_exchange(T, T b, T) {
  return b;
}
template <class T>
T put_compared(T old, T b, T c) {
  return old == b ? c : old;
}
inline u32 put_increment(u32 old, u32 b, u32) {
  return old >= b ? 0 : old + 1;
}
inline u32 put_decrement(u32 old, u32 b, u32) {
  return old == 0 || old > b ? b : old - 1;
}
// Floats travel as bits. The unit of global memory that adds f32 flushes subnormal operands and
// sums to a zero of their sign; shared memory keeps them, and so do all other widths.
template <bool kFlush>
u32 put_add_f32(u32 old, u32 b, u32) {
  return bits_as<u32>(
      add_f32<Rounding::nearest, kFlush, false>(bits_as<float>(old), bits_as<float>(b)));
}
inline u64 put_add_f64(u64 old, u64 b, u64) {
  return bits_as<u64>(add_f64(bits_as<double>(old), bits_as<double>(b)));
}
inline u16 put_add_f16(u16 old, u16 b, u16) {
  return arith16<F16, Half::add, false, false>(old, b);
}
inline u16 put_add_bf16(u16 old, u16 b, u16) {
  return arith16<BF16, Half::add, false, false>(old, b);
}
inline u32 put_add_f16x2(u32 old, u32 b, u32) {
  return pair2<arith16<F16, Half::add, false, false>>(old, b);
}
inline u32 put_add_bf16x2(u32 old, u32 b, u32) {
  return pair2<arith16<BF16, Half::add, false, false>>(old, b);
}

template <class H, bool kMaximum>
u16 put_extreme_16(u16 old, u16 b, u16) {
  return extreme16<H, kMaximum, false, false, false>(old, b);
}
template <class H, bool kMaximum>
u32 put_extreme_pair(u32 old, u32 b, u32) {
  return pair2<extreme16<H, kMaximum, false, false, false>>(old, b);
}

bool in_shared(const Warp& w, const void* memory) {
  return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(w.shared) < w.shared_bytes;
}

/// `Near` is F where the address lies in shared memory.
template <class T, Space kSpace, class A, auto F, auto Near>
const Op* atomic(const Op& op, Warp& w) {
  using Word = Unsigned<T>;
  Places p;
  const Spread spread = place<kSpace, A>(op, w, sizeof(T), p);
  if (spread == Spread::fault) return nullptr;
  watch(op, w, Access::update, kSpace, p, spread, sizeof(T));
  if constexpr (kSpace != Space::shared) w.polled = 1;
  const u8* b = slot<T>(w, op.b);
  const u8* c = slot<T>(w, op.c == kNone ? op.b : op.c);
  for (u32 n = 0; n < kLanes; ++n) {
    const u32 l = ordered_lane(w, n);
    if (((w.mask >> l) & 1) == 0) continue;
    Word* memory = reinterpret_cast<Word*>(address_of(p, spread, sizeof(T), l));
    Update<T> update = F;
    if constexpr (F != Near) {
      if (kSpace == Space::shared || in_shared(w, memory)) update = Near;
    }
    Word old = __atomic_load_n(memory, __ATOMIC_RELAXED);
    Word fresh;
    do {
      fresh = Word(update(T(old), read<T>(b, l), read<T>(c, l)));
    } while (!__atomic_compare_exchange_n(memory, &old, fresh, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    w.wrote |= fresh != old ? 1 : 0;
    if (op.d != kNone) write<T>(slot<T>(w, op.d), l, T(old));
  }
  return &op + 1;
}

template <class T, auto F, auto Near = F>
Handler in_space(Space space, bool wide) {
  if (space == Space::shared)
    return wide ? atomic<T, Space::shared, u64, F, Near> : atomic<T, Space::shared, u32, F, Near>;
  return wide ? atomic<T, Space::generic, u64, F, Near> : nullptr;
}

template <class T>
Handler bitwise(const Spelling& s, Space space, bool wide) {
  if (s.has(M::and_)) return in_space<T, put_and<T>>(space, wide);
  if (s.has(M::or_)) return in_space<T, put_or<T>>(space, wide);
  if (s.has(M::xor_)) return in_space<T, put_xor<T>>(space, wide);
  if (s.has(M::exch)) return in_space<T, put_exchange<T>>(space, wide);
  return s.has(M::cas) ? in_space<T, put_compared<T>>(space, wide) : nullptr;
}
template <class T>
Handler arithmetic(const Spelling& s, Space space, bool wide) {
  if (s.has(M::add)) return in_space<Unsigned<T>, put_add<Unsigned<T>>>(space, wide);
  if (s.has(M::min)) return in_space<T, put_min<T>>(space, wide);
  if (s.has(M::max)) return in_space<T, put_max<T>>(space, wide);
  return bitwise<Unsigned<T>>(s, space, wide);
}

template <class H, auto Add>
Handler of_halves(const Spelling& s, Space space, bool wide) {
  if (s.has(M::add)) return in_space<u16, Add>(space, wide);
  if (s.has(M::min)) return in_space<u16, put_extreme_16<H, false>>(space, wide);
  return s.has(M::max) ? in_space<u16, put_extreme_16<H, true>>(space, wide) : nullptr;
}
template <class H, auto Add>
Handler of_pairs(const Spelling& s, Space space, bool wide) {
  if (s.has(M::add)) return in_space<u32, Add>(space, wide);
  if (s.has(M::min)) return in_space<u32, put_extreme_pair<H, false>>(space, wide);
  return s.has(M::max) ? in_space<u32, put_extreme_pair<H, true>>(space, wide) : nullptr;
}

/// The decoder tells the width of addresses through `vector`: 2 means 64 bits.
Handler select(const Spelling& s) {
  const bool wide = s.vector == 2;
  const Space space = s.has(M::shared) || s.has(M::shared_cta) ? Space::shared : Space::generic;
  switch (s.type()) {
    case Type::u32:
      if (s.has(M::inc)) return in_space<u32, put_increment>(space, wide);
      if (s.has(M::dec)) return in_space<u32, put_decrement>(space, wide);
      return arithmetic<u32>(s, space, wide);
    case Type::s32:
      return arithmetic<s32>(s, space, wide);
    case Type::u64:
      return arithmetic<u64>(s, space, wide);
    case Type::s64:
      return arithmetic<s64>(s, space, wide);
    case Type::b16:
      return s.has(M::cas) ? in_space<u16, put_compared<u16>>(space, wide) : nullptr;
    case Type::b32:
      return bitwise<u32>(s, space, wide);
    case Type::b64:
      return bitwise<u64>(s, space, wide);
    case Type::f32:
      return s.has(M::add) ? in_space<u32, put_add_f32<true>, put_add_f32<false>>(space, wide)
                           : nullptr;
    case Type::f64:
      return s.has(M::add) ? in_space<u64, put_add_f64>(space, wide) : nullptr;
    case Type::f16:
      return of_halves<F16, put_add_f16>(s, space, wide);
    case Type::bf16:
      return of_halves<BF16, put_add_bf16>(s, space, wide);
    case Type::f16x2:
      return of_pairs<F16, put_add_f16x2>(s, space, wide);
    case Type::bf16x2:
      return of_pairs<BF16, put_add_bf16x2>(s, space, wide);
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_atom(const Spelling& s) {
  return select(s);
}
Handler select_red(const Spelling& s) {
  return select(s);
}

}  // namespace attest::emulator::baseline
