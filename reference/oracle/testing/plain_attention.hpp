// Attention in double with Eigen and nothing proven: what the benchmarks of this folder measure
// against.
#pragma once
#include <Eigen/Core>

#include "reference/values.hpp"

namespace attest {

using PlainMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline PlainMatrix matrix_of(const Tensor& tensor) {
  PlainMatrix matrix(tensor.extent[2], tensor.extent[3]);
  for (Index i = 0; i < tensor.count(); ++i) matrix.data()[i] = tensor.at(i);
  return matrix;
}

inline PlainMatrix plain_attention(const PlainMatrix& q, const PlainMatrix& k, const PlainMatrix& v,
                                   double scale) {
  PlainMatrix s = scale * (q * k.transpose());
  const Eigen::VectorXd largest = s.rowwise().maxCoeff();
  s = (s.colwise() - largest).array().exp().matrix();
  const Eigen::VectorXd sums = s.rowwise().sum();
  return sums.cwiseInverse().asDiagonal() * (s * v);
}

}  // namespace attest
