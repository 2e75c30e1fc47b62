// Rerun: a subject that promises determinism gives the same bits when asked the same again.
// Over the reals: trivially. In floating point: only if no sum depends on which thread came first.
// Sees: races, atomics in sums, reads of uninitialised memory (poison differs between the runs).
#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"

namespace attest {

Verdict rerun(const Subject& subject, const Problem& problem, const Values& values) {
  if (!subject.description.deterministic) return declined("the subject does not promise it");
  const Answer first = ask_attention(subject, problem, values, Poison::nan);
  if (first.instead) return *first.instead;
  const Answer second = ask_attention(subject, problem, values, Poison::small);
  if (second.instead) return *second.instead;
  const Unmoved unmoved(subject, problem, values);
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    unmoved.row(judge, first.reply, second.reply, b, h, i, "the second run");
  });
  return judge.verdict("no row to compare");
}

}  // namespace attest
