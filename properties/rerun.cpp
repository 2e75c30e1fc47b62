// Rerun: a subject that promises determinism gives the same bits when asked the same again, in
// whatever order its blocks and warps run.
// Over the reals: trivially. In floating point: only if no sum depends on which thread came first.
// On the emulator nothing runs in another order by itself, so the runs are asked for in orders of
// their own; where there is none to choose, as on a GPU, it is what the hardware makes of it.
// Sees: races, atomics in sums, reads of uninitialised memory (poison differs between the runs).
#include <utility>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"

namespace attest {
namespace {

/// Asks in another order, and returns to that of the check, even if asking throws.
Answer ask_in_order(const Subject& subject, const Problem& problem, const Values& values,
                    Poison poison, std::uint64_t turn) {
  struct Return {
    const Subject& subject;
    ~Return() {
      if (subject.reorder) subject.reorder(0);
    }
  } const to_order_of_check{subject};
  if (subject.reorder) subject.reorder(turn);
  return ask_attention(subject, problem, values, poison);
}

}  // namespace

Verdict rerun(const Subject& subject, const Problem& problem, const Values& values) {
  if (!subject.description.deterministic) return declined("the subject does not promise it");
  const Answer first = ask_attention(subject, problem, values, Poison::nan);
  if (first.instead) return *first.instead;
  const Unmoved unmoved(subject, problem, values);
  Judge judge;
  const std::pair<std::uint64_t, Poison> runs[] = {{1, Poison::small}, {2, Poison::nan}};
  for (const auto& [turn, poison] : runs) {
    const Answer again = ask_in_order(subject, problem, values, poison, turn);
    if (again.instead) return *again.instead;
    const std::string_view what = poison == Poison::nan
                                      ? "a run in another order"
                                      : "a run in another order, over other scratch";
    for_each_row(problem, [&](Index b, Index h, Index i) {
      unmoved.row(judge, first.reply, again.reply, b, h, i, what);
    });
  }
  return judge.verdict("no row to compare");
}

}  // namespace attest
