// The comparison with the oracle that prefill and decode share.
#include "properties/agreement.hpp"

#include "properties/ask.hpp"
#include "properties/diagnosis.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {
namespace {

Verdict judged(const Problem& problem, const Reply& reply, const Acceptance& accepted) {
  const Tensor& o = reply.o;
  const Tensor& lse = reply.lse;
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      judge.accepted(o.at(b, h, i, c), accepted.o, o.offset(b, h, i, c), {b, h, i, c}, "o");
    }
    if (!wants_lse(problem)) return;
    judge.accepted(lse.at(b, h, i, 0), accepted.lse, lse.offset(b, h, i, 0), {b, h, i, 0}, "lse");
  });
  return judge.verdict("no row to judge, or none with a finite bound");
}

/// The weakest bound that refuses a reply that was refused: that of the order of the sums is
/// narrower, and what it alone refuses is another, smaller error.
std::string refused_by(const Problem& problem, const Values& values, const Reply& reply,
                       const PrecisionPath& path) {
  Strength least = Strength::order_free;
  for (; least != Strength::quantised; least = Strength(static_cast<int>(least) + 1)) {
    const Acceptance accepted = acceptance(problem, values, path, least);
    if (judged(problem, reply, accepted).outcome == Outcome::violated) break;
  }
  return std::string(kStrengthNames[static_cast<std::size_t>(least)]);
}

}  // namespace

Verdict judge_agreement(const Subject& subject, Operation operation, const Problem& problem,
                        const Values& values) {
  const Answer answer = ask(subject, operation, problem, values);
  if (answer.instead) return *answer.instead;

  const PrecisionPath path = precision_of(subject, operation, problem);
  const Acceptance accepted = acceptance(problem, values, path);
  Verdict verdict = judged(problem, answer.reply, accepted);
  if (verdict.outcome == Outcome::holds) measure_power(problem, values, path, accepted, verdict);
  if (verdict.outcome == Outcome::vacuous && verdict.unbounded > 0) verdict.sight = Sight::blind;
  if (verdict.outcome == Outcome::violated) {
    verdict.refused_by = refused_by(problem, values, answer.reply, path);
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
                {&answer.reply.o, wants_lse(problem) ? &answer.reply.lse : nullptr})) {
    text += (text.empty() ? "" : "; ") + remark;
  }
  return text;
}

}  // namespace attest
