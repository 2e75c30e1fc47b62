// The model `f32`: fused multiply-adds in order of k, each rounded to nearest even in the
// accumulator's format. And what else is no tensor core: mma.m8n8k4 since sm_80, and the plain
// addition of two accumulators. Knows no alignment groups.
#pragma once
#include "optimized/emulator/engine/tensor/models.hpp"

namespace attest::emulator {

/// ((c + a0 b0) + a1 b1) + ..., each step rounded once. Special: NaN is canonical.
u32 fused_dot(Format format_a, Format format_b, const u32* a, const u32* b, u32 count,
              Accumulator type_c, u32 c, Accumulator type_d);

/// What stands for mma.m8n8k4 where there is no tensor core for it: in f32, each step rounded to
/// nearest. With f32 results a chain of fused multiply-adds from zero, then c is added; with f16
/// results c, plus the first two products, plus the last two, and then it is rounded to f16.
u32 lowered_dot(Format format_a, Format format_b, const u32* a, const u32* b, Accumulator type_c,
                u32 c, Accumulator type_d);

/// x + c rounded to nearest even in the format of x.
u32 add_accumulators(Accumulator type, u32 x, Accumulator type_c, u32 c);

/// The value of an operand or accumulator, exactly.
double value_of(Format format, u32 bits);
double value_of(Accumulator format, u32 bits);

}  // namespace attest::emulator
