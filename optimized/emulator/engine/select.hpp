// Declares select_NAME for every opcode, and the macros by which they answer for whole families.
// Part of the code compiled once per instruction set.
#pragma once
#include "optimized/emulator/engine/isa.hpp"
#include "optimized/emulator/engine/lanes.hpp"

namespace attest::emulator::baseline {
#define ATTEST_DECLARE_each(name)
#define ATTEST_DECLARE_once(name) Handler select_##name(const Spelling& s);
#define ATTEST_DECLARE_decoder(name)
#define OPCODE(name, where, operands, modifiers, precision, meaning) ATTEST_DECLARE_##where(name)
#include "optimized/emulator/engine/opcodes.def"
#undef ATTEST_DECLARE_each
#undef ATTEST_DECLARE_once
#undef ATTEST_DECLARE_decoder
}  // namespace attest::emulator::baseline

namespace attest::emulator::ATTEST_ISA {

using ptx::Type;
using M = Modifier;

#define ATTEST_DECLARE_each(name) Handler select_##name(const Spelling& s);
#define ATTEST_DECLARE_once(name)
#define ATTEST_DECLARE_decoder(name)
#define OPCODE(name, where, operands, modifiers, precision, meaning) ATTEST_DECLARE_##where(name)
#include "optimized/emulator/engine/opcodes.def"

extern const Handler kPlain[std::size_t(Plain::kCount)];
Handler select_load(Element element, Space space, bool wide_address);
Handler select_store(Element element, Space space, bool wide_address);
const Op* run(Warp& w, const Op* op, s64& budget);

// Families of types, as cases of a switch over Spelling::type().
#define ATTEST_CASE_16(F) \
  case Type::b16:         \
  case Type::u16:         \
  case Type::s16:         \
    return lanewise<F<u16>>;
#define ATTEST_CASE_32(F) \
  case Type::b32:         \
  case Type::u32:         \
  case Type::s32:         \
    return lanewise<F<u32>>;
#define ATTEST_CASE_64(F) \
  case Type::b64:         \
  case Type::u64:         \
  case Type::s64:         \
    return lanewise<F<u64>>;
/// For operations that do not care about signs.
#define ATTEST_CASES_BITS(F) ATTEST_CASE_16(F) ATTEST_CASE_32(F) ATTEST_CASE_64(F)
/// For operations that do.
#define ATTEST_CASES_INTEGERS(F) \
  case Type::u16:                \
    return lanewise<F<u16>>;     \
  case Type::s16:                \
    return lanewise<F<s16>>;     \
  case Type::u32:                \
    return lanewise<F<u32>>;     \
  case Type::s32:                \
    return lanewise<F<s32>>;     \
  case Type::u64:                \
    return lanewise<F<u64>>;     \
  case Type::s64:                \
    return lanewise<F<s64>>;
#define ATTEST_FLAGS(F, R)                                                                    \
  (s.has(M::ftz) ? (s.has(M::sat) ? lanewise<F<R, true, true>> : lanewise<F<R, true, false>>) \
                 : (s.has(M::sat) ? lanewise<F<R, false, true>> : lanewise<F<R, false, false>>))
#define ATTEST_FLUSH(F, R) (s.has(M::ftz) ? lanewise<F<R, true>> : lanewise<F<R, false>>)
#define ATTEST_ROUNDINGS(APPLY, F)        \
  switch (s.rounding()) {                 \
    case Rounding::nearest:               \
      return APPLY(F, Rounding::nearest); \
    case Rounding::zero:                  \
      return APPLY(F, Rounding::zero);    \
    case Rounding::down:                  \
      return APPLY(F, Rounding::down);    \
    case Rounding::up:                    \
      return APPLY(F, Rounding::up);      \
  }
#define ATTEST_PLAINLY(F, R) lanewise<F<R>>

}  // namespace attest::emulator::ATTEST_ISA
