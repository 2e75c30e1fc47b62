// No score matrix: what a prefill writes to global memory has no part that grows with queries times
// keys.
// Why: a kernel that spills S = Q K^T or its weights, in whatever format, writes at least one byte
// for each visible (query, key). All else that it may write goes with the queries alone (O, LSE) or
// with the keys alone (packed copies of K and V, and whatever is cleared for them), in tiles or
// not: f(queries) + g(keys). So W(2q, 2k) - W(2q, k) - W(q, 2k) + W(q, k) is 0 without a score
// matrix, and with one at least what the same difference is of the numbers of scores. Both are
// counted exactly, so there is no bound. One thing else grows with both: partial results of keys in
// parts, v_depth + 2 numbers of four bytes per row and part. A part of fewer than 64 keys (the
// smallest tile in use on that axis) would be no use, so where these could be more than a byte per
// score as many are allowed. Sees: T x T arrays in global memory, materialised masks and biases,
// spilled score tiles.
#include <fmt/format.h>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/costs.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

/// The Problem with as many times the queries and keys, and nothing that depends on single ones.
Problem grown(const Problem& problem, Index queries, Index keys) {
  Problem p = problem;
  p.queries *= queries;
  p.keys *= keys;
  p.query_lengths.clear();
  p.key_lengths.clear();
  p.mask = p.bias = false;
  p.splits = 1;
  return p;
}

Index scores_of(const Problem& p, const Values& values) {
  Index scores = 0;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index i = 0; i < p.queries; ++i) {
      scores += count_of(visible_keys(p, values, b, i)) * p.query_heads;
    }
  }
  return scores;
}

}  // namespace

Verdict no_score_matrix(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto instead = uncounted(subject)) return *instead;
  if (const auto refused = refusal(subject, Operation::prefill, grown(problem, 1, 1))) {
    return *refused;
  }
  constexpr double kLeastPart = 64, kWordBytes = 4;
  const double partial = static_cast<double>(problem.v_depth + 2) * kWordBytes / kLeastPart;
  Index scores = 0, written = 0;
  for (const Index queries : {1, 2}) {
    for (const Index keys : {1, 2}) {
      const Problem p = grown(problem, queries, keys);
      Values more = values;
      more.mask.reset();
      more.bias.reset();
      if (queries == 2) more.q = twice(values.q);
      if (keys == 2) {
        more.k = twice(values.k);
        more.v = twice(values.v);
        if (problem.scales == Scales::token) {
          more.k_scales = twice(*values.k_scales);
          more.v_scales = twice(*values.v_scales);
        }
      }
      const Answer answer = ask(subject, Operation::prefill, p, more);
      if (answer.instead) return *answer.instead;
      const Index sign = queries == keys ? 1 : -1;
      scores += sign * scores_of(p, more);
      written += sign * answer.reply.counters.global_written_bytes;
    }
  }
  if (scores <= 0) return vacuous("windows leave no scores that grow with queries and keys");
  const double allowed = static_cast<double>(scores) * (partial < 1 ? 1 : partial);
  const auto both = static_cast<double>(written);
  Judge judge;
  judge.demand(both < allowed || (partial >= 1 && both == allowed), both, {0, 0, 0, 0},
               fmt::format("bytes written that grow with queries times keys: {}, and {} scores do",
                           written, scores));
  return judge.verdict();
}

}  // namespace attest
