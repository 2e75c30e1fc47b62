// Projection agreement: Y = X W, accumulated in f32 in any order, lies within
//   gamma_n sum|x w| + n 2^-126 + one rounding to the output format
// of the exact sum, n the inner extent and gamma_n = n u / (1 - n u), u = 2^-24 (Higham, Accuracy
// and Stability, 2nd ed., 3.1); n 2^-126 covers partial sums below f32's normal range, flushed or
// not. X is q of head 0, W is k of batch entry 0 and head 0, transposed.
// Over the reals: it is the definition.
// Sees: dropped or repeated columns, tails of tiles, transposed W, sums in too narrow a format.
#include <algorithm>
#include <cmath>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/exact_dot.hpp"
#include "properties/judge.hpp"
#include "reference/formats.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

Projection projection_from(const Problem& p, const Values& values) {
  Projection projection;
  projection.output = p.output;
  projection.x = Tensor(p.input, {p.batch, 1, p.queries, p.depth});
  projection.w = Tensor(p.input, {1, 1, p.depth, p.keys});
  for (Index b = 0; b < p.batch; ++b) {
    for (Index row = 0; row < p.queries; ++row) {
      for (Index n = 0; n < p.depth; ++n) {
        projection.x.set_bits(projection.x.offset(b, 0, row, n),
                              values.q.bits(values.q.offset(b, 0, row, n)));
      }
    }
  }
  for (Index n = 0; n < p.depth; ++n) {
    for (Index column = 0; column < p.keys; ++column) {
      projection.w.set_bits(projection.w.offset(0, 0, n, column),
                            values.k.bits(values.k.offset(0, 0, column, n)));
    }
  }
  return projection;
}

/// What may be between Y and the exact sum; infinity where f32 or the output may overflow.
double bound_of(const ExactDot& dot, Format output) {
  const double nu = dot.terms() * unit_roundoff(Format::f32);
  const double gamma = nu / (1 - nu);
  const double before =
      gamma * dot.absolute() + dot.terms() * smallest_normal(Format::f32) + dot.radius();
  const double reach = std::abs(dot.value()) + before;
  if (dot.absolute() * (1 + gamma) >= facts(Format::f32).max_finite) return HUGE_VAL;
  if (reach >= facts(output).max_finite) return HUGE_VAL;
  return before + std::fmax(unit_roundoff(output) * reach, ulp(output, 0) / 2);
}

}  // namespace

Verdict projection_agreement(const Subject& subject, const Problem& problem, const Values& values) {
  // What attention never forms, Y of T x T, may be too large where q and k are not.
  if (problem.batch * problem.queries > kElementsMax / std::max<Index>(problem.keys, 1)) {
    Verdict verdict;
    verdict.why = "a product of that many rows and columns is more than a case may hold";
    return verdict;
  }
  const Projection projection = projection_from(problem, values);
  const Answer answer = ask_projection(subject, problem, projection);
  if (answer.instead) return *answer.instead;
  const Tensor& y = answer.reply.y;
  Judge judge;
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index row = 0; row < problem.queries; ++row) {
      for (Index column = 0; column < problem.keys; ++column) {
        ExactDot dot;
        for (Index n = 0; n < problem.depth; ++n) {
          dot.add(projection.x.at(b, 0, row, n), projection.w.at(0, 0, n, column));
        }
        judge.within(y.at(b, 0, row, column), dot.value(), bound_of(dot, problem.output),
                     {b, 0, row, column}, "y");
      }
    }
  }
  return judge.verdict("an empty product");
}

}  // namespace attest
