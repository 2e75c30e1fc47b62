// The sums of tensor cores as reference/model has them, against the definition that the emulator's
// instructions are held to: written apart, from the same sources, so that they agree only if both
// are right or both misread.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "optimized/emulator/engine/tensor/dot.hpp"
#include "reference/formats.hpp"
#include "reference/model/tensor_core.hpp"

namespace attest::emulator {
namespace {

/// notes/0001-tensor-arithmetic.md.
struct Core {
  Arithmetic how;
  Index step;
  bool narrow;  // operands of 8 bits
};
const Core kCores[] = {
    {{false, false, 23, 4, kNoFloor, GroupResult::f32}, 4, false},  // V100
    {{false, false, 24, 8, -132, GroupResult::f32}, 8, false},      // A100, Ada
    {{false, false, 25, 16, -133, GroupResult::f32}, 16, false},    // Hopper, Blackwell
    {{false, false, 13, 16, -132, GroupResult::e8m13}, 16, true},   // Ada
};

u32 drawn_pattern(std::mt19937_64& random, attest::Format format, bool near) {
  for (;;) {
    auto pattern = static_cast<u32>(random()) & (facts(format).bits == 8 ? 0xffU : 0xffffU);
    const double number = attest::decode(format, pattern);
    if (!std::isfinite(number)) continue;
    if (near && (std::fabs(number) > 8 || std::fabs(number) < 0x1p-6)) continue;
    return pattern;
  }
}

TEST(TensorModel, AgreesWithTheEmulatorsDefinition) {
  constexpr u32 kDepth = 16;
  std::mt19937_64 random(8);
  const std::pair<Format, attest::Format> wide[] = {{Format::f16, attest::Format::f16},
                                                    {Format::bf16, attest::Format::bf16}};
  const std::pair<Format, attest::Format> narrow[] = {{Format::e4m3, attest::Format::e4m3},
                                                      {Format::e5m2, attest::Format::e5m2}};
  for (const Core& core : kCores) {
    for (int turn = 0; turn < 40000; ++turn) {
      const auto& [format, stored] = (core.narrow ? narrow : wide)[turn % 2];
      u32 a[kDepth], b[kDepth];
      Operands x, y;
      x.resize(kDepth);
      y.resize(kDepth);
      for (u32 k = 0; k < kDepth; ++k) {
        a[k] = drawn_pattern(random, stored, turn % 3 == 0);
        b[k] = drawn_pattern(random, stored, turn % 3 == 0);
        x.set(k, attest::decode(stored, a[k]), stored);
        y.set(k, attest::decode(stored, b[k]), stored);
      }
      const auto c = static_cast<float>(x.value[0] * y.value[1] * 1.7);
      if (!std::isfinite(c)) continue;
      const u32 theirs = dot(core.how, format, format, a, b, kDepth, Accumulator::f32,
                             std::bit_cast<u32>(c), Accumulator::f32);
      const double ours = tensor_sum(tensor_core(core.step, stored, stored), static_cast<double>(c),
                                     x, 0, y, 0, kDepth);
      if (std::isnan(std::bit_cast<float>(theirs))) continue;  // groups that overflow both ways
      ASSERT_EQ(std::bit_cast<u32>(static_cast<float>(ours)), theirs)
          << "step " << core.step << ", turn " << turn;
    }
  }
}

}  // namespace
}  // namespace attest::emulator
