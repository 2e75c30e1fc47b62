// What is kept of the errors of one cell, that is outputs of one class of Problems, format and
// fill: enough to read, to store and to compare with another run of the same cell. It knows neither
// bounds nor kernels, and judges nothing.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reference/statistics/directions.hpp"
#include "reference/values.hpp"

namespace attest {

/// Of absolute values, each the least that no smaller share of them exceeds.
struct Quantiles {
  double median = 0, ninth_decile = 0, last_percentile = 0, largest = 0;
  bool operator==(const Quantiles&) const = default;
};

/// A mean over rows and its standard error, from how much rows differ; 0 with less than two rows.
struct RowMean {
  double mean = 0, error = 0;
  bool operator==(const RowMean&) const = default;
};

/// One number per row, standardised by the model (likely_errors.hpp): 0 and 1 are what is due.
struct Standardised {
  double total = 0;  // Z: the sum over rows divided by the root of their number
  double mean = 0, deviation = 0, largest = 0;
  bool operator==(const Standardised&) const = default;
};

/// A test of `found` that went beyond its limit: "inward" and the other directions, "row",
/// "element" or "chi_square".
struct ZAlarm {
  std::string test;
  double found = 0, limit = 0;
  bool operator==(const ZAlarm&) const = default;
};

/// An output against the model of its errors, where that is calibrated. Directions and biases are
/// those of directions.hpp; README.md says what the tests are.
struct ZSummary {
  Index rows = 0, elements = 0;
  double chi_square = 0, chi_square_error = 0;  // mean z^2, and its standard error
  double largest = 0;                           // |z|
  Standardised inward = {}, offset = {}, scattered = {}, sharper = {}, others = {};
  std::vector<ZAlarm> alarms = {};  // empty: nothing is wrong that could be seen
  double false_alarm = 0;           // how likely a correct kernel is to have one
  // What would have raised an alarm nine times in ten: the least bias of each kind (infinity: none
  // would), and by which factor all errors would have to be larger.
  std::array<double, statistics::kBiases> least_bias{};
  double least_growth = 0;
  bool operator==(const ZSummary&) const = default;
};

/// A row's unit is its ulp: 2 u of the output format times the root mean square of the row's truth.
/// (An element's own ulp vanishes where the truth happens to, and takes every mean with it.)
struct ErrorSummary {
  Index rows = 0, elements = 0;  // that were judged
  Index unjudged = 0;            // elements: the truth or the output is not finite
  Index correct = 0;             // elements that are the truth, rounded
  Quantiles ulp;                 // |error| in ulps of the output format at the truth
  Quantiles relative;            // |error / truth| where the truth is not 0
  RowMean offset;                // signed error in row ulps
  RowMean inward;                // the same times the sign of the truth: below 0 is towards zero
  RowMean square;                // squared error in row ulps
  double margin = 0;             // largest error / bound
  std::optional<ZSummary> z;
  std::string uncalibrated;  // why there is no z
  bool operator==(const ErrorSummary&) const = default;
};

/// Gathers outputs of a cell, in memory proportional to their elements.
class ErrorTally {
 public:
  /// Rows behind a query length, and rows that see no key, are left out. `truth` is like Truth::o;
  /// `margin` is the caller's, of this output.
  /// Domain: o with the extents of the problem's output, truth with as many numbers.
  /// Special: elements that are not finite are counted as unjudged and enter nothing.
  void add(const Problem& problem, const Values& values, const Tensor& o,
           const std::vector<double>& truth, double margin);

  /// With no z.
  ErrorSummary summary() const;

 private:
  ErrorSummary counted_;
  std::vector<double> ulp_, relative_;
  std::vector<double> row_offset_, row_inward_, row_square_;
};

/// Mean and standard error of numbers, one per row.
RowMean row_mean(const std::vector<double>& rows);

}  // namespace attest
