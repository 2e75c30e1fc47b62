// Undefined elements of matrices: an undefined element of A makes its row of D undefined, one of B
// its column, one of C its element, as anything times what may be NaN may be NaN. Knows which
// register of which lane holds what from tensor/layout.hpp and tensor/matrix.hpp.
#include <algorithm>
#include <array>
#include <string_view>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/tensor/matrix.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using Shadow = Undefined::Shadow;
using Bits = u64[kLanes];

/// The registers of an operand, with what is undefined in them.
class Fragment {
 public:
  Fragment(const Undefined::Values& values, const Operand& o, u32& origin)
      : parts_(parts_of(o)), values_(values) {
    for (u32 n = 0; n < parts_.size(); ++n) {
      if (const Shadow* s = shadow(n)) origin = s->origin, any_ = true;
    }
  }
  bool any() const { return any_; }
  u64 at(u32 n, u32 lane) const {
    const Shadow* s = shadow(n);
    return s ? s->bits[lane] : 0;
  }
  u32 lanes(u32 n) const {
    const Shadow* s = shadow(n);
    return s ? s->lanes : 0;
  }
  bool half(u32 n, u32 lane, u32 h) const { return (at(n, lane) >> (16 * h)) & 0xffff; }
  const std::vector<Operand>& parts() const { return parts_; }

 private:
  const Shadow* shadow(u32 n) const {
    if (n >= parts_.size() || parts_[n].reg >= values_.by_register.size()) return nullptr;
    return values_.by_register[parts_[n].reg].get();
  }
  std::vector<Operand> parts_;
  const Undefined::Values& values_;
  bool any_ = false;
};

bool has(const ptx::Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

/// Lines g = lane / 4 of which some lane holds an undefined element.
u32 lines_of(u32 lanes) {
  u32 lines = 0;
  for (u32 g = 0; g < 8; ++g) lines |= u32(((lanes >> (4 * g)) & 15) != 0) << g;
  return lines;
}

void pass_tiles(const MmaShape& s, const Fragment& a, const Fragment& b, const Fragment& c,
                std::vector<std::array<u64, kLanes>>& d) {
  const u32 a_words = words_of_a(s), c_words = words_of(s, s.c), d_words = words_of(s, s.d);
  const bool c_half = s.c == Accumulator::f16, d_half = s.d == Accumulator::f16;
  for (u32 i = 0; i < s.row_tiles; ++i) {
    u32 rows = 0;
    for (u32 n = 0; n < a_words; ++n)
      rows |= lines_of(a.lanes(i * a_words + n)) << (8 * (n % s.halves));
    for (u32 j = 0; j < s.column_tiles; ++j) {
      u32 columns = 0;
      for (u32 n = 0; n < s.words; ++n) columns |= lines_of(b.lanes(j * s.words + n));
      const u32 tile = i * s.column_tiles + j;
      for (u32 row = 0; row < 8 * s.halves; ++row) {
        for (u32 column = 0; column < 8; ++column) {
          const u32 lane = 4 * (row % 8) + column / 2, e = column % 2, h = row / 8;
          const bool of_c = c_half ? c.half(tile * c_words + h, lane, e)
                                   : c.at(tile * c_words + 2 * h + e, lane) != 0;
          if (!of_c && !((rows >> row) & 1) && !((columns >> column) & 1)) continue;
          if (d_half)
            d[tile * d_words + h][lane] |= u64{0xffff} << (16 * e);
          else
            d[tile * d_words + 2 * h + e][lane] = ~u64{0};
        }
      }
    }
  }
}

/// mma.m8n8k4: four products, each by two quads of lanes (volta_tiles has the same places).
void pass_volta(const MmaShape& s, const Fragment& a, const Fragment& b, const Fragment& c,
                std::vector<std::array<u64, kLanes>>& d) {
  const auto element = [](const Fragment& f, u32 product, bool lines, u32 line, u32 k) {
    const u32 lane = 4 * product + (lines ? line % 4 : k) + (line >= 4 ? 16 : 0);
    const u32 n = lines ? k : line % 4;
    return f.half(n / 2, lane, n % 2);
  };
  const auto place = [](Accumulator type, u32 product, u32 row, u32 column, u32& lane) {
    const u32 first = 4 * product + (row >= 4 ? 16 : 0);
    const bool half = type == Accumulator::f16;
    lane = first + (half ? row % 4 : (row & 1) | (column & 2));
    return half ? column : (column & 4) | (row & 2) | (column & 1);
  };
  for (u32 at = 0; at < 256; ++at) {
    const u32 product = at / 64, row = at / 8 % 8, column = at % 8;
    u32 lane = 0, n = place(s.c, product, row, column, lane);
    bool undefined = s.c == Accumulator::f16 ? c.half(n / 2, lane, n % 2) : c.at(n, lane) != 0;
    for (u32 k = 0; k < 4; ++k) {
      undefined |= element(a, product, !(s.choice & 1), row, k);
      undefined |= element(b, product, s.choice & 2, column, k);
    }
    if (!undefined) continue;
    n = place(s.d, product, row, column, lane);
    if (s.d == Accumulator::f16)
      d[n / 2][lane] |= u64{0xffff} << (16 * (n % 2));
    else
      d[n][lane] = ~u64{0};
  }
}

void pass_mma(const Op& op, Warp& w, const ptx::Instruction& i, const Undefined::Step& step) {
  Undefined& u = w.block->checks->undefined;
  const Undefined::Values& values = undefined_values(u, w);
  u32 origin = 0;
  const Fragment a(values, i.operands[1], origin), b(values, i.operands[2], origin),
      c(values, i.operands[3], origin);
  const std::vector<Operand> parts = parts_of(i.operands[0]);
  std::vector<std::array<u64, kLanes>> d(parts.size(), std::array<u64, kLanes>{});
  if (a.any() || b.any() || c.any()) {
    const MmaShape& s = *reinterpret_cast<const MmaShape*>(op.list);
    const bool volta =
        i.opcode == "mma" && step.spelling.has(Modifier::m8n8k4) && s.a == Format::f16;
    (volta ? pass_volta : pass_tiles)(s, a, b, c, d);
  }
  for (u32 n = 0; n < parts.size(); ++n)
    put_undefined(u, w, parts[n].reg, w.active, d[n].data(), origin);
}

/// Element (row, column) of a matrix of 16-bit elements, four lanes a row, is in this half of a
/// lane's register.
struct Cell {
  u32 lane, half;
};
Cell cell_of(u32 row, u32 column) {
  return {4 * row + column / 2, column % 2};
}

void pass_movmatrix(Warp& w, const ptx::Instruction& i) {
  Undefined& u = w.block->checks->undefined;
  u32 origin = 0;
  const Fragment from(undefined_values(u, w), i.operands[1], origin);
  Bits bits = {};
  for (u32 row = 0; row < 8; ++row) {
    for (u32 column = 0; column < 8; ++column) {
      const Cell source = cell_of(row, column), target = cell_of(column, row);
      const u64 half = (from.at(0, source.lane) >> (16 * source.half)) & 0xffff;
      bits[target.lane] |= half << (16 * target.half);
    }
  }
  put_undefined(u, w, i.operands[0].reg, w.active, bits, origin);
}

/// Of a row's byte, the register's lane and the first bit there.
Cell cell_in_row(bool transposed, u32 row, u32 byte) {
  const Cell c = transposed ? cell_of(byte / 2, row) : cell_of(row, byte / 2);
  return {c.lane, 16 * c.half + 8 * (byte % 2)};
}

void lay_down_rows(Warp& w, const ptx::Instruction& i, const Undefined::Step& step) {
  Undefined& u = w.block->checks->undefined;
  u32 origin = 0;
  const Fragment from(undefined_values(u, w), i.operands[1], origin);
  std::fill(std::begin(u.stored), std::end(u.stored), 0u);
  for (u32 m = 0; m < from.parts().size() && from.any(); ++m) {
    for (u32 at = 0; at < 128; ++at) {
      const Cell c = cell_in_row(step.spelling.has(Modifier::trans), at / 16, at % 16);
      if (((from.at(m, c.lane) >> c.half) & 0xff) == 0) continue;
      const u32 lane = 8 * m + at / 16;
      u.stored[lane] |= 1u << (at % 16);
      w.watching->hollow |= 1u << lane;
    }
  }
}

/// Visits (register, lane, bit, host address, bytes) of all a wmma fragment holds.
template <class F>
void for_each_wmma_element(const Op& op, Warp& w, const F& visit) {
  const MatrixPlan& m = *reinterpret_cast<const MatrixPlan*>(op.list);
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  const ptx::Function& f = *w.frame->code->function;
  const Operand& where = i.operands[has(i, "store") ? 0 : 1];
  const bool alone = where.reg == ptx::kNoRegister;  // then a symbol, or a number
  const bool wide = Space(m.space) != Space::shared ||
                    (alone ? where.name.empty() : ptx::size_of(f.registers[where.reg].type) == 8);
  const auto lane_0 = [&](u32 slot, bool eight) {
    u64 value = 0;
    __builtin_memcpy(&value, (eight ? w.wide : w.narrow)[slot & 1] + slot, eight ? 8 : 4);
    return value;
  };
  const u64 base = lane_0(op.a, wide) + u64(op.immediate);
  const u64 stride = op.b == kNone ? m.default_stride : lane_0(op.b, false);
  for_each_element(m, [&](u32 r, u32 l, u32 e, u32 line, u32 within) {
    u64 address = base + line * stride * m.stride_bits / 8 + within * m.element_bits / 8;
    if (!wide) address = u32(address);
    if (Space(m.space) == Space::shared)
      address += reinterpret_cast<u64>(w.shared);
    else if (address >= kSharedWindow && address - kSharedWindow < kWindowBytes)
      address += reinterpret_cast<u64>(w.shared) - kSharedWindow;
    visit(r, l, e * m.element_bits, address, m.element_bits / 8);
  });
}

void lay_down_wmma(const Op& op, Warp& w, const ptx::Instruction& i) {
  Undefined& u = w.block->checks->undefined;
  u32 origin = 0;
  const Fragment from(undefined_values(u, w), i.operands[1], origin);
  u.stored_pieces.clear();
  if (!from.any()) return;
  u.stored_origin = origin;
  for_each_wmma_element(op, w, [&](u32 r, u32 l, u32 bit, u64 address, u32 bytes) {
    const u64 mask = bytes >= 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
    if ((from.at(r, l) >> bit) & mask) u.stored_pieces.push_back({address, bytes});
  });
  std::sort(u.stored_pieces.begin(), u.stored_pieces.end());
  if (!u.stored_pieces.empty()) w.watching->hollow = kAllLanes;
}

}  // namespace

void load_undefined_rows(const Op& op, Warp& w, const u32* bytes, u32 origin) {
  Undefined& u = w.block->checks->undefined;
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  const bool transposed = has(i, "trans");
  const std::vector<Operand> parts = parts_of(i.operands[0]);
  for (u32 m = 0; m < parts.size(); ++m) {
    Bits bits = {};
    for (u32 at = 0; at < 128; ++at) {
      if (((bytes[8 * m + at / 16] >> (at % 16)) & 1) == 0) continue;
      const Cell c = cell_in_row(transposed, at / 16, at % 16);
      bits[c.lane] |= u64{0xff} << c.half;
    }
    put_undefined(u, w, parts[m].reg, kAllLanes, bits, origin);
  }
  show_tracking(u, w);
}

void load_undefined_wmma(const Op& op, Warp& w, u32 origin) {
  Undefined& u = w.block->checks->undefined;
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  const std::vector<Operand> parts = parts_of(i.operands[0]);
  std::vector<std::array<u64, kLanes>> bits(parts.size(), std::array<u64, kLanes>{});
  for_each_wmma_element(op, w, [&](u32 r, u32 l, u32 bit, u64 address, u32 bytes) {
    for (u32 byte = 0; byte < bytes; ++byte) {
      if (is_unwritten(op, w, address + byte)) bits[r][l] |= u64{0xff} << (bit + 8 * byte);
    }
  });
  for (u32 n = 0; n < parts.size(); ++n)
    put_undefined(u, w, parts[n].reg, kAllLanes, bits[n].data(), origin);
  show_tracking(u, w);
}

void pass_matrices(const Op& op, Warp& w, const Undefined::Step& step) {
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  if (i.opcode == "stmatrix") return lay_down_rows(w, i, step);
  if (i.opcode == "movmatrix") return pass_movmatrix(w, i);
  return step.spelling.has(Modifier::store) ? lay_down_wmma(op, w, i) : pass_mma(op, w, i, step);
}

u32 stored_by_wmma(const Undefined& u, u64 address, u32 count) {
  u32 undefined = 0;
  auto it = std::lower_bound(u.stored_pieces.begin(), u.stored_pieces.end(),
                             std::pair<u64, u32>(address, 0));
  for (; it != u.stored_pieces.end() && it->first < address + count; ++it)
    undefined |= ((1u << it->second) - 1) << (it->first - address);
  return undefined;
}

}  // namespace attest::emulator
