// The comparison with the oracle that prefill and decode share.
#include "properties/agreement.hpp"

#include "properties/ask.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {

Verdict judge_agreement(const Subject& subject, Operation operation, const Problem& problem,
                        const Values& values) {
  const Answer answer = ask(subject, operation, problem, values);
  if (answer.instead) return *answer.instead;

  const Truth truth = exact_attention(problem, values);
  const Bounds bounds =
      order_free_bounds(problem, values, precision_of(subject, operation, problem));
  const Tensor& o = answer.reply.o;
  const Tensor& lse = answer.reply.lse;
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    for (Index c = 0; c < problem.v_depth; ++c) {
      const auto flat = static_cast<std::size_t>(o.offset(b, h, i, c));
      judge.within(o.at(b, h, i, c), truth.o[flat], bounds.o[flat], {b, h, i, c}, "o");
    }
    const auto flat = static_cast<std::size_t>(lse.offset(b, h, i, 0));
    judge.within(lse.at(b, h, i, 0), truth.lse[flat], bounds.lse[flat], {b, h, i, 0}, "lse");
  });
  Verdict verdict = judge.verdict("no row to judge, or none with a finite bound");
  if (verdict.outcome == Outcome::holds) {
    verdict.power = measure_power(problem, values, truth, bounds);
  }
  return verdict;
}

}  // namespace attest
