// `attend` is the definition of attention, one step after another; everything else here brings it
// numbers. A template over MPFR numbers, included by the exact oracle and by the certified one's
// last resort alone. It shares no code with any kernel.
#pragma once
#include <Eigen/Core>
#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/oracle/exact.hpp"

namespace attest::oracle {

namespace mp = boost::multiprecision;
// Without expression templates, and with MPFR underneath: the quickest found, notes/0001.
template <int kDigits>
using Decimal = mp::number<mp::mpfr_float_backend<kDigits>, mp::et_off>;
template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Scalar>
using Vector = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;

/// sum += a * b, without the allocation that a temporary would cost; `product` is scratch.
template <class Scalar>
void add_product(Scalar& sum, const Scalar& a, const Scalar& b, Scalar& product) {
  using mp::default_ops::eval_multiply;
  eval_multiply(product.backend(), a.backend(), b.backend());
  sum += product;
}

/// Rows of one (batch, head) slice as exact numbers, times their scales.
template <class Scalar>
Matrix<Scalar> slice(const Tensor& tensor, const std::optional<Tensor>& scales, Index b, Index h,
                     Index rows) {
  Matrix<Scalar> matrix(rows, tensor.extent[3]);
  for (Index row = 0; row < rows; ++row) {
    const Scalar scale = scale_at(scales, b, h, row);
    for (Index column = 0; column < tensor.extent[3]; ++column) {
      matrix(row, column) = Scalar(tensor.at(b, h, row, column)) * scale;
    }
  }
  return matrix;
}

/// One query row: where it stands, and what it may see.
struct Place {
  Index b, h, i;
  std::vector<Index> keys;  // the visible ones, in order
};

inline Place place_of(const Problem& problem, const Values& values, Index b, Index h, Index i) {
  Place place{b, h, i, {}};
  for (Index j = 0; j < key_length(problem, b); ++j) {
    if (weighed(problem, values, b, h, i, j)) place.keys.push_back(j);
  }
  return place;
}

/// The logit of one visible key, from its inner product: scale, softcap, bias, ALiBi, in this
/// order.
template <class Scalar>
Scalar logit(const Problem& problem, const Values& values, const Place& at, Index j,
             const Scalar& inner_product) {
  Scalar s = Scalar(problem.softmax_scale) * inner_product;
  if (problem.softcap > 0) {
    const Scalar cap = problem.softcap;
    s = cap * tanh(Scalar(s / cap));
  }
  if (values.bias) s += Scalar(values.bias->at(at.b, at.h, at.i, j));
  if (values.alibi_slopes) {
    const Index distance = std::abs(at.i + diagonal(problem, at.b) - j);
    s -= Scalar(values.alibi_slopes->at(at.h)) * Scalar(distance);
  }
  return s;
}

/// The definition: o = softmax(s) V over the visible keys, lse = log of the sum of exp(s).
template <class Scalar>
struct Attended {
  Vector<Scalar> o;
  Scalar lse;
  // What led there: logits of the visible keys, the largest of them, weights and their sum.
  Vector<Scalar> s = {}, w = {};
  Scalar m = 0, l = 0;
};

template <class Scalar, class QueryRow>
Attended<Scalar> attend(const Problem& problem, const Values& values, const Place& at,
                        const QueryRow& q, const Matrix<Scalar>& k, const Matrix<Scalar>& v) {
  const auto count = static_cast<Index>(at.keys.size());
  const Scalar infinity = std::numeric_limits<double>::infinity();
  const Scalar sink = values.sinks ? Scalar(values.sinks->at(at.h)) : Scalar(-infinity);
  Scalar product;

  // 1. Scores: the inner product of the query with every visible key, made a logit.
  Vector<Scalar> s(count);
  for (Index n = 0; n < count; ++n) {
    Scalar sum = 0;
    for (Index c = 0; c < problem.head_dim; ++c) {
      add_product(sum, q(c), k(at.keys[n], c), product);
    }
    s(n) = logit(problem, values, at, at.keys[n], sum);
  }

  // 2. The largest of them, the sink included. Any shift would do; this one keeps exp in range.
  Scalar m = sink;
  for (const Scalar& score : s) {
    if (score > m) m = score;  // a NaN is not larger, and shows in its weight
  }

  // 3. Weights, not yet divided by their sum.
  Vector<Scalar> w(count);
  for (Index n = 0; n < count; ++n) w(n) = exp(Scalar(s(n) - m));

  // 4. Their sum; a sink joins here and nowhere else.
  Scalar l = values.sinks ? exp(Scalar(sink - m)) : Scalar(0);
  for (const Scalar& weight : w) l += weight;

  // 5. The weighted mean of the values, and the logarithm of the sum.
  Attended<Scalar> result{Vector<Scalar>::Zero(problem.head_dim_v), m + log(l)};
  for (Index n = 0; n < count; ++n) {
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      add_product(result.o(c), w(n), v(at.keys[n], c), product);
    }
  }
  for (Scalar& element : result.o) element /= l;
  result.s = std::move(s);
  result.w = std::move(w);
  result.m = m;
  result.l = l;
  return result;
}

/// What a row that sees no key holds is a convention of the Problem.
template <class Scalar>
Attended<Scalar> empty_row(const Problem& problem, const Values& values, Index h) {
  const double fill =
      problem.empty_row == EmptyRow::nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  const double lse = values.sinks ? values.sinks->at(h) : lse_without_keys(problem);
  return {Vector<Scalar>::Constant(problem.head_dim_v, Scalar(fill)), Scalar(lse)};
}

/// The nearest double, and the nearest double to what that leaves.
template <class Scalar>
void split(const Scalar& number, double& head, double& tail) {
  head = number.template convert_to<double>();
  tail = std::isfinite(head) ? Scalar(number - Scalar(head)).template convert_to<double>() : 0.0;
}

}  // namespace attest::oracle
