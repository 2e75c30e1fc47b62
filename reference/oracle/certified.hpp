// The certified oracle: the truth with a proven radius, from double precision where that is enough
// and from as many digits as it takes where it is not. Every constant: notes/0002-certified.md.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/oracle/exact.hpp"

namespace attest {

/// What a row was computed in.
enum class Tier : std::uint8_t { f64, double_double, fifty, hundred, two_hundred };
inline constexpr std::array<std::string_view, 5> kTierNames = {"f64", "double_double", "fifty",
                                                               "hundred", "two_hundred"};
inline constexpr std::array<std::string_view, 5> kTierMeanings = {
    "double, 53 bits", "two doubles, 106 bits", "50 digits", "100 digits", "200 digits"};

/// How small a radius must be, per element like Truth; empty: any finite one will do. Infinite: it
/// need not even be finite.
struct Demand {
  std::vector<double> o, lse;
};

/// The definition's value lies within the radius of truth (head and tail), everywhere.
struct Certified {
  Truth truth;
  std::vector<double> o_radius;  // like Truth::o
  std::vector<double> lse_radius;
  std::vector<Tier> tier;  // per row, like Truth::lse
  std::array<Index, kTierNames.size()> rows_of_tiers() const;
  /// How far the definition may be from truth.o alone, without its tail; and from truth.lse.
  double o_off(std::size_t at) const;
  double lse_off(std::size_t at) const;
  /// Adds that to what is allowed around truth.o and truth.lse.
  void widen(std::vector<double>& o, std::vector<double>& lse) const;
};

/// How many rows each tier computed, where any: "f64=17 double_double=1".
std::string tiers_text(const Certified& certified);

/// What the truth's radius may take of what is allowed before more digits are asked for: 2^-8.
Demand share_of(std::vector<double> o, std::vector<double> lse);

/// Rows whose radius in double is over the demand are redone with more digits until it is not, or
/// two hundred were tried: where sums cancel to nothing no radius can be 0.
///
/// Domain: any legal Problem with values of its extents.
/// Error: |definition - (truth + tail)| <= radius. Memory: the values in double, and 64 rows of
/// logits, as long as double is enough.
/// Special: where the formula leads to NaN or an infinity, the exact oracle's answer with radius 0.
/// Rows behind a query length are 0 with radius 0 and not judged; rows that see no key are exact.
Certified certified_attention(const Problem& problem, const Values& values,
                              const Demand& demand = {});

}  // namespace attest
