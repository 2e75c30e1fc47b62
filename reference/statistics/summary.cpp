// Means, quantiles and counts of errors. See the header for the units.
#include "reference/statistics/summary.hpp"

#include <algorithm>
#include <cmath>

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
    return values[static_cast<std::size_t>(std::max(0.0, rank))];
  };
  return {at(0.5), at(0.9), at(0.99), values.back()};
}

bool sees_a_key(const Problem& p, const Values& values, Index b, Index i) {
  for (Index j = 0; j < key_length(p, b); ++j) {
    if (visible(p, values, b, i, j)) return true;
  }
  return false;
}

}  // namespace

RowMean row_mean(const std::vector<double>& rows) {
  if (rows.empty()) return {};
  const auto count = static_cast<double>(rows.size());
  double sum = 0, squares = 0;
  for (double row : rows) sum += row;
  const double mean = sum / count;
  for (double row : rows) squares += (row - mean) * (row - mean);
  if (rows.size() < 2) return {mean, 0};
  return {mean, std::sqrt(squares / (count - 1) / count)};
}

void ErrorTally::add(const Problem& p, const Values& values, const Tensor& o,
                     const std::vector<double>& truth, double margin) {
  counted_.margin = std::max(counted_.margin, margin);
  for (Index b = 0; b < p.batch; ++b) {
    for (Index i = 0; i < query_length(p, b); ++i) {
      if (!sees_a_key(p, values, b, i)) continue;
      for (Index h = 0; h < p.num_heads_q; ++h) {
        double size = 0, offset = 0, inward = 0, square = 0, count = 0;
        for (Index c = 0; c < p.head_dim_v; ++c) {
          const Index at = o.offset(b, h, i, c);
          const double true_o = truth[static_cast<std::size_t>(at)], got = o.at(at);
          if (!std::isfinite(true_o) || !std::isfinite(got)) {
            ++counted_.unjudged;
            continue;
          }
          const double error = got - true_o;
          if (got == rounded(p.output, true_o)) ++counted_.correct;
          ulp_.push_back(std::fabs(error) / ulp(p.output, true_o));
          if (true_o != 0) relative_.push_back(std::fabs(error / true_o));
          ++counted_.elements;
          ++count;
          size += true_o * true_o;
          offset += error;
          if (true_o != 0) inward += true_o > 0 ? error : -error;
          square += error * error;
        }
        if (size == 0) continue;
        ++counted_.rows;
        const double unit = 2 * unit_roundoff(p.output) * std::sqrt(size / count);
        row_offset_.push_back(offset / count / unit);
        row_inward_.push_back(inward / count / unit);
        row_square_.push_back(square / count / unit / unit);
      }
    }
  }
}

ErrorSummary ErrorTally::summary() const {
  ErrorSummary summary = counted_;
  summary.ulp = quantiles(ulp_);
  summary.relative = quantiles(relative_);
  summary.offset = row_mean(row_offset_);
  summary.inward = row_mean(row_inward_);
  summary.square = row_mean(row_square_);
  return summary;
}

}  // namespace attest
