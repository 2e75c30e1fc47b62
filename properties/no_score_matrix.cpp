// No score matrix: what a prefill writes to global memory has no part that grows with queries times
// keys.
// Why: a kernel that spills S = Q K^T or its weights, in whatever format, writes at least one byte
// for each visible (query, key). All else that it may write goes with the queries alone (O, LSE) or
// with the keys alone (packed copies of K and V, and whatever is cleared for them), in tiles or
// not: f(queries) + g(keys). So W(2q, 2k) - W(2q, k) - W(q, 2k) + W(q, k) is 0 without a score
// matrix, and with one at least what the same difference is of the numbers of scores. Both are
// counted exactly, so there is no bound. One thing else grows with both: partial results of keys in
// parts, head_dim_v + 2 numbers of four bytes per row and part, or part that it sees. A part of
// fewer than 64 keys (the smallest tile in use on that axis) would be no use, so where these are
// more than a byte per score they are allowed. Sees: T x T arrays in global memory, materialised
// masks and biases, spilled score tiles.
#include <fmt/format.h>

#include <algorithm>

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
  p.seqlen_q *= queries;
  p.seqlen_kv *= keys;
  p.seqlens_q.clear();
  p.seqlens_kv.clear();
  p.mask = p.bias = false;
  p.num_splits = 1;
  return p;
}

struct Sums {
  Index scores = 0, written = 0;
  Index seen_parts = 0,
        parts = 0;  // bytes of partial results, of parts that a row sees, and of all
};

Sums sums_of(const Problem& p, const Values& values) {
  constexpr Index kLeastPart = 64, kWordBytes = 4;
  const Index bytes = (p.head_dim_v + 2) * kWordBytes;
  Sums sums;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index i = 0; i < p.seqlen_q; ++i) {
      const Index seen = count_of(visible_keys(p, values, b, i));
      sums.scores += seen * p.num_heads_q;
      sums.seen_parts += (seen + kLeastPart - 1) / kLeastPart * p.num_heads_q * bytes;
      sums.parts += (p.seqlen_kv + kLeastPart - 1) / kLeastPart * p.num_heads_q * bytes;
    }
  }
  return sums;
}

}  // namespace

Verdict no_score_matrix(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto instead = uncounted(subject)) return *instead;
  if (const auto refused = refusal(subject, Operation::prefill, grown(problem, 1, 1))) {
    return *refused;
  }
  Sums both;
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
      const Sums sums = sums_of(p, more);
      both.scores += sign * sums.scores;
      both.seen_parts += sign * sums.seen_parts;
      both.parts += sign * sums.parts;
      both.written += sign * answer.reply.counters.global_written_bytes;
    }
  }
  if (both.scores <= 0) return vacuous("windows leave no scores that grow with queries and keys");
  Judge judge;
  judge.demand(both.written < both.scores || both.written <= std::max(both.seen_parts, both.parts),
               static_cast<double>(both.written), {0, 0, 0, 0},
               fmt::format("of the bytes written {} grow with queries times keys, as {} scores do",
                           both.written, both.scores));
  return judge.verdict();
}

}  // namespace attest
