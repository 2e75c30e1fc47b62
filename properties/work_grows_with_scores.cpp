// Work grows with the scores: with twice the keys a prefill does no more than about twice the
// arithmetic, and with a causal sequence twice as long about four times; never less than the
// formula needs.
// Why: each visible (query, key) takes 2 head_dim - 1 operations for its score and 2 head_dim_v for
// its share of O (less one addition per row and column). All else is per key, per row, or constant.
// So work is a + b keys for given queries, and a + b T + c T^2 for a sequence, whether the masked
// half is computed or skipped. Growth by the next power is told apart as costs.hpp says. What fixes
// the lower end is what exact attention needs; integer operations count too, since products of
// quantised numbers are such.
// Sees: scores computed anew for every tile or every row, quadratic scans for a maximum, prefixes
// summed from the start each time; keys that are skipped though they are visible.
#include <string>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/costs.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

/// Whether all that is seen follows from the extents.
bool is_plain(const Problem& p) {
  return p.window_left == kUnbounded && p.window_right == kUnbounded && !p.mask && !p.bias &&
         p.seqlens_q.empty() && p.seqlens_kv.empty();
}

/// The least arithmetic that exact attention takes.
Index least_work(const Problem& p, const Values& values) {
  Index work = 0;
  for_each_row(p, [&](Index b, Index, Index i) {
    const Index seen = count_of(visible_keys(p, values, b, i));
    if (seen > 0) work += seen * (2 * p.head_dim - 1 + 2 * p.head_dim_v) - p.head_dim_v;
  });
  return work;
}

}  // namespace

Verdict work_grows_with_scores(const Subject& subject, const Problem& problem,
                               const Values& values) {
  if (const auto instead = uncounted(subject)) return *instead;
  if (const auto refused = refusal(subject, Operation::prefill, problem)) return *refused;
  const bool sequence = problem.causal;
  if (!is_plain(problem) || problem.seqlen_kv == 0 || problem.seqlen_kv % kWholeTile != 0 ||
      (sequence && problem.seqlen_q != problem.seqlen_kv)) {
    return vacuous("needs whole tiles of keys that are all seen, or a causal sequence of them");
  }
  if (problem.scales != Scales::none) return vacuous("keys are doubled without their scales");
  Problem larger = problem;
  Values more = values;
  larger.seqlen_kv *= 2;
  more.k = twice(values.k);
  more.v = twice(values.v);
  if (sequence) {
    larger.seqlen_q *= 2;
    more.q = twice(values.q);
  }
  const Answer single = ask(subject, Operation::prefill, problem, values);
  if (single.instead) return *single.instead;
  const Answer doubled = ask(subject, Operation::prefill, larger, more);
  if (doubled.instead) return *doubled.instead;

  Judge judge;
  const Counters& before = single.reply.counters;
  const Counters& after = doubled.reply.counters;
  const auto grows = [&](std::int64_t from, std::int64_t to, std::string_view what) {
    judge.demand(grows_at_most(to, from, sequence ? 2 : 1), static_cast<double>(to), {0, 0, 0, 0},
                 std::string(sequence ? "half the sequence took " : "half the keys took ") +
                     std::to_string(from) + " " + std::string(what) + "; it must be about " +
                     (sequence ? "four times" : "twice") + " that");
  };
  grows(flops_of(before), flops_of(after), "floating-point operations");
  grows(before.special_operations, after.special_operations, "exponentials and quotients");
  const Index needed = least_work(larger, more);
  const std::int64_t done = flops_of(after) + after.integer_operations;
  judge.demand(done >= needed, static_cast<double>(done), {0, 0, 0, 0},
               "exact attention takes " + std::to_string(needed) + " operations at least");
  return judge.verdict();
}

}  // namespace attest
