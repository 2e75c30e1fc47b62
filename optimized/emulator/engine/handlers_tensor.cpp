// mma.sync and wmma.mma: sums of floats by the launch's tensor model, of integers and bits exactly,
// of doubles as fused multiply-adds.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_float.hpp"
#include "optimized/emulator/engine/tensor/tile.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

constexpr u32 kWordsMost = 8;  // registers of one operand

/// The registers of an mma: 32 lanes each.
template <class T>
struct Registers {
  const T *a[2 * kWordsMost], *b[kWordsMost], *c[kWordsMost];
  u8* d[kWordsMost];
};

template <class T>
ATTEST_INLINE const MmaShape& find_registers(const Op& op, Warp& w, Registers<T>& r) {
  const MmaShape& s = *reinterpret_cast<const MmaShape*>(op.list);
  const u32* next = op.list + kShapeWords;
  for (u32 i = 0; i < s.d_count; ++i) r.d[i] = slot<T>(w, *next++);
  for (u32 i = 0; i < s.a_count; ++i) r.a[i] = reinterpret_cast<const T*>(slot<T>(w, *next++));
  for (u32 i = 0; i < s.b_count; ++i) r.b[i] = reinterpret_cast<const T*>(slot<T>(w, *next++));
  for (u32 i = 0; i < s.c_count; ++i) r.c[i] = reinterpret_cast<const T*>(slot<T>(w, *next++));
  return s;
}

/// Results go to a place of their own first: D may share slots with A, B and C.
template <class T>
struct Results {
  alignas(64) T words[kWordsMost][kLanes];
};
template <class T>
ATTEST_INLINE const Op* deliver(const Op& op, const MmaShape& s, const Results<T>& results,
                                const Registers<T>& r) {
  for (u32 i = 0; i < s.d_count; ++i)
    __builtin_memcpy(r.d[i], results.words[i], sizeof(results.words[i]));
  return &op + 1;
}

// --- floats ---
template <bool kExponents>
void unpack(const MmaShape& s, const TileRegisters& r, Planes& planes) {
#define ATTEST_UNPACK(operand, format)                                  \
  case Format::format:                                                  \
    unpack_##operand<Format::format, kExponents>(s, r.operand, planes); \
    break;
  switch (s.a) {
    ATTEST_UNPACK(a, f16)
    ATTEST_UNPACK(a, bf16)
    ATTEST_UNPACK(a, tf32)
    ATTEST_UNPACK(a, e4m3)
    ATTEST_UNPACK(a, e5m2)
    default:
      break;
  }
  switch (s.b) {
    ATTEST_UNPACK(b, f16)
    ATTEST_UNPACK(b, bf16)
    ATTEST_UNPACK(b, tf32)
    ATTEST_UNPACK(b, e4m3)
    ATTEST_UNPACK(b, e5m2)
    default:
      break;
  }
#undef ATTEST_UNPACK
}

/// Writes the tile to r.d, or to `own` when some lanes are left to the definition; returns those.
template <u32 kHalves>
u32 vector_tile(const MmaShape& s, const Arithmetic& how, const TileRegisters& r, u32* const* own) {
  Planes planes;
  Sums sums;
  unpack_sums(s, r.c, sums);
  u32 left = 0;
  if (how.fused) {
    unpack<false>(s, r, planes);
    left = add_fused_tile<kHalves>(s, planes, sums);
  } else {
    unpack<true>(s, r, planes);
    left = how.in_pairs ? add_pairs<kHalves>(s, how, planes, sums)
                        : add_groups<kHalves>(s, how, planes, sums);
  }
  pack_sums(s, sums, left == 0 ? r.d : own);
  return left;
}

const Op* mma_floats(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Registers<u32> all;
  const MmaShape& s = find_registers(op, w, all);
  const TensorRow& row = tensor_row(w);
  if (row.since < s.since) return fault_missing(op, w, s.since);
  const Arithmetic how = arithmetic_of(row, s.a, s.d);
  Results<u32> results;
  const bool alone = s.row_tiles * s.column_tiles == 1;
  const u32 a_words = words_of_a(s), b_words = s.words, c_words = words_of(s, s.c),
            d_words = words_of(s, s.d);
  for (u32 i = 0; i < s.row_tiles; ++i) {
    for (u32 j = 0; j < s.column_tiles; ++j) {
      const u32 tile = i * s.column_tiles + j;
      TileRegisters r;
      for (u32 n = 0; n < a_words; ++n) r.a[n] = all.a[i * a_words + n];
      for (u32 n = 0; n < b_words; ++n) r.b[n] = all.b[j * b_words + n];
      for (u32 n = 0; n < c_words; ++n) r.c[n] = all.c[tile * c_words + n];
      // A tile by itself is read before it is written, so it may go straight to D.
      u32* own[4];
      for (u32 n = 0; n < d_words; ++n) {
        own[n] = results.words[tile * d_words + n];
        r.d[n] = alone ? reinterpret_cast<u32*>(all.d[n]) : own[n];
      }
      const u32 left =
          s.halves == 2 ? vector_tile<2>(s, how, r, own) : vector_tile<1>(s, how, r, own);
      if (left == 0) {
        if (alone) return &op + 1;
        continue;
      }
      for (u32 n = 0; n < d_words; ++n) r.d[n] = own[n];
      scalar_tile(s, how, r, left);
    }
  }
  return deliver(op, s, results, all);
}

const Op* mma_volta(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Registers<u32> all;
  const MmaShape& s = find_registers(op, w, all);
  Results<u32> results;
  u32* d[kWordsMost];
  for (u32 i = 0; i < s.d_count; ++i) d[i] = results.words[i];
  volta_tiles(s, volta_arithmetic_of(tensor_row(w), s.d), all.a, all.b, all.c, d);
  return deliver(op, s, results, all);
}

// --- integers and bits ---
/// Element e of a word. Signed formats extend their sign.
ATTEST_INLINE s32 integer_at(Format format, u32 word, u32 e) {
  switch (format) {
    case Format::int8:
      return s8(word >> (8 * e));
    case Format::uint8:
      return u8(word >> (8 * e));
    case Format::int4:
      return s32(word << (28 - 4 * e)) >> 28;
    default:
      return s32((word >> (4 * e)) & 15);
  }
}

/// A sum may saturate once, at its end, as a multiply-accumulate of any width does.
ATTEST_INLINE u32 finish_integer(s64 sum, u32 saturates) {
  if (saturates && sum > 0x7fffffff) return 0x7fffffffu;
  if (saturates && sum < -s64(0x80000000)) return 0x80000000u;
  return u32(sum);
}

constexpr u32 kDepthMost = 64;

ATTEST_INLINE void integer_tile(const MmaShape& s, const u32* const* a, const u32* const* b,
                                const u32* const* c, u32 (*d)[kLanes]) {
  alignas(64) s16 rows[16][kDepthMost], columns[8][kDepthMost];
  const u32 per = s.per_word;
  for (u32 k = 0; k < s.depth; ++k) {
    const u32 word = k / per, t = word % 4, e = k % per;
    for (u32 row = 0; row < 8 * s.halves; ++row)
      rows[row][k] = s16(integer_at(s.a, a[word / 4 * s.halves + row / 8][4 * (row % 8) + t], e));
    for (u32 n = 0; n < 8; ++n) columns[n][k] = s16(integer_at(s.b, b[word / 4][4 * n + t], e));
  }
  for (u32 row = 0; row < 8 * s.halves; ++row) {
    for (u32 n = 0; n < 8; ++n) {
      s32 sum = 0;  // at most 64 * 255 * 255
      for (u32 k = 0; k < s.depth; ++k) sum += s32(rows[row][k]) * columns[n][k];
      const u32 word = row / 8 * 2 + n % 2, lane = 4 * (row % 8) + n / 2;
      d[word][lane] = finish_integer(s64(s32(c[word][lane])) + sum, s.choice);
    }
  }
}

ATTEST_INLINE void bit_tile(const MmaShape& s, const u32* const* a, const u32* const* b,
                            const u32* const* c, u32 (*d)[kLanes]) {
  for (u32 row = 0; row < 8 * s.halves; ++row) {
    for (u32 n = 0; n < 8; ++n) {
      const u32 word = row / 8 * 2 + n % 2, lane = 4 * (row % 8) + n / 2;
      u32 sum = c[word][lane];
      for (u32 k = 0; k < s.depth / 32; ++k) {
        const u32 x = a[k / 4 * s.halves + row / 8][4 * (row % 8) + k % 4];
        const u32 y = b[k / 4][4 * n + k % 4];
        sum += u32(__builtin_popcount(s.choice ? x & y : x ^ y));
      }
      d[word][lane] = sum;
    }
  }
}

const Op* mma_integers(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Registers<u32> all;
  const MmaShape& s = find_registers(op, w, all);
  if (tensor_row(w).since < s.since) return fault_missing(op, w, s.since);
  Results<u32> results;
  const u32 a_words = words_of_a(s), b_words = s.words, words = words_of(s, s.d);
  for (u32 i = 0; i < s.row_tiles; ++i) {
    for (u32 j = 0; j < s.column_tiles; ++j) {
      const u32 first = (i * s.column_tiles + j) * words;
      const auto tile = s.a == Format::bits ? bit_tile : integer_tile;
      tile(s, all.a + i * a_words, all.b + j * b_words, all.c + first, results.words + first);
    }
  }
  return deliver(op, s, results, all);
}

// --- doubles ---
ATTEST_INLINE double add_product_f64(Rounding mode, double a, double b, double c) {
  switch (mode) {
    case Rounding::zero:
      return fma_directed_f64<Rounding::zero>(a, b, c);
    case Rounding::down:
      return fma_directed_f64<Rounding::down>(a, b, c);
    case Rounding::up:
      return fma_directed_f64<Rounding::up>(a, b, c);
    case Rounding::nearest:
      break;
  }
  return fma_f64(a, b, c);
}

const Op* mma_doubles(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  Registers<double> all;
  const MmaShape& s = find_registers(op, w, all);
  if (tensor_row(w).since < s.since) return fault_missing(op, w, s.since);
  Results<double> results;
  for (u32 row = 0; row < 8 * s.halves; ++row) {
    for (u32 n = 0; n < 8; ++n) {
      const u32 word = row / 8 * 2 + n % 2, lane = 4 * (row % 8) + n / 2;
      double sum = all.c[word][lane];
      for (u32 k = 0; k < s.depth; ++k) {
        const double x = all.a[k / 4 * s.halves + row / 8][4 * (row % 8) + k % 4];
        sum = add_product_f64(Rounding(s.choice), x, all.b[k / 4][4 * n + k % 4], sum);
      }
      results.words[word][lane] = sum;
    }
  }
  return deliver(op, s, results, all);
}

/// By the type of A, which follows that of D; wmma.mma of f16 names no other.
Handler mma_of(const Spelling& s) {
  if (s.has(M::m8n8k4) && s.type() != Type::f64 && s.opcode == Opcode::mma) return mma_volta;
  if (s.has(M::b1) || s.has(M::s4) || s.has(M::u4)) return mma_integers;
  if (s.has(M::e4m3) || s.has(M::e5m2) || s.has(M::tf32)) return mma_floats;
  switch (s.type_count > 1 ? s.types[1] : s.type()) {
    case Type::s8:
    case Type::u8:
      return mma_integers;
    case Type::f64:
      return mma_doubles;
    case Type::f16:
    case Type::bf16:
    case Type::f32:
      return mma_floats;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_mma(const Spelling& s) {
  return mma_of(s);
}

}  // namespace attest::emulator::ATTEST_ISA
