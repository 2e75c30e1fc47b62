// The exact oracle. `attend` is the definition of attention, one step after another; everything
// else here brings it numbers. It shares no code with any kernel.
#include "reference/oracle/exact.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>

namespace attest {
namespace {

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

Place place_of(const Problem& problem, const Values& values, Index b, Index h, Index i) {
  Place place{b, h, i, {}};
  for (Index j = 0; j < key_length(problem, b); ++j) {
    if (!visible(problem, values, b, i, j)) continue;
    if (values.bias && std::isinf(values.bias->at(b, h, i, j)) && values.bias->at(b, h, i, j) < 0) {
      continue;
    }
    place.keys.push_back(j);
  }
  return place;
}

/// The logit of one visible key, from its inner product: scale, softcap, bias, ALiBi, in this
/// order.
template <class Scalar>
Scalar logit(const Problem& problem, const Values& values, const Place& at, Index j,
             const Scalar& inner_product) {
  Scalar s = Scalar(problem.scale) * inner_product;
  if (problem.softcap > 0) {
    const Scalar cap = problem.softcap;
    s = cap * tanh(Scalar(s / cap));
  }
  if (values.bias) s += Scalar(values.bias->at(at.b, at.h, at.i, j));
  if (values.slopes) {
    const Index distance = std::abs(at.i + diagonal(problem, at.b) - j);
    s -= Scalar(values.slopes->at(at.h)) * Scalar(distance);
  }
  return s;
}

/// The definition: o = softmax(s) V over the visible keys, lse = log of the sum of exp(s).
template <class Scalar>
struct Attended {
  Vector<Scalar> o;
  Scalar lse;
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
    for (Index c = 0; c < problem.depth; ++c) {
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
  Attended<Scalar> result{Vector<Scalar>::Zero(problem.v_depth), m + log(l)};
  for (Index n = 0; n < count; ++n) {
    for (Index c = 0; c < problem.v_depth; ++c) {
      add_product(result.o(c), w(n), v(at.keys[n], c), product);
    }
  }
  for (Scalar& element : result.o) element /= l;
  return result;
}

/// What a row that sees no key holds is a convention of the Problem.
template <class Scalar>
Attended<Scalar> empty_row(const Problem& problem, const Values& values, Index h) {
  const double fill =
      problem.empty_row == EmptyRow::nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  const double lse = values.sinks ? values.sinks->at(h) : -std::numeric_limits<double>::infinity();
  return {Vector<Scalar>::Constant(problem.v_depth, Scalar(fill)), Scalar(lse)};
}

/// Calls visit(place, attended) for every row below its query length, lse in the Problem's base.
template <class Scalar, class Visit>
void for_each_row(const Problem& problem, const Values& values, const Visit& visit) {
  const Index group = problem.query_heads / problem.kv_heads;
  const Scalar ln2 = log(Scalar(2));
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
      const auto k = slice<Scalar>(values.k, values.k_scales, b, kv_head, key_length(problem, b));
      const auto v = slice<Scalar>(values.v, values.v_scales, b, kv_head, key_length(problem, b));
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        const auto q = slice<Scalar>(values.q, {}, b, h, query_length(problem, b));
        for (Index i = 0; i < query_length(problem, b); ++i) {
          const Place place = place_of(problem, values, b, h, i);
          Attended<Scalar> row = place.keys.empty()
                                     ? empty_row<Scalar>(problem, values, h)
                                     : attend<Scalar>(problem, values, place, q.row(i), k, v);
          if (problem.lse_base == LogBase::two) row.lse /= ln2;
          visit(place, row);
        }
      }
    }
  }
}

std::size_t row_number(const Problem& problem, const Place& at) {
  return static_cast<std::size_t>((at.b * problem.query_heads + at.h) * problem.queries + at.i);
}

/// The nearest double, and the nearest double to what that leaves.
template <class Scalar>
void split(const Scalar& number, double& head, double& tail) {
  head = number.template convert_to<double>();
  tail = std::isfinite(head) ? Scalar(number - Scalar(head)).template convert_to<double>() : 0.0;
}

template <class Scalar>
Truth truth(const Problem& problem, const Values& values) {
  Truth result;
  result.extent = {problem.batch, problem.query_heads, problem.queries, problem.v_depth};
  const auto rows = static_cast<std::size_t>(problem.batch * problem.query_heads * problem.queries);
  const auto width = static_cast<std::size_t>(problem.v_depth);
  result.lse.resize(rows);
  result.lse_tail.resize(rows);
  result.o.resize(rows * width);
  result.o_tail.resize(rows * width);
  for_each_row<Scalar>(problem, values, [&](const Place& at, const Attended<Scalar>& row) {
    const std::size_t number = row_number(problem, at);
    split(row.lse, result.lse[number], result.lse_tail[number]);
    for (std::size_t c = 0; c < width; ++c) {
      split(row.o(static_cast<Index>(c)), result.o[number * width + c],
            result.o_tail[number * width + c]);
    }
  });
  return result;
}

// Below this part of its terms an element is rounding noise of a sum that cancels entirely.
constexpr double kCancelled = 1e-45;  // five digits above the 50 that the shorter type carries

int agreeing_digits(const Decimal<50>& shorter, const Decimal<100>& longer, double unit) {
  const Decimal<100> a(shorter);
  if (isnan(a) || isnan(longer)) return isnan(a) && isnan(longer) ? 50 : 0;
  if (a == longer) return 50;
  if (isinf(a) || isinf(longer)) return 0;
  Decimal<100> measure = abs(longer);
  if (measure < Decimal<100>(kCancelled) * Decimal<100>(unit)) measure = unit;
  const Decimal<100> digits = -log10(Decimal<100>(abs(Decimal<100>(a - longer)) / measure));
  return std::clamp(static_cast<int>(floor(digits).convert_to<double>()), 0, 50);
}

double largest_visible_v(const Values& values, const Problem& problem, const Place& at, Index c) {
  const Index kv_head = at.h / (problem.query_heads / problem.kv_heads);
  double largest = 0;
  for (Index j : at.keys) largest = std::max(largest, std::fabs(values.v.at(at.b, kv_head, j, c)));
  return largest;
}

}  // namespace

Truth exact_attention(const Problem& problem, const Values& values, Digits digits) {
  switch (digits) {
    case Digits::fifty:
      return truth<Decimal<50>>(problem, values);
    case Digits::hundred:
      return truth<Decimal<100>>(problem, values);
  }
  return {};
}

int certified_digits(const Problem& problem, const Values& values) {
  std::vector<Attended<Decimal<50>>> rows;
  for_each_row<Decimal<50>>(problem, values,
                            [&](const Place&, const auto& row) { rows.push_back(row); });
  int digits = 50;
  std::size_t next = 0;
  for_each_row<Decimal<100>>(problem, values, [&](const Place& at, const auto& longer) {
    const Attended<Decimal<50>>& shorter = rows[next++];
    digits = std::min(digits, agreeing_digits(shorter.lse, longer.lse, 1.0));
    for (Index c = 0; c < problem.v_depth; ++c) {
      const double unit = largest_visible_v(values, problem, at, c);
      digits = std::min(digits, agreeing_digits(shorter.o(c), longer.o(c), unit));
    }
  });
  return digits;
}

}  // namespace attest
