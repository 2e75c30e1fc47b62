// The conversions that kernels use in inner loops, compiled for each instruction set. All others
// are answered by handlers_convert.cpp; the functions are the same.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_convert.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

constexpr unsigned pair_of(Type d, Type a) {
  return unsigned(d) << 8 | unsigned(a);
}

Handler hot_int(const Spelling& s) {
  switch (pair_of(s.types[0], s.types[1])) {
    case pair_of(Type::u64, Type::u32):
      return lanewise<int_to_int<u64, u32, false>>;
    case pair_of(Type::s64, Type::s32):
      return lanewise<int_to_int<s64, s32, false>>;
    case pair_of(Type::u32, Type::u64):
      return lanewise<int_to_int<u32, u64, false>>;
    case pair_of(Type::u16, Type::u32):
      return lanewise<int_to_int<u16, u32, false>>;
    case pair_of(Type::u32, Type::u16):
      return lanewise<int_to_int<u32, u16, false>>;
    case pair_of(Type::s32, Type::s16):
      return lanewise<int_to_int<s32, s16, false>>;
    case pair_of(Type::s16, Type::s8):
      return lanewise<int_to_int<s16, s8, false>>;
    default:
      return nullptr;
  }
}

Handler hot_float(const Spelling& s) {
  switch (pair_of(s.types[0], s.types[1])) {
    case pair_of(Type::f32, Type::f16):
      return lanewise<to_f32<F16, false>>;
    case pair_of(Type::f32, Type::bf16):
      return lanewise<to_f32<BF16, false>>;
    case pair_of(Type::f16, Type::f32):
      return lanewise<f32_to_16<F16, Rounding::nearest, false, false>>;
    case pair_of(Type::bf16, Type::f32):
      return lanewise<f32_to_16<BF16, Rounding::nearest, false, false>>;
    case pair_of(Type::f16x2, Type::f32):
      return lanewise<pack16<F16, Rounding::nearest, false, false>>;
    case pair_of(Type::bf16x2, Type::f32):
      return lanewise<pack16<BF16, Rounding::nearest, false, false>>;
    case pair_of(Type::f32, Type::s32):
      return lanewise<int_to_f32<s32, Rounding::nearest>>;
    case pair_of(Type::f32, Type::u32):
      return lanewise<int_to_f32<u32, Rounding::nearest>>;
    case pair_of(Type::f32, Type::s16):
      return lanewise<int_to_f32<s16, Rounding::nearest>>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_cvt(const Spelling& s) {
  const bool exact_or_nearest = s.rounding() == Rounding::nearest && !s.has(M::rni) &&
                                !s.has(M::rzi) && !s.has(M::rmi) && !s.has(M::rpi) &&
                                !s.has(M::rna);
  const bool plain = exact_or_nearest && !s.has(M::relu) && !s.has(M::satfinite) &&
                     !s.has(M::ftz) && !s.has(M::e4m3x2) && !s.has(M::e5m2x2) && !s.has(M::tf32);
  if (s.type_count == 2 && plain) {
    if (s.has(M::sat)) {
      if (s.types[0] == Type::f32 && s.types[1] == Type::f32)
        return lanewise<f32_to_f32<false, true>>;
    } else {
      if (Handler h = hot_int(s)) return h;
      if (Handler h = hot_float(s)) return h;
    }
  }
  return baseline::select_cvt_any(s);
}

}  // namespace attest::emulator::ATTEST_ISA
