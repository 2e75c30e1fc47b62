// wmma.load and wmma.store: whole matrices between memory and fragments, whose layout is that of
// tensor/layout.hpp. Compiled for the oldest instruction set and used by all.
#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/tensor/layout.hpp"
#include "optimized/emulator/engine/tensor/matrix.hpp"
#include "optimized/emulator/engine/watch.hpp"

#include <algorithm>

namespace attest::emulator::baseline {
namespace {

/// The matrix as its lines lie in memory, one after another.
struct Dense {
  alignas(64) u8 bytes[2048];
};

u64 lane_value(Warp& w, u32 operand, bool wide, u32 l) {
  return wide ? reinterpret_cast<const u64*>(slot<u64>(w, operand))[l]
              : reinterpret_cast<const u32*>(slot<u32>(w, operand))[l];
}

/// All lanes give the same address and stride; anything else is undefined in PTX.
bool is_uniform(const Op& op, Warp& w, bool wide) {
  for (u32 l = 1; l < kLanes; ++l) {
    const bool same =
        lane_value(w, op.a, wide, l) == lane_value(w, op.a, wide, 0) &&
        (op.b == kNone || lane_value(w, op.b, false, l) == lane_value(w, op.b, false, 0));
    if (same) continue;
    fault(w, op, l, "memcheck", "the lanes of the warp give different addresses or strides");
    return false;
  }
  return true;
}

/// Where the pieces at up to 32 addresses of the space lie, for the lanes of w.mask. In shared
/// memory they are offsets, as those of every access to it (Spread).
Spread find_chunks(const Op& op, Warp& w, Space space, const u64* address, u32 bytes, Places& p) {
  if (space != Space::shared) {
    std::copy_n(address, kLanes, p.at);
    return find_places(op, w, p.at, bytes, space) ? Spread::scattered : Spread::fault;
  }
  p.first = w.shared;
  for (u32 l = 0; l < kLanes; ++l) p.offset[l] = u32(address[l]);
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    const u64 at = address[l];
    if (at <= w.shared_bytes && w.shared_bytes - at >= bytes && at % bytes == 0) continue;
    fault_place(op, w, l, at, bytes, Space::shared);
    return Spread::fault;
  }
  return Spread::offsets;
}

/// Moves all lines between memory and `dense`, in pieces of at most 16 bytes, one a lane.
template <bool kStore>
bool move_lines(const Op& op, Warp& w, const MatrixPlan& m, bool wide, Dense& dense) {
  const Space space = Space(m.space);
  const u64 base = lane_value(w, op.a, wide, 0) + u64(op.immediate);
  const u64 stride = op.b == kNone ? m.default_stride : lane_value(w, op.b, false, 0);
  const u64 line_bytes = m.line_elements * m.element_bits / 8;
  const u32 chunk = u32(std::min<u64>({16, line_bytes, m.fragment_bytes}));
  const u32 per_line = u32(line_bytes) / chunk, count = per_line * m.lines;
  for (u32 first = 0; first < count; first += kLanes) {
    Places p;
    u64 address[kLanes] = {};
    const u32 lanes = std::min(kLanes, count - first);
    w.mask = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    for (u32 l = 0; l < lanes; ++l) {
      const u32 line = (first + l) / per_line, piece = (first + l) % per_line;
      address[l] = base + line * stride * m.stride_bits / 8 + piece * chunk;
      if (!wide) address[l] = u32(address[l]);
    }
    const Spread spread = find_chunks(op, w, space, address, chunk, p);
    if (spread != Spread::fault)
      watch(op, w, kStore ? Access::write : Access::read, space, p, spread, chunk);
    w.mask = kAllLanes;
    if (spread == Spread::fault) return false;
    for (u32 l = 0; l < lanes; ++l) {
      u8* const in_memory = reinterpret_cast<u8*>(address_of(p, spread, chunk, l));
      u8* const here = dense.bytes + (first + l) * chunk;
      __builtin_memcpy(kStore ? in_memory : here, kStore ? here : in_memory, chunk);
    }
  }
  return true;
}

template <bool kStore, bool kWide>
const Op* move_matrix(const Op& op, Warp& w) {
  if (w.mask != kAllLanes) return gather_warp(w, op);
  const MatrixPlan& m = *reinterpret_cast<const MatrixPlan*>(op.list);
  const u32* const slots = op.list + kPlanWords;
  if (tensor_row(w).since < m.since) return fault_missing(op, w, m.since);
  if (!is_uniform(op, w, kWide)) return nullptr;
  Dense dense;
  const bool twin = m.register_bits == 64;
  const auto register_of = [&](u32 r) {
    return twin ? slot<u64>(w, slots[r]) : slot<u32>(w, slots[r]);
  };
  const u32 bytes = m.element_bits / 8;
  const auto within = [&](u32 l, u32 e) { return l * (m.register_bits / 8) + e * bytes; };
  const auto in_dense = [&](u32 line, u32 at) {
    return dense.bytes + (line * m.line_elements + at) * m.element_bits / 8;
  };
  if (kStore) {
    for_each_element(m, [&](u32 r, u32 l, u32 e, u32 line, u32 at) {
      __builtin_memcpy(in_dense(line, at), register_of(r) + within(l, e), bytes);
    });
  }
  if (!move_lines<kStore>(op, w, m, kWide, dense)) return nullptr;
  if (!kStore) {
    for_each_element(m, [&](u32 r, u32 l, u32 e, u32 line, u32 at) {
      __builtin_memcpy(register_of(r) + within(l, e), in_dense(line, at), bytes);
    });
  }
  return &op + 1;
}

}  // namespace

// Spelling::vector tells the width of addresses: 2 for 64 bits.
Handler select_wmma(const Spelling& s) {
  if (s.has(M::load)) return s.vector == 2 ? move_matrix<false, true> : move_matrix<false, false>;
  if (s.has(M::store)) return s.vector == 2 ? move_matrix<true, true> : move_matrix<true, false>;
  return nullptr;
}

}  // namespace attest::emulator::baseline
