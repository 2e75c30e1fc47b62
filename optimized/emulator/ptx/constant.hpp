// Constant expressions: what may stand where PTX wants a number. Integers have C's operators and
// precedence over 64 bits; a float may only carry a sign.
#pragma once
#include <cstdint>

#include "optimized/emulator/ptx/cursor.hpp"

namespace attest::emulator::ptx {

struct Constant {
  Number::Kind kind = Number::Kind::integer;
  std::uint64_t bits = 0;
  bool is_unsigned = false;  // decides /, %, >> and the comparisons
};

/// Whether the cursor stands on what can only begin a constant expression.
bool at_constant(const Cursor& cursor);
Constant parse_constant(Cursor& cursor);
/// The same, refusing floats.
std::int64_t parse_integer_constant(Cursor& cursor);

}  // namespace attest::emulator::ptx
