// setp: which comparisons of which types exist, and which function each means.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"
#include "optimized/emulator/engine/semantics_integer.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

enum class Relation : u8 { eq, ne, lt, le, num, none };
Relation relation_of(const Spelling& s) {
  if (s.has(M::eq)) return Relation::eq;
  if (s.has(M::ne)) return Relation::ne;
  if (s.has(M::lt)) return Relation::lt;
  if (s.has(M::le)) return Relation::le;
  return s.has(M::num) ? Relation::num : Relation::none;
}
template <class T>
Handler compare_integers(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal<T>>;
    case Relation::ne:
      return comparing<unequal<T>>;
    case Relation::lt:
      return comparing<less<T>>;
    case Relation::le:
      return comparing<less_equal<T>>;
    default:
      return nullptr;
  }
}
template <bool kFlush>
Handler compare_f32(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal_f32<kFlush>>;
    case Relation::ne:
      return comparing<unequal_f32<kFlush>>;
    case Relation::lt:
      return comparing<less_f32<kFlush>>;
    case Relation::le:
      return comparing<less_equal_f32<kFlush>>;
    default:
      return comparing<ordered_f32>;
  }
}
Handler compare_f64(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal_f64>;
    case Relation::ne:
      return comparing<unequal_f64>;
    case Relation::lt:
      return comparing<less_f64>;
    case Relation::le:
      return comparing<less_equal_f64>;
    default:
      return comparing<ordered_f64>;
  }
}
template <class H, bool kFlush>
Handler compare_half(Relation r) {
  switch (r) {
    case Relation::eq:
      return comparing<equal16<H, kFlush>>;
    case Relation::ne:
      return comparing<unequal16<H, kFlush>>;
    case Relation::lt:
      return comparing<less16<H, kFlush>>;
    case Relation::le:
      return comparing<less_equal16<H, kFlush>>;
    default:
      return comparing<ordered16<H>>;
  }
}

}  // namespace

/// The decoder turns every comparison into one of these five and swaps, negates and combines.
Handler select_setp(const Spelling& s) {
  const Relation r = relation_of(s);
  if (r == Relation::none || s.type_count == 0) return nullptr;
  const bool ftz = s.has(M::ftz);
  switch (s.types[s.type_count - 1]) {
    case Type::b16:
    case Type::u16:
      return compare_integers<u16>(r);
    case Type::s16:
      return compare_integers<s16>(r);
    case Type::b32:
    case Type::u32:
      return compare_integers<u32>(r);
    case Type::s32:
      return compare_integers<s32>(r);
    case Type::b64:
    case Type::u64:
      return compare_integers<u64>(r);
    case Type::s64:
      return compare_integers<s64>(r);
    case Type::f32:
      return ftz ? compare_f32<true>(r) : compare_f32<false>(r);
    case Type::f64:
      return compare_f64(r);
    case Type::f16:
      return ftz ? compare_half<F16, true>(r) : compare_half<F16, false>(r);
    case Type::bf16:
      return compare_half<BF16, false>(r);
    default:
      return nullptr;
  }
}

}  // namespace attest::emulator::ATTEST_ISA
