// What the tensor cores of an architecture make of a row, a column and an accumulator, stated in
// doubles, in which every step is exact: apart from the engine's own definition, which uses
// integers. Test code only.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace attest::emulator {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Layout {
  int exponent_bits, fraction_bits;
  bool infinities = true;
};
inline const Layout kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kE4m3{4, 3, false}, kE5m2{5, 2},
    kF32{8, 23};

inline int least_exponent(const Layout& f) {
  return 2 - (1 << (f.exponent_bits - 1));
}

/// The value of a pattern, exactly: every format's values are doubles.
inline double value(const Layout& f, std::uint32_t bits) {
  const int top = (1 << f.exponent_bits) - 1;
  const int stored = int(bits >> f.fraction_bits) & top;
  const int fraction = int(bits & ((1u << f.fraction_bits) - 1));
  const bool negative = (bits >> (f.fraction_bits + f.exponent_bits)) & 1;
  double v = 0;
  if (stored == top && f.infinities)
    v = fraction ? std::nan("") : kInfinity;
  else if (stored == top && fraction == (1 << f.fraction_bits) - 1)
    v = std::nan("");
  else
    v = std::ldexp(fraction + (stored ? 1 << f.fraction_bits : 0),
                   std::max(stored, 1) + least_exponent(f) - 1 - f.fraction_bits);
  return negative ? -v : v;
}

/// To a float whose last `cleared` bits are zero, towards zero; infinite beyond the format.
inline std::uint32_t cut_to_f32(double v, int cleared) {
  if (std::fabs(v) >= 0x1p128)
    return std::bit_cast<std::uint32_t>(float(std::copysign(kInfinity, v)));
  float f = float(v);
  if (std::fabs(double(f)) > std::fabs(v)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<std::uint32_t>(f) >> cleared << cleared;
}
inline std::uint32_t round_to_f16(double v) {
  const double unit = std::ldexp(1, std::max(v == 0 ? -14 : std::ilogb(v), -14) - 10);
  const double rounded = std::nearbyint(v / unit) * unit;  // nearest even; v / unit is exact
  const std::uint32_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::fabs(rounded) >= 65536) return sign | 0x7c00;
  if (rounded == 0) return sign;
  const int e = std::max(std::ilogb(rounded), -14);
  return sign |
         (std::uint32_t(std::fabs(std::ldexp(rounded, 10 - e))) + (std::uint32_t(e + 14) << 10));
}

/// Constants of an architecture for one kind of operands: see notes/0001-tensor-arithmetic.md.
struct Constants {
  std::string model;
  int kept = 0;           // bits kept below the largest exponent
  unsigned together = 0;  // products that are added together
  int floor = -2000;
  int cleared = 0;
  bool alternating = false;
};

struct Sum {
  const Constants& how;
  Layout a, b, c;
  bool half;  // results are f16

  int exponent(const Layout& f, double v) const {
    return std::max(std::ilogb(v), least_exponent(f));
  }

  std::uint32_t nan() const { return half ? 0x7fff : 0x7fffffff; }

  /// One group: `start` and the products of the chosen k.
  std::uint32_t group(const Layout& of_start, double start, const std::vector<double>& x,
                      const std::vector<double>& y) const {
    double special = start;
    for (std::size_t i = 0; i < x.size(); ++i) special += x[i] * y[i];  // only when not finite
    bool finite = std::isfinite(start);
    for (std::size_t i = 0; i < x.size(); ++i) finite = finite && std::isfinite(x[i] * y[i]);
    if (!finite) {
      if (std::isnan(special)) return nan();
      return half ? (special < 0 ? 0xfc00 : 0x7c00) : (special < 0 ? 0xff800000 : 0x7f800000);
    }
    int most = how.floor;
    bool none = start == 0;
    if (start != 0) most = std::max(most, exponent(of_start, start));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0 || y[i] == 0) continue;
      none = false;
      most = std::max(most, exponent(a, x[i]) + exponent(b, y[i]));
    }
    if (none) return 0;
    double total = std::trunc(std::ldexp(start, how.kept - most));
    for (std::size_t i = 0; i < x.size(); ++i)
      total += std::trunc(std::ldexp(x[i] * y[i], how.kept - most));
    if (total == 0) return 0;
    const double result = std::ldexp(total, most - how.kept);
    return half ? round_to_f16(result) : cut_to_f32(result, how.cleared);
  }

  std::uint32_t fused(const std::vector<double>& x, const std::vector<double>& y,
                      double start) const {
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (!half) {
        start = std::fma(float(x[k]), float(y[k]), float(start));
        continue;
      }
      const double p = x[k] * y[k];
      if (!std::isfinite(p) || !std::isfinite(start)) {
        start += p;
        continue;
      }
      // In units of 2^-48, of which f16 products are multiples.
      const auto units = __int128(std::ldexp(p, 48)) + __int128(std::ldexp(start, 48));
      if (units == 0) {
        start = p + start;
        continue;
      }
      const bool negative = units < 0;
      unsigned __int128 size = negative ? -units : units;
      int shift = 0;
      bool rest = false;  // keep 50 bits, the last one sticky: what is left rounds the same way
      for (; size >> 50; ++shift) rest |= size & 1, size >>= 1;
      const double v = std::ldexp(double(std::uint64_t(size) | (rest ? 1 : 0)), shift - 48);
      start = value(kF16, round_to_f16(negative ? -v : v));
    }
    if (std::isnan(start)) return nan();
    return half ? round_to_f16_or_infinity(start) : std::bit_cast<std::uint32_t>(float(start));
  }
  static std::uint32_t round_to_f16_or_infinity(double v) {
    return std::isinf(v) ? (v < 0 ? 0xfc00 : 0x7c00) : round_to_f16(v);
  }

  /// m8n8k4 since sm_80, in the arithmetic of the host.
  std::uint32_t lowered(const std::vector<double>& x, const std::vector<double>& y,
                        double start) const {
    const auto pair = [&](std::size_t k) {
      return std::fma(float(x[k + 1]), float(y[k + 1]), float(x[k]) * float(y[k]));
    };
    float sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) sum = std::fma(float(x[k]), float(y[k]), sum);
    const float result = half ? (float(start) + pair(0)) + pair(2) : float(start) + sum;
    if (std::isnan(result)) return nan();
    return half ? round_to_f16_or_infinity(result) : std::bit_cast<std::uint32_t>(result);
  }

  std::uint32_t all(const std::vector<double>& x, const std::vector<double>& y,
                    double start) const {
    if (how.model == "f32") return fused(x, y, start);
    const Layout result = half ? kF16 : kF32;
    std::vector<double> p, q;
    if (how.alternating) {
      std::uint32_t sum = 0;
      for (unsigned which : {0u, 2u}) {
        p.clear(), q.clear();
        for (std::size_t k = 0; k < x.size(); ++k) {
          if ((k & 2) == which) p.push_back(x[k]), q.push_back(y[k]);
        }
        sum = group(result, value(result, sum), p, q);
      }
      const double last = value(result, sum) + start;
      if (std::isnan(last)) return nan();
      return half ? round_to_f16_or_infinity(last)
                  : std::bit_cast<std::uint32_t>(float(value(result, sum)) + float(start));
    }
    std::uint32_t bits = 0;
    Layout of_start = c;
    for (std::size_t k = 0; k < x.size(); k += how.together) {
      const std::size_t end = std::min(k + how.together, x.size());
      p.assign(x.begin() + long(k), x.begin() + long(end));
      q.assign(y.begin() + long(k), y.begin() + long(end));
      bits = group(of_start, start, p, q);
      of_start = result;
      start = value(result, bits);
    }
    return bits;
  }
};

}  // namespace attest::emulator
