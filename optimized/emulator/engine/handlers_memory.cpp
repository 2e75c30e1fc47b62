// ld and st of every element width, space and vector length.
#include "optimized/emulator/engine/places.hpp"
#include "optimized/emulator/engine/select.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace attest::emulator::ATTEST_ISA {
namespace {

/// What a register holds of a memory element E: narrow or wide, zero- or sign-extended.
template <class E>
ATTEST_INLINE E fetch(u64 address) {
  E value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof(E));
  return value;
}

template <class E>
ATTEST_INLINE void splat(u8* d, E value, u32 mask) {
  if (mask == kAllLanes) {
    ATTEST_LANES write<E>(d, l, value);
  } else {
    for (u32 left = mask; left; left &= left - 1) write<E>(d, u32(__builtin_ctz(left)), value);
  }
}

template <class E>
ATTEST_INLINE void gather(u8* d, const u64* at, u64 offset, u32 mask) {
#ifdef __AVX512F__
  if constexpr (sizeof(E) == 4) {
    const __m512i step = _mm512_set1_epi64(s64(offset));
    for (unsigned i = 0; i < 4; ++i) {
      const __m512i a = _mm512_add_epi64(_mm512_load_si512(at + 8 * i), step);
      __m256i* to = reinterpret_cast<__m256i*>(d) + i;
      const __mmask8 lanes = __mmask8(mask >> (8 * i));
      _mm256_store_si256(to,
                         _mm512_mask_i64gather_epi32(_mm256_load_si256(to), lanes, a, nullptr, 1));
    }
    return;
  }
#endif
  for (u32 left = mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    write<E>(d, l, fetch<E>(at[l] + offset));
  }
}

/// Element i of a vector access goes to op.list[i]; a scalar one to op.d.
ATTEST_INLINE u32 part(const Op& op, u32 i) {
  return op.count == 1 ? op.d : op.list[i];
}

template <class E, Space kSpace, class A>
const Op* load(const Op& op, Warp& w) {
  Places p;
  const u32 count = op.count, bytes = u32(sizeof(E)) * count;
  const Shape shape = place<kSpace, A>(op, w, bytes, p);
  if (op.flags & kPolls) w.polled = 1;
  switch (shape) {
    case Shape::fault:
      return nullptr;
    case Shape::same:
      for (u32 i = 0; i < count; ++i) {
        if (part(op, i) == kNone) continue;
        splat<E>(slot<E>(w, part(op, i)), fetch<E>(reinterpret_cast<u64>(p.first) + i * sizeof(E)),
                 w.mask);
      }
      break;
    case Shape::consecutive:
      for (u32 i = 0; i < count; ++i) {
        if (part(op, i) == kNone) continue;
        u8* d = slot<E>(w, part(op, i));
        const u8* from = p.first + i * sizeof(E);
        if (count == 1) {
          ATTEST_LANES write<E>(d, l, reinterpret_cast<const E*>(from)[l]);
        } else {
          ATTEST_LANES write<E>(d, l, *reinterpret_cast<const E*>(from + l * bytes));
        }
      }
      break;
    case Shape::scattered:
      // A destination may be the address register: addresses are already resolved, so that is safe.
      for (u32 i = 0; i < count; ++i) {
        if (part(op, i) == kNone) continue;
        gather<E>(slot<E>(w, part(op, i)), p.at, i * sizeof(E), w.mask);
      }
      break;
  }
  return &op + 1;
}

template <class E, Space kSpace, class A>
const Op* store(const Op& op, Warp& w) {
  Places p;
  const u32 count = op.count, bytes = u32(sizeof(E)) * count;
  const Shape shape = place<kSpace, A>(op, w, bytes, p);
  if (shape == Shape::fault) return nullptr;
  for (u32 i = 0; i < count; ++i) {
    const u8* value = slot<E>(w, part(op, i));
    if (shape == Shape::consecutive && count == 1) {
      E* to = reinterpret_cast<E*>(p.first);
      ATTEST_LANES to[l] = read<E>(value, l);
    } else if (shape == Shape::consecutive) {
      for (unsigned l = 0; l < kLanes; ++l) {
        const E v = read<E>(value, l);
        __builtin_memcpy(p.first + l * bytes + i * sizeof(E), &v, sizeof(E));
      }
    } else if (shape == Shape::same) {
      const E v = read<E>(value, kLanes - 1);  // lanes store in order: the last one stays
      __builtin_memcpy(p.first + i * sizeof(E), &v, sizeof(E));
    } else {
      for (u32 left = w.mask; left; left &= left - 1) {
        const u32 l = u32(__builtin_ctz(left));
        const E v = read<E>(value, l);
        __builtin_memcpy(reinterpret_cast<void*>(p.at[l] + i * sizeof(E)), &v, sizeof(E));
      }
    }
  }
  return &op + 1;
}

template <class E>
Handler load_of(Space space, bool wide) {
  switch (space) {
    case Space::shared:
      return wide ? load<E, Space::shared, u64> : load<E, Space::shared, u32>;
    case Space::local:
      return wide ? load<E, Space::local, u64> : load<E, Space::local, u32>;
    case Space::param:
      return wide ? load<E, Space::param, u64> : load<E, Space::param, u32>;
    case Space::generic:
      return wide ? load<E, Space::generic, u64> : nullptr;
    case Space::global:
    case Space::constant:
      return wide ? load<E, Space::global, u64> : nullptr;
  }
  return nullptr;
}
template <class E>
Handler store_of(Space space, bool wide) {
  switch (space) {
    case Space::shared:
      return wide ? store<E, Space::shared, u64> : store<E, Space::shared, u32>;
    case Space::local:
      return wide ? store<E, Space::local, u64> : store<E, Space::local, u32>;
    case Space::generic:
      return wide ? store<E, Space::generic, u64> : nullptr;
    case Space::global:
      return wide ? store<E, Space::global, u64> : nullptr;
    case Space::param:
    case Space::constant:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Handler select_load(Element element, Space space, bool wide) {
  switch (element) {
    case Element::byte:
      return load_of<u8>(space, wide);
    case Element::signed_byte:
      return load_of<s8>(space, wide);
    case Element::half:
      return load_of<u16>(space, wide);
    case Element::signed_half:
      return load_of<s16>(space, wide);
    case Element::word:
      return load_of<u32>(space, wide);
    case Element::twin:
      return load_of<u64>(space, wide);
    case Element::kCount:
      break;
  }
  return nullptr;
}
Handler select_store(Element element, Space space, bool wide) {
  switch (element) {
    case Element::byte:
    case Element::signed_byte:
      return store_of<u8>(space, wide);
    case Element::half:
    case Element::signed_half:
      return store_of<u16>(space, wide);
    case Element::word:
      return store_of<u32>(space, wide);
    case Element::twin:
      return store_of<u64>(space, wide);
    case Element::kCount:
      break;
  }
  return nullptr;
}

}  // namespace attest::emulator::ATTEST_ISA
