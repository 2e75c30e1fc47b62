// The sum is kept in two doubles, so that its own error is far below any format's.
#include "properties/projection_bound.hpp"

#include <cmath>

#include "properties/exact_dot.hpp"
#include "properties/judge.hpp"
#include "reference/bound/roundings.hpp"
#include "reference/formats.hpp"

namespace attest {

ProjectedElement projected(const Projection& projection, const PrecisionPath& path, Index b,
                           Index row, Index column) {
  const Tensor& x = projection.x;
  const Tensor& w = projection.w;
  const bool tensor_cores = path.tensor_step != 0;
  ExactDot dot;
  double magnitude = 0;
  for (Index n = 0; n < x.extent[3]; ++n) {
    const double left = x.at(b, 0, row, n), right = w.at(0, 0, n, column);
    dot.add(left, right);
    magnitude += tensor_cores ? bound::aligned(x.format, left) * bound::aligned(x.format, right)
                              : std::fabs(left * right);
  }
  const double terms = dot.terms();
  const double factor = bound::roundings(bound::sum_roundings(path, x.format, terms, terms)) *
                        (1 + bound::kEvaluation);
  double value = dot.value();
  double before = factor * magnitude + terms * smallest_normal(Format::f32) + dot.radius();
  double reach = magnitude * (1 + factor);
  if (projection.bias) {
    const double bias = projection.bias->at(column);
    const double sum = value + bias;
    before += unit_roundoff(Format::f32) * (std::fabs(sum) + before) +
              kUnitDouble * std::fabs(sum) + smallest_normal(Format::f32);
    value = sum;
    reach += std::fabs(bias);
  }
  const Format output = projection.output;
  const double most = std::fabs(value) + before;
  if (reach >= facts(Format::f32).max_finite || most >= facts(output).max_finite) {
    return {value, HUGE_VAL};
  }
  return {value, before + std::fmax(unit_roundoff(output) * most, ulp(output, 0) / 2)};
}

Projection projection_from(const Problem& p, const Values& values) {
  Projection projection;
  projection.output = p.output;
  projection.x = Tensor(p.input, {p.batch, 1, p.seqlen_q, p.head_dim});
  projection.w = Tensor(p.input, {1, 1, p.head_dim, p.seqlen_kv});
  for (Index b = 0; b < p.batch; ++b) {
    for (Index row = 0; row < p.seqlen_q; ++row) {
      for (Index n = 0; n < p.head_dim; ++n) {
        projection.x.set_bits(projection.x.offset(b, 0, row, n),
                              values.q.bits(values.q.offset(b, 0, row, n)));
      }
    }
  }
  for (Index n = 0; n < p.head_dim; ++n) {
    for (Index column = 0; column < p.seqlen_kv; ++column) {
      projection.w.set_bits(projection.w.offset(0, 0, n, column),
                            values.k.bits(values.k.offset(0, 0, column, n)));
    }
  }
  if (!p.bias) return projection;
  projection.bias = Tensor(Format::f32, {1, 1, 1, p.seqlen_kv});
  for (Index column = 0; column < p.seqlen_kv; ++column) {
    const double bias = values.bias->at(column);
    projection.bias->set(column, std::isfinite(bias) ? bias : -0.5);
  }
  return projection;
}

}  // namespace attest
