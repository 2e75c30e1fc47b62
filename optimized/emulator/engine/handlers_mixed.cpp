// f32x2 arithmetic, and f32 arithmetic with 16-bit operands: which function each modifier means.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

#define ATTEST_TWIN2(F, R) \
  s.has(M::ftz) ? lanewise<twin2<F<R, true, false>>> : lanewise<twin2<F<R, false, false>>>
#define ATTEST_TWIN3(F, R) \
  s.has(M::ftz) ? lanewise<twin3<F<R, true, false>>> : lanewise<twin3<F<R, false, false>>>

#define ATTEST_MIXED(F, R) s.has(M::sat) ? lanewise<F<H, R, true>> : lanewise<F<H, R, false>>

template <class H>
Handler mixed(const Spelling& s) {
  switch (s.opcode) {
    case Opcode::add:
      ATTEST_ROUNDINGS(ATTEST_MIXED, add_mixed)
      break;
    case Opcode::sub:
      ATTEST_ROUNDINGS(ATTEST_MIXED, sub_mixed)
      break;
    case Opcode::fma:
      ATTEST_ROUNDINGS(ATTEST_MIXED, fma_mixed)
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

Handler select_mixed(const Spelling& s) {
  if (s.types[0] != Type::f32) return nullptr;
  if (s.types[1] == Type::f16) return mixed<F16>(s);
  return s.types[1] == Type::bf16 ? mixed<BF16>(s) : nullptr;
}

Handler select_twin(const Spelling& s) {
  switch (s.opcode) {
    case Opcode::add:
      ATTEST_ROUNDINGS(ATTEST_TWIN2, add_f32)
      break;
    case Opcode::sub:
      ATTEST_ROUNDINGS(ATTEST_TWIN2, sub_f32)
      break;
    case Opcode::mul:
      ATTEST_ROUNDINGS(ATTEST_TWIN2, mul_f32)
      break;
    case Opcode::fma:
      ATTEST_ROUNDINGS(ATTEST_TWIN3, fma_f32)
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace attest::emulator::ATTEST_ISA
