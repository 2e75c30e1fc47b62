// The sum a tensor core makes of one row of A and one column of B, stated in integers, one operand
// at a time: the definition that the vectorised form in tile.hpp is held to. Knows neither
// instructions nor layouts.
//
// One alignment group: c and L products a_i b_i.
//   Exponents are those of the operands, subnormals having the least normal one; a product has the
//   sum of two and is not normalised, so its significand lies in [1, 4).
//   emax = the largest exponent of an addend that is not zero, but at least the model's floor.
//   S    = the sum of all addends, each cut towards zero to a multiple of 2^(emax - F). Exact.
//   D    = S rounded once, as the model says; beyond the format it is infinite; no addend: +0.
// A dot product is a chain of groups over consecutive k: D of one is c of the next.
// Special: a NaN, 0 * Inf, and Inf of both signs give NaN, which is 0x7fffffff (f16: 0x7fff).
#pragma once
#include "optimized/emulator/engine/tensor/models.hpp"

namespace attest::emulator {

enum class Kind : u8 { zero, finite, infinite, nan };

/// A value as (-1)^negative * significand * 2^(exponent - fraction_bits of its format).
struct Decoded {
  Kind kind;
  bool negative;
  s32 exponent;  // of the leading bit, or the least normal one
  u32 significand;
};

/// Domain: f16, bf16, tf32 (low 13 bits are dropped first), e4m3, e5m2, in the low bits of `bits`.
Decoded decode(Format format, u32 bits);
Decoded decode(Accumulator format, u32 bits);  // f32 or f16
s32 fraction_bits_of(Format format);

/// c + sum of a[i] * b[i] over all `count` of them, as the bits of an f32 or f16, by the model.
/// `count` is the depth of the instruction.
u32 dot(const Arithmetic& how, Format format_a, Format format_b, const u32* a, const u32* b,
        u32 count, Accumulator type_c, u32 c, Accumulator type_d);

/// The same of operands that are decoded already, for a model that is not fused.
u32 dot(const Arithmetic& how, Format format_a, Format format_b, const Decoded* a, const Decoded* b,
        u32 count, Accumulator type_c, u32 c, Accumulator type_d);

}  // namespace attest::emulator
