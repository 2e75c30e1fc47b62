// How a wmma fragment lies in registers and its matrix in memory. Knows layouts only.
#pragma once
#include "optimized/emulator/engine/tensor/layout.hpp"

namespace attest::emulator {

enum class Part : u32 { a, b, c };

/// What the decoder tells the handlers of wmma.load and wmma.store; lies in front of the slots.
/// Elements below 8 bits count as the words that hold them, which memory keeps together. Words
/// only.
struct MatrixPlan {
  Part part;
  u32 since;
  u32 space;
  u32 by_rows;  // lines in memory are rows
  u32 lines, line_elements;
  u32 element_bits, register_bits;
  u32 registers;  // those with an element of their own come first, then they repeat
  u32 own_registers;
  u32 tile_registers;  // of a tile
  u32 halves, column_tiles;
  u32 fragment_bytes;               // of one lane
  u32 stride_bits, default_stride;  // a stride counts elements of this size
};
inline constexpr u32 kPlanWords = sizeof(MatrixPlan) / sizeof(u32);

struct Position {
  u32 row, column;
};

/// The row and column, in its own matrix, of element e of register r of a lane.
[[gnu::always_inline]] inline Position position_of(const MatrixPlan& m, u32 r, u32 e, u32 lane) {
  const u32 per = m.register_bits / m.element_bits;
  const u32 own = r % m.own_registers, tile = own / m.tile_registers, n = own % m.tile_registers;
  const u32 g = lane / 4, t = lane % 4, rows = 8 * m.halves;
  switch (m.part) {
    case Part::a:
      return {tile * rows + g + 8 * (n % m.halves), (4 * (n / m.halves) + t) * per + e};
    case Part::b:
      return {(4 * n + t) * per + e, tile * 8 + g};
    case Part::c:
      break;
  }
  const u32 row = tile / m.column_tiles * rows, column = tile % m.column_tiles * 8;
  if (per == 2) return {row + g + 8 * n, column + 2 * t + e};
  return {row + g + 8 * (n / 2), column + 2 * t + n % 2};
}

/// Calls visit(register, lane, element, line, element of the line) for all that a fragment holds.
template <class F>
[[gnu::always_inline]] inline void for_each_element(const MatrixPlan& m, const F& visit) {
  const u32 elements = m.register_bits > m.element_bits ? m.register_bits / m.element_bits : 1;
  for (u32 r = 0; r < m.registers; ++r) {
    for (u32 l = 0; l < kLanes; ++l) {
      for (u32 e = 0; e < elements; ++e) {
        const Position at = position_of(m, r, e, l);
        visit(r, l, e, m.by_rows ? at.row : at.column, m.by_rows ? at.column : at.row);
      }
    }
  }
}

}  // namespace attest::emulator
