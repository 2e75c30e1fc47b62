// The letters and steps are those of bound/README.md.
#include "reference/bound/inner_product.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/roundings.hpp"

namespace attest::bound {
namespace {

/// Groups of tensor_step columns, each one step of tensor cores or more.
double tensor_error(const Row& row, const Rows& q_rows, const Rows& k_rows, Index j) {
  const Problem& p = row.problem;
  const Step step = step_of(p.input);
  const double *q = q_rows.row(row.i), *q_sizes = q_rows.sizes_of(row.i);
  const double *k = k_rows.row(j), *k_sizes = k_rows.sizes_of(j);
  double sum = 0, error = 0;
  for (Index first = 0; first < p.head_dim; first += row.path.tensor_step) {
    const Index last = std::min(p.head_dim, first + row.path.tensor_step);
    double largest = 0, group = 0;
    for (Index c = first; c < last; ++c) {
      group += q[c] * k[c];
      largest = std::max(largest, q_sizes[c] * k_sizes[c]);
    }
    if (largest == 0) continue;
    error += step.align * std::max(std::fabs(sum) + error, largest);
    sum += group;
    error += step.truncate * (std::fabs(sum) + error);
  }
  return error;
}

/// Column by column; products are rounded by themselves unless they are fused, or those of two
/// short numbers, which q is no longer when it was multiplied by the scale.
double chain_error(const Row& row, const double* q, const double* k) {
  double sum = 0, error = 0;
  for (Index c = 0; c < row.problem.head_dim; ++c) {
    sum += q[c] * k[c];
    error += kU * std::fabs(q[c] * k[c]);
    if (c > 0) error += kU * (std::fabs(sum) + error);
  }
  return error;
}

}  // namespace

InnerProduct inner_product(const Row& row, const Rows& q, const Rows& k, Index j, bool follow) {
  const Problem& p = row.problem;
  const bool tensor = row.path.tensor_step != 0;
  const double *query = q.row(row.i), *key = k.row(j);
  const double *query_sizes = q.sizes_of(row.i), *key_sizes = k.sizes_of(j);
  InnerProduct product;
  for (Index c = 0; c < p.head_dim; ++c) {
    product.sum += query[c] * key[c];
    product.magnitude += query_sizes[c] * key_sizes[c];
  }
  const double factors = kScaleRoundings + (row.values.k_scales ? kCacheScaleRoundings : 0);
  if (!follow || !row.path.in_order || row.path.tensor_step < 0) {
    const double head_dim = static_cast<double>(p.head_dim);
    const double first = row.values.bias ? 1 : 0;  // which the sum may begin with
    const double sums = sum_roundings(row.path, p.input, head_dim, head_dim) + first;
    product.error = product.magnitude * roundings(sums + factors);
    return product;
  }
  // Into tensor cores q and k go as they are, so that scales meet the sum and not its terms.
  const double error = tensor ? tensor_error(row, q, k, j) : chain_error(row, query, key);
  const double scaled = tensor ? std::fabs(product.sum) : product.magnitude;
  product.error = error + roundings(factors) * (scaled + error);
  return product;
}

}  // namespace attest::bound
