// Projection agreement: Y = X W + bias, accumulated in f32 in any order, lies within what
// projection_bound.hpp derives of the exact sum. X is q of head 0, W is k of batch entry 0 and head
// 0, transposed; the bias is that of row 0 of head 0, where it is finite.
// Over the reals: it is the definition.
// Sees: dropped or repeated columns, tails of tiles, transposed W, sums in too narrow a format.
#include <algorithm>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/projection_bound.hpp"
#include "reference/validity.hpp"

namespace attest {
Verdict projection_agreement(const Subject& subject, const Problem& problem, const Values& values) {
  if (!offers(subject, Operation::projection)) {
    return *refusal(subject, Operation::projection, problem);
  }
  // What attention never forms, Y of T x T, may be too large where q and k are not.
  if (problem.batch * problem.seqlen_q > kElementsMax / std::max<Index>(problem.seqlen_kv, 1)) {
    Verdict verdict;
    verdict.why = "a product of that many rows and columns is more than a case may hold";
    return verdict;
  }
  if (cache_format(problem) != problem.input) return vacuous("W is k, in the format of the inputs");
  const Projection projection = projection_from(problem, values);
  const Answer answer = ask_projection(subject, problem, projection);
  if (answer.instead) return *answer.instead;
  const PrecisionPath path = precision_of(subject, Operation::projection, problem);
  const Tensor& y = answer.reply.y;
  Judge judge;
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index row = 0; row < problem.seqlen_q; ++row) {
      for (Index column = 0; column < problem.seqlen_kv; ++column) {
        const ProjectedElement element = projected(projection, path, b, row, column);
        judge.within(y.at(b, 0, row, column), element.value, element.bound, {b, 0, row, column},
                     "y");
      }
    }
  }
  return judge.verdict("an empty product");
}

}  // namespace attest
