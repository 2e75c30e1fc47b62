// Runs a pure scalar function over the 32 lanes of slots, under the execution mask.
// Compiled once per instruction set, inside that set's namespace: nothing here may be shared.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

#ifndef ATTEST_ISA
#error "compile with -DATTEST_ISA=baseline, avx2 or avx512"
#endif

#define ATTEST_INLINE [[gnu::always_inline]] static inline
// Slots are either the same or disjoint, so lanes never depend on each other.
#define ATTEST_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < kLanes; ++l)

namespace attest::emulator::ATTEST_ISA {

template <class T>
ATTEST_INLINE u8* slot(const Warp& w, u32 operand) {
  if constexpr (sizeof(T) == 8) {
    return w.wide[operand & 1] + operand;
  } else {
    return w.narrow[operand & 1] + operand;
  }
}

/// 8- and 16-bit values live in the low bits of a narrow lane; the other bits are unspecified.
template <class T>
ATTEST_INLINE T read(const u8* p, unsigned l) {
  if constexpr (sizeof(T) >= 4) {
    return reinterpret_cast<const T*>(p)[l];
  } else {
    return static_cast<T>(reinterpret_cast<const u32*>(p)[l]);
  }
}

template <class T>
ATTEST_INLINE void write(u8* p, unsigned l, T value) {
  if constexpr (sizeof(T) >= 4) {
    reinterpret_cast<T*>(p)[l] = value;
  } else {
    reinterpret_cast<u32*>(p)[l] = static_cast<u32>(value);  // signed types extend
  }
}

/// Where a handler writes: the slot itself when every lane executes, scratch otherwise.
template <class T>
ATTEST_INLINE u8* target(const Op& op, Warp& w) {
  return w.mask == kAllLanes ? slot<T>(w, op.d) : w.scratch;
}

template <class T>
ATTEST_INLINE void merge(u8* to, const u8* from, u32 mask) {
  if constexpr (sizeof(T) == 8) {
    ATTEST_LANES {
      const u64 old = reinterpret_cast<u64*>(to)[l], fresh = reinterpret_cast<const u64*>(from)[l];
      reinterpret_cast<u64*>(to)[l] = (mask >> l) & 1 ? fresh : old;
    }
  } else {
    ATTEST_LANES {
      const u32 old = reinterpret_cast<u32*>(to)[l], fresh = reinterpret_cast<const u32*>(from)[l];
      reinterpret_cast<u32*>(to)[l] = (mask >> l) & 1 ? fresh : old;
    }
  }
}

template <class T>
ATTEST_INLINE void commit(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) merge<T>(slot<T>(w, op.d), w.scratch, w.mask);
}

/// Writes a predicate for the executing lanes.
ATTEST_INLINE void write_predicate(Warp& w, u32 index, u32 bits) {
  w.predicates[index] = (w.predicates[index] & ~w.mask) | (bits & w.mask);
}

/// The sign bits of 32 words as a mask.
u32 mask_of(const u32* words);

/// Lanewise<F>::run applies F, whatever its arity, to operands a, b, c and list[0].
template <auto F>
struct Lanewise;

template <class D, class A, D (*F)(A)>
struct Lanewise<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    u8* d = target<D>(op, w);
    ATTEST_LANES write<D>(d, l, F(read<A>(a, l)));
    commit<D>(op, w);
    return &op + 1;
  }
};

template <class D, class A, class B, D (*F)(A, B)>
struct Lanewise<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    const u8* b = slot<B>(w, op.b);
    u8* d = target<D>(op, w);
    ATTEST_LANES write<D>(d, l, F(read<A>(a, l), read<B>(b, l)));
    commit<D>(op, w);
    return &op + 1;
  }
};

template <class D, class A, class B, class C, D (*F)(A, B, C)>
struct Lanewise<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    const u8* b = slot<B>(w, op.b);
    const u8* c = slot<C>(w, op.c);
    u8* d = target<D>(op, w);
    ATTEST_LANES write<D>(d, l, F(read<A>(a, l), read<B>(b, l), read<C>(c, l)));
    commit<D>(op, w);
    return &op + 1;
  }
};

template <class D, class A, class B, class C, class E, D (*F)(A, B, C, E)>
struct Lanewise<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    const u8* b = slot<B>(w, op.b);
    const u8* c = slot<C>(w, op.c);
    const u8* e = slot<E>(w, op.list[0]);
    u8* d = target<D>(op, w);
    ATTEST_LANES write<D>(d, l, F(read<A>(a, l), read<B>(b, l), read<C>(c, l), read<E>(e, l)));
    commit<D>(op, w);
    return &op + 1;
  }
};

template <auto F>
inline constexpr Handler lanewise = &Lanewise<F>::run;

/// Compare<F>::run writes the predicate op.d = F(a, b), negated when the immediate is all ones.
template <auto F>
struct Compare;

template <class A, class B, bool (*F)(A, B)>
struct Compare<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    const u8* b = slot<B>(w, op.b);
    u32* words = reinterpret_cast<u32*>(w.scratch);
    ATTEST_LANES words[l] = F(read<A>(a, l), read<B>(b, l)) ? ~0u : 0u;
    write_predicate(w, op.d, mask_of(words) ^ u32(op.immediate));
    return &op + 1;
  }
};

template <class A, bool (*F)(A)>
struct Compare<F> {
  static const Op* run(const Op& op, Warp& w) {
    const u8* a = slot<A>(w, op.a);
    u32* words = reinterpret_cast<u32*>(w.scratch);
    ATTEST_LANES words[l] = F(read<A>(a, l)) ? ~0u : 0u;
    write_predicate(w, op.d, mask_of(words) ^ u32(op.immediate));
    return &op + 1;
  }
};

template <auto F>
inline constexpr Handler comparing = &Compare<F>::run;

}  // namespace attest::emulator::ATTEST_ISA
