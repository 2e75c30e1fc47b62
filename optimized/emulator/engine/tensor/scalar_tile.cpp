// Whole tiles by the definition: gathers rows, columns and accumulators from their registers.
#include "optimized/emulator/engine/tensor/dot.hpp"
#include "optimized/emulator/engine/tensor/layout.hpp"

namespace attest::emulator {
namespace {

constexpr u32 kDepthMost = 32;

u32 half_of(u32 word, u32 which) {
  return (word >> (16 * which)) & 0xffff;
}
void set_half(u32& word, u32 which, u32 value) {
  word = (word & ~(0xffffu << (16 * which))) | (value & 0xffff) << (16 * which);
}

}  // namespace

void scalar_tile(const MmaShape& s, const Arithmetic& how, const TileRegisters& r, u32 lanes) {
  u32 a[16][kDepthMost], b[8][kDepthMost];
  Decoded rows[16][kDepthMost], columns[8][kDepthMost];
  const u32 bits = 32 / s.per_word, mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (u32 k = 0; k < s.depth; ++k) {
    const u32 word = k / s.per_word, e = k % s.per_word;
    for (u32 row = 0; row < 8 * s.halves; ++row) {
      const u32* reg = r.a[word / 4 * s.halves + row / 8];
      a[row][k] = (reg[4 * (row % 8) + word % 4] >> (bits * e)) & mask;
      rows[row][k] = decode(s.a, a[row][k]);
    }
    for (u32 column = 0; column < 8; ++column) {
      b[column][k] = (r.b[word / 4][4 * column + word % 4] >> (bits * e)) & mask;
      columns[column][k] = decode(s.b, b[column][k]);
    }
  }
  for (u32 row = 0; row < 8 * s.halves; ++row) {
    for (u32 column = 0; column < 8; ++column) {
      const u32 lane = 4 * (row % 8) + column / 2, wide = row / 8 * 2 + column % 2;
      if (!((lanes >> lane) & 1)) continue;
      const u32 c =
          s.c == Accumulator::f16 ? half_of(r.c[row / 8][lane], column % 2) : r.c[wide][lane];
      const u32 d = how.fused
                        ? dot(how, s.a, s.b, a[row], b[column], s.depth, s.c, c, s.d)
                        : dot(how, s.a, s.b, rows[row], columns[column], s.depth, s.c, c, s.d);
      if (s.d == Accumulator::f16)
        set_half(r.d[row / 8][lane], column % 2, d);
      else
        r.d[wide][lane] = d;
    }
  }
}

// Lanes 4 p ... 4 p + 3 and 16 more hold product p. Lane i of the lower four has row (or column) i,
// lane i of the upper four row i + 4; A by column and B by row run the other way.
void volta_tiles(const MmaShape& s, const Arithmetic& how, const u32* const* a, const u32* const* b,
                 const u32* const* c, u32* const* d) {
  const bool a_by_column = s.choice & 1, b_by_column = s.choice & 2;
  const auto element = [](const u32* const* registers, u32 product, bool lines, u32 line, u32 k) {
    // `lines`: each lane holds four values of k for one line. Otherwise four lines for one k.
    const u32 lane = 4 * product + (lines ? line % 4 : k) + (line >= 4 ? 16 : 0);
    const u32 i = lines ? k : line % 4;
    return half_of(registers[i / 2][lane], i % 2);
  };
  const auto place = [](Accumulator type, u32 product, u32 row, u32 column, u32& lane) {
    lane = 4 * product + (row >= 4 ? 16 : 0);
    if (type == Accumulator::f16) {
      lane += row % 4;
      return column;
    }
    lane += (row & 1) | (column & 2);
    return (column & 4) | (row & 2) | (column & 1);
  };
  for (u32 product = 0; product < 4; ++product) {
    for (u32 row = 0; row < 8; ++row) {
      for (u32 column = 0; column < 8; ++column) {
        u32 left[4], right[4], lane = 0;
        for (u32 k = 0; k < 4; ++k) {
          left[k] = element(a, product, !a_by_column, row, k);
          right[k] = element(b, product, b_by_column, column, k);
        }
        u32 i = place(s.c, product, row, column, lane);
        const u32 addend = s.c == Accumulator::f16 ? half_of(c[i / 2][lane], i % 2) : c[i][lane];
        const u32 sum = dot(how, s.a, s.b, left, right, 4, s.c, addend, s.d);
        i = place(s.d, product, row, column, lane);
        if (s.d == Accumulator::f16)
          set_half(d[i / 2][lane], i % 2, sum);
        else
          d[i][lane] = sum;
      }
    }
  }
}

}  // namespace attest::emulator
