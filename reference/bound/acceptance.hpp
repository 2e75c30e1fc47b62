// Acceptance: which numbers of a kernel that rounds as it declared are accepted, element by
// element, by the strongest bound that applies. Derivations: reference/bound/README.md.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "reference/oracle/exact.hpp"
#include "reference/precision.hpp"
#include "reference/values.hpp"

namespace attest {

/// Of a bound: order_free knows nothing of order, running follows the sums as declared, quantised
/// also rounds P as the kernel does. Spelled as printed.
enum class Strength : std::uint8_t { order_free, running, quantised };
inline constexpr std::array<std::string_view, 3> kStrengthNames = {"order_free", "running",
                                                                   "quantised"};

/// Whether some number within the radius of the centre rounds to `got`. Special: false for NaN.
bool may_round_to(Format format, double centre, double radius, double got);

/// Elements of one format. One is accepted if a number within `radius` of the centre rounds to it:
/// rounding is monotone, so these are the numbers of the format from low() to high().
struct Accepted {
  Format format = Format::f32;
  std::vector<double> centre;  // what no rounding leads to but that of P, where it is followed
  std::vector<double> radius;  // infinite: nothing is promised

  double low(std::size_t at) const;
  double high(std::size_t at) const;
  /// Special: a centre that is NaN or infinite must be met. NaN is accepted nowhere else, except
  /// where nothing is promised.
  bool accepts(double got, std::size_t at) const;
  /// The least distance from the centre of a number that rounds to `got`: over the radius it is
  /// how far the bound was used. Special: 0 where nothing is promised or a special centre was met,
  /// infinity where it was not, and for a NaN.
  double error_of(double got, std::size_t at) const;
  /// error_of() / radius. Special: a special centre allows nothing.
  double margin_of(double got, std::size_t at) const;
};

struct Acceptance {
  Accepted o, lse;                 // like Truth::o and Truth::lse
  std::vector<Strength> strength;  // per row of lse: what o was judged by
};

/// Rows behind a query length accept anything.
/// Domain: any legal Problem with values of its extents. `at_most` bars stronger bounds, for
/// comparison. `wanted`, by row_number(), says which rows are judged at all (empty: all); the
/// others accept anything, and the centre of their LSE is NaN. Error: none that could refuse a
/// correct kernel; the truth's own radius is in the interval.
Acceptance acceptance(const Problem& problem, const Values& values, const PrecisionPath& path,
                      Strength at_most = Strength::quantised, const std::vector<bool>& wanted = {});

/// The same where the truth is at hand.
Acceptance acceptance_around(const Truth& truth, const Problem& problem, const Values& values,
                             const PrecisionPath& path, Strength at_most = Strength::quantised,
                             const std::vector<bool>& wanted = {});

}  // namespace attest
