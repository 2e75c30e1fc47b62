// The comparison with the oracle that prefill and decode share.
#include "properties/agreement.hpp"

#include "properties/ask.hpp"
#include "properties/diagnosis.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {

Verdict judge_agreement(const Subject& subject, Operation operation, const Problem& problem,
                        const Values& values) {
  const Answer answer = ask(subject, operation, problem, values);
  if (answer.instead) return *answer.instead;

  const PrecisionPath path = precision_of(subject, operation, problem);
  const Acceptance accepted = acceptance(problem, values, path);
  const Tensor& o = answer.reply.o;
  const Tensor& lse = answer.reply.lse;
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    for (Index c = 0; c < problem.v_depth; ++c) {
      judge.accepted(o.at(b, h, i, c), accepted.o, o.offset(b, h, i, c), {b, h, i, c}, "o");
    }
    judge.accepted(lse.at(b, h, i, 0), accepted.lse, lse.offset(b, h, i, 0), {b, h, i, 0}, "lse");
  });
  Verdict verdict = judge.verdict("no row to judge, or none with a finite bound");
  if (verdict.outcome == Outcome::holds) {
    verdict.power = measure_power(problem, values, path, accepted);
  }
  return verdict;
}

std::string explain_agreement(const Subject& subject, Operation operation, const Problem& problem,
                              const Values& values) {
  const Answer answer = ask(subject, operation, problem, values);
  if (answer.instead) return {};
  const PrecisionPath path = precision_of(subject, operation, problem);
  std::string text;
  for (const std::string& remark :
       diagnose(problem, values, path, acceptance(problem, values, path),
                {&answer.reply.o, &answer.reply.lse})) {
    text += (text.empty() ? "" : "; ") + remark;
  }
  return text;
}

}  // namespace attest
