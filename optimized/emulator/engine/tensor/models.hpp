// What the tensor cores of each architecture do with a sum of products: one row per TensorModel,
// and the answer for one kind of operands. The constants and their sources are told in
// notes/0001-tensor-arithmetic.md. Knows no instruction and no layout.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// Operands of mma. Small ones are packed as tightly as they go; tf32 is the upper part of f32.
enum class Format : u32 { f16, bf16, tf32, e4m3, e5m2, int8, uint8, int4, uint4, bits, f64 };
enum class Accumulator : u32 { f32, f16, int32, f64 };

/// How a sum leaves an alignment group.
enum class GroupResult : u8 {
  f32,    // 24 bits, towards zero
  e8m13,  // 14 bits, towards zero; kept as f32
  f16,    // 11 bits, nearest even
};

/// Floors of emax that never bind, for architectures that show none.
inline constexpr s32 kNoFloor = -2000;

/// How one chain of products is added up.
struct Arithmetic {
  bool fused;         // no groups: fused multiply-adds in order of k
  bool in_pairs;      // groups take k % 4 in {0, 1}, then {2, 3}, from zero; c is added at the end
  s32 fraction_bits;  // F: addends are cut below 2^(emax - F)
  u32 group;          // L: products per alignment group
  s32 floor;          // emax is at least this
  GroupResult result;
  bool lowered = false;  // no tensor core: what ptxas makes of m8n8k4 since sm_80 (fused.hpp)
};

/// One architecture.
struct TensorRow {
  u32 since;  // its number: 80 for sm_80; f32 has everything
  s32 fraction_bits;
  u32 group_16, group_tf32;
  s32 floor_f32, floor_f16;
  s32 fraction_bits_8;
  u32 group_8;
  GroupResult result_8;  // with f32 accumulators
  bool pairs_8;
};

/// The row of the model the launch runs with.
const TensorRow& tensor_row(const Warp& warp);
/// How that row adds products of operands of one size up in this accumulator.
Arithmetic arithmetic_of(const TensorRow& row, Format format, Accumulator accumulator);
/// The same of mma.m8n8k4, the instruction of Volta's tensor cores.
Arithmetic volta_arithmetic_of(const TensorRow& row, Accumulator accumulator);
/// Ends the launch: the model lacks the instruction, which came with architecture `since`.
const Op* fault_missing(const Op& op, Warp& warp, u32 since);

}  // namespace attest::emulator
