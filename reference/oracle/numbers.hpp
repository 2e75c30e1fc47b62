// The rows of one head as doubles, for the tiers that compute in doubles. Knows which rows hold
// what is not finite, and keeps that out of every product.
#pragma once
#include <Eigen/Core>
#include <optional>
#include <vector>

#include "reference/values.hpp"

namespace attest::oracle {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The first `count` rows of a head as doubles, times their scales; exact: an i8 or smaller has 8
/// bits, a scale 24. Rows that hold what is not finite are zeros here, and marked.
struct Numbers {
  Matrix rows;
  std::vector<double> norm;  // no less than the 2-norm of each row
  std::vector<bool> special;
  bool any_special = false;
};
Numbers numbers_of(const Tensor& tensor, const std::optional<Tensor>& scales, Index b, Index h,
                   Index count);

/// Whether t / softcap, softcap times tanh, and their errors stay far from the ends of double.
inline bool softcap_is_plain(const Problem& problem) {
  return problem.softcap == 0 || (problem.softcap > 0x1p-200 && problem.softcap < 0x1p200);
}

}  // namespace attest::oracle
