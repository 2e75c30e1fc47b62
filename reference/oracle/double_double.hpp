// Numbers of about 106 bits: an unevaluated sum of two doubles, low at most half an ulp of high,
// two such numbers at a time. Algorithms and error bounds are those of M. Joldes, J.-M. Muller and
// V. Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic,
// ACM TOMS 44, 2017 (JMP), without fused operations. Nothing here allows for overflow, or for
// underflow, which starts at 2^-900 or so, where the low parts leave the normal range.
#pragma once
#include "reference/oracle/exponential.hpp"

namespace attest::oracle {

struct Pair {
  Lanes high{0, 0}, low{0, 0};
};

inline constexpr double kPairUnit =
    16 * kUnit * kUnit;                            // relative, of any operation below: see each
inline constexpr double kPairExpError = 0x1p-100;  // relative; note 0002, D
inline constexpr double kPairVanish = 600;         // exp(-600) = 2^-865.6

inline Pair pair_of(double number) {
  return {lanes_of(number), lanes_of(0)};
}

/// a + b exactly (Knuth). Fast2Sum (Dekker) is the same for |a| >= |b|.
inline Pair two_sum(Lanes a, Lanes b) {
  const Lanes sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
inline Pair ordered_sum(Lanes a, Lanes b) {
  const Lanes sum = a + b;
  return {sum, b - (sum - a)};
}
/// The leading 26 bits of a number, and the rest (Veltkamp).
inline Pair halves(Lanes a) {
  const Lanes shifted = a * 134217729.0;  // 2^27 + 1
  const Lanes high = shifted - (shifted - a);
  return {high, a - high};
}
/// a b exactly (Dekker).
inline Pair two_product(Lanes a, Lanes b) {
  const Lanes product = a * b;
  const Pair x = halves(a), y = halves(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

inline Pair operator-(const Pair& x) {
  return {-x.high, -x.low};
}
/// Error: 3 u^2 + 13 u^3 (JMP, algorithm 6).
inline Pair operator+(const Pair& x, const Pair& y) {
  const Pair s = two_sum(x.high, y.high), t = two_sum(x.low, y.low);
  const Pair v = ordered_sum(s.high, s.low + t.high);
  return ordered_sum(v.high, t.low + v.low);
}
inline Pair operator-(const Pair& x, const Pair& y) {
  return x + -y;
}
/// Error: 2 u^2 (JMP, algorithm 4).
inline Pair operator+(const Pair& x, Lanes y) {
  const Pair s = two_sum(x.high, y);
  return ordered_sum(s.high, x.low + s.low);
}
/// Error: 7 u^2 (JMP, algorithm 10).
inline Pair operator*(const Pair& x, const Pair& y) {
  const Pair c = two_product(x.high, y.high);
  return ordered_sum(c.high, c.low + (x.high * y.low + x.low * y.high));
}
/// Error: 1.5 u^2 + 4 u^3 (JMP, algorithm 7).
inline Pair operator*(const Pair& x, Lanes y) {
  const Pair c = two_product(x.high, y);
  const Pair t = ordered_sum(c.high, x.low * y);
  return ordered_sum(t.high, t.low + c.low);
}
/// Error: 15 u^2 + 56 u^3 (JMP, algorithm 17).
inline Pair operator/(const Pair& x, const Pair& y) {
  const Lanes quotient = x.high / y.high;
  const Pair r = y * quotient;
  const Lanes rest = (x.high - r.high) + (x.low - r.low);
  return ordered_sum(quotient, rest / y.high);
}

/// exp(-x).
/// Domain: 0 <= x <= kPairVanish, as high parts.
/// Error: at most kPairExpError, relative; note 0002, D.
/// Special: exactly 1 at 0.
inline Pair exp_minus(const Pair& x) {
  constexpr double kLog2e = std::numbers::log2e;
  constexpr double kToInteger = 0x1.8p52;
  // ln 2 in parts of 32, 40 and 53 bits: times k the first two are exact.
  constexpr double kLn2[] = {0x1.62e42feep-1, 0x1.a39ef35792p-33, 0x1.c7673007e5ed6p-73};
  const Lanes shifted = x.high * kLog2e + kToInteger;
  const Lanes k = shifted - kToInteger;
  Pair r = two_sum(k * kLn2[0] - x.high, k * kLn2[1]) + (k * kLn2[2]);
  r = r + -x.low;
  r = {r.high * 0x1p-6, r.low * 0x1p-6};
  // Taylor: from 1/8! on in double, the rest in pairs.
  const Lanes t = r.high;
  const Lanes tail = 1.0 / 40320 + t * (1.0 / 362880 + t * (1.0 / 3628800 + t * (1.0 / 39916800)));
  constexpr double kInverse[][2] = {
      {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},   // 1/7!
      {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},  // 1/6!
      {0x1.1111111111111p-7, 0x1.1111111111111p-63},    // 1/5!
      {0x1.5555555555555p-5, 0x1.5555555555555p-59},    // 1/4!
      {0x1.5555555555555p-3, 0x1.5555555555555p-57},    // 1/3!
  };
  Pair p = r * tail;
  for (const auto& [high, low] : kInverse) {
    p = (p + Pair{lanes_of(high), lanes_of(low)}) * r;
  }
  p = r + (p + lanes_of(0.5)) * (r * r);  // expm1 of r
  for (int doubling = 0; doubling < 6; ++doubling) {
    p = Pair{2.0 * p.high, 2.0 * p.low} + p * p;
  }
  p = p + lanes_of(1);
  const Lanes power = reinterpret_cast<Lanes>(reinterpret_cast<LaneBits>(lanes_of(1)) -
                                              (reinterpret_cast<LaneBits>(shifted) << 52));
  return {p.high * power, p.low * power};
}

}  // namespace attest::oracle
