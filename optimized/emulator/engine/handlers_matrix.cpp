// ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements between shared memory and
// registers. A register holds a matrix by rows, two elements a lane, four lanes a row.
#include "optimized/emulator/engine/places.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/watch.hpp"

#include <emmintrin.h>

namespace attest::emulator::ATTEST_ISA {
namespace {

constexpr u32 kRowBytes = 16;

/// Rows become columns.
ATTEST_INLINE void transpose(__m128i (&r)[8]) {
  __m128i a[8], b[8];
  for (u32 i = 0; i < 4; ++i) {
    a[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (u32 i = 0; i < 8; i += 4) {  // a[i], a[i + 2]: columns 0 ... 3; a[i + 1], a[i + 3]: 4 ... 7
    b[i] = _mm_unpacklo_epi32(a[i], a[i + 2]), b[i + 1] = _mm_unpackhi_epi32(a[i], a[i + 2]);
    b[i + 2] = _mm_unpacklo_epi32(a[i + 1], a[i + 3]);
    b[i + 3] = _mm_unpackhi_epi32(a[i + 1], a[i + 3]);
  }
  for (u32 i = 0; i < 4; ++i) {
    r[2 * i] = _mm_unpacklo_epi64(b[i], b[i + 4]);
    r[2 * i + 1] = _mm_unpackhi_epi64(b[i], b[i + 4]);
  }
}

/// Finds the rows the first 8 lanes per matrix point to, and shows them to whoever watches.
template <class A>
ATTEST_INLINE Spread place_rows(const Op& op, Warp& w, Access access, Places& p) {
  w.mask = op.count == 4 ? kAllLanes : (1u << (8 * op.count)) - 1;
  const Spread spread = place_shared<A>(op, w, kRowBytes, p);
  if (spread != Spread::fault) watch(op, w, access, Space::shared, p, spread, kRowBytes);
  w.mask = kAllLanes;
  return spread;
}

template <class A, bool kTranspose>
const Op* load_matrices(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Places p;
  const Spread spread = place_rows<A>(op, w, Access::read, p);
  if (spread == Spread::fault) return nullptr;
  for (u32 m = 0; m < op.count; ++m) {
    __m128i rows[8];
    for (u32 i = 0; i < 8; ++i) {
      const u64 from = address_of(p, spread, kRowBytes, 8 * m + i);
      rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    if (kTranspose) transpose(rows);
    __m128i* to = reinterpret_cast<__m128i*>(slot<u32>(w, op.list[m]));
    for (u32 i = 0; i < 8; ++i) _mm_store_si128(to + i, rows[i]);
  }
  return &op + 1;
}

template <class A, bool kTranspose>
const Op* store_matrices(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Places p;
  const Spread spread = place_rows<A>(op, w, Access::write, p);
  if (spread == Spread::fault) return nullptr;
  for (u32 m = 0; m < op.count; ++m) {
    const __m128i* from = reinterpret_cast<const __m128i*>(slot<u32>(w, op.list[m]));
    __m128i rows[8];
    for (u32 i = 0; i < 8; ++i) rows[i] = _mm_load_si128(from + i);
    if (kTranspose) transpose(rows);
    for (u32 i = 0; i < 8; ++i) {
      const u64 to = address_of(p, spread, kRowBytes, 8 * m + i);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), rows[i]);
    }
  }
  return &op + 1;
}

const Op* transpose_matrix(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  const __m128i* from = reinterpret_cast<const __m128i*>(slot<u32>(w, op.a));
  __m128i rows[8];
  for (u32 i = 0; i < 8; ++i) rows[i] = _mm_load_si128(from + i);
  transpose(rows);
  __m128i* to = reinterpret_cast<__m128i*>(slot<u32>(w, op.d));
  for (u32 i = 0; i < 8; ++i) _mm_store_si128(to + i, rows[i]);
  return &op + 1;
}

bool moves_b16_matrices(const Spelling& s) {
  return s.has(M::m8n8) && s.has(M::sync) && s.has(M::aligned) && s.type() == Type::b16;
}

}  // namespace

// Spelling::vector tells the width of addresses: 2 for 64 bits.
Handler select_ldmatrix(const Spelling& s) {
  if (!moves_b16_matrices(s)) return nullptr;
  if (s.has(M::trans)) return s.vector == 2 ? load_matrices<u64, true> : load_matrices<u32, true>;
  return s.vector == 2 ? load_matrices<u64, false> : load_matrices<u32, false>;
}
Handler select_stmatrix(const Spelling& s) {
  if (!moves_b16_matrices(s)) return nullptr;
  if (s.has(M::trans)) return s.vector == 2 ? store_matrices<u64, true> : store_matrices<u32, true>;
  return s.vector == 2 ? store_matrices<u64, false> : store_matrices<u32, false>;
}
Handler select_movmatrix(const Spelling& s) {
  return moves_b16_matrices(s) && s.has(M::trans) ? transpose_matrix : nullptr;
}

}  // namespace attest::emulator::ATTEST_ISA
