// Judge: collects comparisons into one Verdict. Every comparison is written so that NaN fails, and
// a judge that compared nothing says vacuous.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "reference/bound/acceptance.hpp"
#include "reference/values.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// Unit roundoff of double, in which the properties themselves compute (IEEE 754).
inline constexpr double kUnitDouble = 0x1p-53;

using Where = std::array<Index, 4>;  // (batch, head, row, column)

class Judge {
 public:
  /// |got - truth| <= bound. A NaN or infinite truth must be met exactly (NaN by NaN). An infinite
  /// bound promises nothing: the element is not judged.
  void within(double got, double truth, double bound, const Where& where, std::string_view what);

  /// elements.accepts(got); where nothing is promised the element is not judged. `error` is
  /// error_of(got), `bound` the radius.
  void accepted(double got, const Accepted& elements, Index flat, const Where& where,
                std::string_view what);

  /// The same bit pattern, NaN payloads included.
  void same_bits(const Tensor& got, const Tensor& reference, const Where& where,
                 std::string_view what);

  /// Anything else that must simply be so.
  void demand(bool so, double got, const Where& where, std::string_view what);

  bool violated() const { return verdict_.outcome == Outcome::violated; }

  /// `nothing` says why there was nothing to judge, when there was nothing.
  Verdict verdict(std::string_view nothing = "no element to judge") const;

 private:
  bool worst(double error, double bound, const Where& where);

  Verdict verdict_;
};

Verdict declined(std::string why);
Verdict faulted(std::string why);
Verdict vacuous(std::string why);

}  // namespace attest
