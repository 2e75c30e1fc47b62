// The table of tensor core models.
#include "optimized/emulator/engine/tensor/models.hpp"

#include <fmt/format.h>

#include <array>

#include "optimized/emulator/engine/block.hpp"

namespace attest::emulator {
namespace {

constexpr GroupResult kE8m13 = GroupResult::e8m13, kF32 = GroupResult::f32;
// By enumerator of TensorModel. Where an architecture has no FP8 the columns are not used.
constexpr std::array<TensorRow, 8> kRows{{
    // since  F  L16 Ltf32  floor f32, f16   F8 L8 result  pairs
    {999, 0, 1, 1, kNoFloor, kNoFloor, 0, 1, kF32, false},  // f32: fused multiply-adds
    {70, 23, 4, 4, kNoFloor, -19, 0, 1, kF32, false},       // V100
    {75, 24, 8, 4, -132, -20, 0, 1, kF32, false},           // T4
    {80, 24, 8, 4, -132, -20, 0, 1, kF32, false},           // A100
    {89, 24, 8, 4, -132, -20, 13, 16, kE8m13, false},       // L40S
    {90, 25, 16, 8, -133, -21, 25, 16, kF32, true},         // H100, mma.sync
    {100, 25, 16, 8, -133, -21, 25, 16, kF32, true},        // B200, mma.sync
    {120, 25, 16, 8, -133, -21, 25, 32, kF32, false},       // RTX Blackwell
}};

bool is_fp8(Format format) {
  return format == Format::e4m3 || format == Format::e5m2;
}

}  // namespace

const TensorRow& tensor_row(const Warp& w) {
  return kRows[std::size_t(w.numerics->tensor)];
}

Arithmetic arithmetic_of(const TensorRow& row, Format format, Accumulator accumulator) {
  const bool half = accumulator == Accumulator::f16;
  Arithmetic a{};
  a.fused = row.since == kRows[0].since;
  a.floor = half ? row.floor_f16 : row.floor_f32;
  a.fraction_bits = row.fraction_bits;
  a.group = format == Format::tf32 ? row.group_tf32 : row.group_16;
  a.result = half ? GroupResult::f16 : GroupResult::f32;
  if (is_fp8(format) && !a.fused) {
    a.fraction_bits = row.fraction_bits_8;
    a.group = row.group_8;
    a.in_pairs = row.pairs_8;
    if (!half) a.result = row.result_8;
  }
  return a;
}

Arithmetic volta_arithmetic_of(const TensorRow& row, Accumulator accumulator) {
  constexpr u32 kFirstWithout = 80;
  Arithmetic a = arithmetic_of(row, Format::f16, accumulator);
  a.lowered = !a.fused && row.since >= kFirstWithout;
  return a;
}

const Op* fault_missing(const Op& op, Warp& w, u32 since) {
  std::string having;
  for (std::size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].since >= since) having += print(NumericModel{TensorModel(i), {}}) + ", ";
  }
  return fault(w, op, u32(__builtin_ctz(w.active)), "unsupported",
               fmt::format("{} has no such instruction; {}and f32 have it (--numerics)",
                           print(NumericModel{w.numerics->tensor, {}}), having));
}

}  // namespace attest::emulator
