// exp, tanh and log in double with proven errors, exp and tanh for two numbers at a time. The
// proofs are in notes/0002-certified.md. Knows nothing of attention. Needs rounding to nearest and
// no contraction of a * b + c, with which everything here is built.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>

namespace attest::oracle {

/// What every x86-64 (and ARMv8) machine adds and multiplies at once.
using Lanes = double __attribute__((vector_size(16)));
using LaneBits = std::int64_t __attribute__((vector_size(16)));
inline constexpr std::int64_t kLanes = 2;

inline constexpr double kUnit = 0x1p-53;         // unit roundoff of double
inline constexpr double kExpError = 2 * kUnit;   // relative; note 0002, E1 to E5
inline constexpr double kTanhError = 5 * kUnit;  // absolute; note 0002, T
inline constexpr double kVanish = 708;           // exp(-708) is a normal double, barely

inline Lanes lanes_of(double number) {
  return Lanes{number, number};
}
inline Lanes load(const double* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
inline void store(double* to, Lanes lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}
inline Lanes larger(Lanes a, Lanes b) {
  return a > b ? a : b;
}
inline Lanes smaller(Lanes a, Lanes b) {
  return a < b ? a : b;
}

/// exp(-x).
/// Domain: 0 <= x <= kVanish.
/// Error: at most kExpError, relative.
/// Special: exactly 1 at 0; never above 1. Nothing is promised outside the domain.
inline Lanes exp_minus(Lanes x) {
  constexpr double kLog2e = std::numbers::log2e;
  constexpr double kToInteger = 0x1.8p52;  // added to a small number it leaves only the integer
  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits of ln 2: times k it is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const Lanes shifted = x * kLog2e + kToInteger;
  const Lanes k = shifted - kToInteger;
  const Lanes r = (k * kLn2High - x) + k * kLn2Low;  // exp(-x) = 2^-k exp(r)
  Lanes p = lanes_of(1.0 / 6227020800);              // Taylor: 1/13!, 1/12!, ...
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = 1.0 + (r + r * r * p);
  // The last bits of `shifted` are those of k; 2^-k is a matter of the exponent.
  return reinterpret_cast<Lanes>(reinterpret_cast<LaneBits>(p) -
                                 (reinterpret_cast<LaneBits>(shifted) << 52));
}

inline double exp_minus(double x) {
  return exp_minus(lanes_of(x))[0];
}

/// Domain: any number but NaN.
/// Error: at most kTanhError, absolute.
/// Special: odd; 1 where exp(-2x) is beyond exp_minus.
inline Lanes tanh_of(Lanes x) {
  const Lanes size = x < 0.0 ? -x : x;
  const Lanes e = exp_minus(smaller(2.0 * size, lanes_of(kVanish)));
  const Lanes t = (1.0 - e) / (1.0 + e);
  return x < 0.0 ? -t : t;
}

/// A logarithm with the error that an exponential proves of it: the library's log is only a guess.
struct Logarithm {
  double value, error;  // absolute
};
/// Domain: 1 <= x < exp(kVanish).
/// Error: as it says; infinite if the guess was no logarithm. Note 0002, L.
inline Logarithm log_of(double x) {
  const double guess = std::fmax(0.0, std::log(x));
  const double off = std::fabs(x * exp_minus(guess) - 1);
  return {guess, off < 0x1p-20 ? (off + 4 * kUnit) * (1 + 0x1p-18) : HUGE_VAL};
}

}  // namespace attest::oracle
