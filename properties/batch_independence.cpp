// Batch independence: a row depends on its own batch entry and its own KV head only. Whatever q, k
// and v hold elsewhere, NaN included, its bits stay.
// Over the reals: the definition mentions nothing else.
// In floating point: exactly too. The extents stay the same, so this needs no promise of batch
// invariance (which is about other extents).
// Sees: batch and head offsets that are wrong or overlap, heads packed into one tile that leak.
#include <limits>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"

namespace attest {
namespace {

/// Everything outside (b, heads [first, first + count)) becomes `number`.
void overwrite_others(Tensor& tensor, Index b, Index first, Index count, double number) {
  Index flat = 0;
  const Index per_head = tensor.extent[2] * tensor.extent[3];
  for (Index other = 0; other < tensor.extent[0]; ++other) {
    for (Index head = 0; head < tensor.extent[1]; ++head, flat += per_head) {
      if (other == b && head >= first && head < first + count) continue;
      for (Index n = 0; n < per_head; ++n) tensor.set(flat + n, number);
    }
  }
}

}  // namespace

Verdict batch_independence(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto refused = refusal(subject, attention_for(problem), problem)) return *refused;
  if (problem.batch * problem.num_heads_kv < 2) return vacuous("there is no neighbour to change");
  const Answer before = ask_attention(subject, problem, values);
  if (before.instead) return *before.instead;
  const Unmoved unmoved(subject, problem, values);
  const Index group = problem.num_heads_q / problem.num_heads_kv;
  Judge judge;
  // The two extreme corners stay as they are, one with NaN around it, one with finite numbers.
  for (const bool last : {false, true}) {
    const Index b = last ? problem.batch - 1 : 0;
    const Index g = last ? problem.num_heads_kv - 1 : 0;
    const double number = last ? 2.0 : std::numeric_limits<double>::quiet_NaN();
    Values others = values;
    overwrite_others(others.q, b, g * group, group, number);
    overwrite_others(others.k, b, g, 1, number);
    overwrite_others(others.v, b, g, 1, number);
    const Answer after = ask_attention(subject, problem, others);
    if (after.instead) return *after.instead;
    for_each_row(problem, [&](Index row_b, Index h, Index i) {
      if (row_b != b || kv_head_of(problem, h) != g) return;
      unmoved.row(judge, before.reply, after.reply, b, h, i, "other content next door");
    });
  }
  return judge.verdict("no row to compare");
}

}  // namespace attest
