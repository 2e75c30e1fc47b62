// Outputs against the model of their errors: z of elements, of rows along each direction and of
// all of them, with alarms whose rates are stated. README.md, "Tests". It knows no truth but the
// model's and says nothing where that is not calibrated.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reference/statistics/likely_errors.hpp"
#include "reference/statistics/summary.hpp"

namespace attest {

/// Gathers outputs of a cell, in memory proportional to their rows.
class ZTally {
 public:
  /// Domain: o with the extents of the problem's output; `tensor_step` as likely_errors has it.
  /// Special: rows with an element that is not finite are left out.
  void add(const Problem& problem, const Values& values, const PrecisionPath& path, const Tensor& o,
           Index tensor_step = 0);
  /// The same for a model that is at hand.
  void add(const Problem& problem, const PrecisionPath& path, const Tensor& o,
           const LikelyErrors& likely);

  /// Of the rows that the model is calibrated for, if there are any; else `why_not` says why.
  std::optional<ZSummary> summary() const;
  std::string why_not() const;

 private:
  struct Along {
    std::vector<double> z;                               // per row
    std::array<double, statistics::kBiases> response{};  // sum over rows, in deviations
  };
  void add_row(const Problem& problem, const Tensor& o, const LikelyErrors& likely,
               std::size_t row);
  Standardised standardised(const Along& along) const;
  double deviation(const Along& along) const;
  void find_alarms(ZSummary& z) const;
  void find_power(ZSummary& z) const;

  Index rows_ = 0, elements_ = 0, seen_rows_ = 0;
  double largest_ = 0;
  std::vector<double> squares_;  // mean z^2 per row
  std::array<Along, statistics::kDirections> along_;
  std::array<double, statistics::kBiases> common_{};  // variances of biases that a path allows
  std::string reason_;
};

}  // namespace attest
