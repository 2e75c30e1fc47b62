// What the comparisons and classifications of f32 and f64 say of one lane. Pure functions.
#pragma once
#include "optimized/emulator/engine/semantics_float.hpp"

namespace attest::emulator::ATTEST_ISA {

// --- comparisons: ordered ones are false, unordered ones true, when an operand is NaN ---
template <bool kFlush>
ATTEST_INLINE bool equal_f32(float a, float b) {
  return operand<kFlush>(a) == operand<kFlush>(b);
}
template <bool kFlush>
ATTEST_INLINE bool unequal_f32(float a, float b) {
  a = operand<kFlush>(a), b = operand<kFlush>(b);
  return a < b || a > b;
}
template <bool kFlush>
ATTEST_INLINE bool less_f32(float a, float b) {
  return operand<kFlush>(a) < operand<kFlush>(b);
}
template <bool kFlush>
ATTEST_INLINE bool less_equal_f32(float a, float b) {
  return operand<kFlush>(a) <= operand<kFlush>(b);
}
ATTEST_INLINE bool ordered_f32(float a, float b) {
  return !is_nan(a) && !is_nan(b);
}
ATTEST_INLINE bool equal_f64(double a, double b) {
  return a == b;
}
ATTEST_INLINE bool unequal_f64(double a, double b) {
  return a < b || a > b;
}
ATTEST_INLINE bool less_f64(double a, double b) {
  return a < b;
}
ATTEST_INLINE bool less_equal_f64(double a, double b) {
  return a <= b;
}
ATTEST_INLINE bool ordered_f64(double a, double b) {
  return !is_nan(a) && !is_nan(b);
}

enum class Class : u8 { finite, infinite, number, notanumber, normal, subnormal };
template <Class kClass>
ATTEST_INLINE bool test_f32(float a) {
  const u32 e = bits_as<u32>(a) & 0x7f800000u, m = bits_as<u32>(a) & 0x007fffffu;
  switch (kClass) {
    case Class::finite:
      return e != 0x7f800000u;
    case Class::infinite:
      return e == 0x7f800000u && m == 0;
    case Class::number:
      return e != 0x7f800000u || m == 0;
    case Class::notanumber:
      return e == 0x7f800000u && m != 0;
    case Class::normal:
      return e != 0x7f800000u && e != 0;
    case Class::subnormal:
      return e == 0 && m != 0;
  }
  return false;
}
template <Class kClass>
ATTEST_INLINE bool test_f64(double a) {
  const u64 e = bits_as<u64>(a) & 0x7ff0000000000000u, m = bits_as<u64>(a) & 0x000fffffffffffffu;
  switch (kClass) {
    case Class::finite:
      return e != 0x7ff0000000000000u;
    case Class::infinite:
      return e == 0x7ff0000000000000u && m == 0;
    case Class::number:
      return e != 0x7ff0000000000000u || m == 0;
    case Class::notanumber:
      return e == 0x7ff0000000000000u && m != 0;
    case Class::normal:
      return e != 0x7ff0000000000000u && e != 0;
    case Class::subnormal:
      return e == 0 && m != 0;
  }
  return false;
}

}  // namespace attest::emulator::ATTEST_ISA
