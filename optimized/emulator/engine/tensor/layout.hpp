// Which element of a matrix each register of each lane holds, and what an mma is made of.
// Lane l = 4 g + t. A register holds `per_word` elements, lowest first.
//   A  register r of a tile with h halves of 8 rows: row g + 8 (r % h), k = (4 (r / h) + t)
//   per_word + e B  register r: k = (4 r + t) per_word + e, column g C, D  32- and 64-bit: register
//   r: row g + 8 (r / 2), column 2 t + r % 2 C, D  16-bit: register r: row g + 8 r, column 2 t + e
// These are the fragments of mma.sync in the PTX ISA, all but m8n8k4 of f16. A fragment of wmma,
// whose layout PTX leaves open, is a row of such tiles, repeated when it has registers left.
#pragma once
#include "optimized/emulator/engine/tensor/models.hpp"

namespace attest::emulator {

/// What the decoder tells the handlers of an mma; lies in front of the list of slots, which are
/// those of D, A, B and C. Words only.
struct MmaShape {
  u32 row_tiles, column_tiles;
  u32 halves;    // of 8 rows in a tile
  u32 depth;     // k
  u32 per_word;  // elements per register of A and B
  Format a, b;
  Accumulator c, d;
  u32 since;                               // the architecture that brought it
  u32 a_count, b_count, c_count, d_count;  // registers in the list
  u32 choice;  // int: 1 saturates; b1: 1 and, 0 xor; f64: Rounding; m8n8k4: 1 A by column, 2 B by
               // column
  u32 words;   // registers of B in a tile: a quarter of the words in its depth
};
inline constexpr u32 kShapeWords = sizeof(MmaShape) / sizeof(u32);

/// Registers of one tile.
[[gnu::always_inline]] inline u32 words_of_a(const MmaShape& s) {
  return s.words * s.halves;
}
[[gnu::always_inline]] inline u32 words_of(const MmaShape& s, Accumulator type) {
  return type == Accumulator::f16 ? s.halves : 2 * s.halves;
}

/// A tile's registers, 32 lanes each. D may not overlap the others.
struct TileRegisters {
  const u32* a[8];
  const u32* b[4];
  const u32* c[4];
  u32* d[4];
};

/// The outputs of some lanes of a tile of floats by the definition (dot.hpp).
void scalar_tile(const MmaShape& shape, const Arithmetic& how, const TileRegisters& r, u32 lanes);
/// The four products of mma.m8n8k4, whose fragments are those of Volta. In `lists` order D, A, B,
/// C.
void volta_tiles(const MmaShape& shape, const Arithmetic& how, const u32* const* a,
                 const u32* const* b, const u32* const* c, u32* const* d);

}  // namespace attest::emulator
