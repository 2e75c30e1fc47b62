// Recovered weights: read through one-hot V, the softmax weights are non-negative, exactly zero
// where a key is invisible, the oracle's elsewhere, and sum to one.
// Over the reals: O of one-hot V is the weight itself.
// In floating point: each weight is within the order-free bound of its column, so their sum is
// within the sum of those bounds, widened by the summation here (n u of double). An invisible key's
// weight is no result of rounding: it is zero.
// Sees: leaked and dropped keys one by one, whatever V holds; negative weights; wrong masks.
#include <cmath>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/weights.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/oracle/certified.hpp"

namespace attest {

Verdict recovered_weights(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto refused = refusal(subject, attention_for(problem), problem)) return *refused;
  if (problem.seqlen_kv == 0) return vacuous("no key, so no weight");
  const RecoveredWeights recovered = recover_weights(subject, problem, values);
  if (recovered.instead) return *recovered.instead;

  const Problem identity = with_identity(problem);
  const Values identity_values = with_identity(problem, values);
  Bounds bounds = order_free_bounds(identity, identity_values,
                                    precision_of(subject, attention_for(problem), problem));
  const Certified certified =
      certified_attention(identity, identity_values, share_of(bounds.o_before, bounds.lse));
  certified.widen(bounds.o, bounds.lse);
  const Truth& truth = certified.truth;

  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    const auto row = static_cast<std::size_t>(
        ((b * problem.num_heads_q + h) * problem.seqlen_q + i) * problem.seqlen_kv);
    const std::vector<bool> sees = weighed_keys(problem, values, b, h, i);
    const bool empty = count_of(sees) == 0;
    double sum = 0, sum_truth = 0, sum_bound = 0;
    bool bounded = true;  // where anything may overflow, weights need not even be numbers
    for (Index j = 0; j < problem.seqlen_kv; ++j) {
      const std::size_t at = row + static_cast<std::size_t>(j);
      const double weight = recovered.weight[at];
      const Where where{b, h, i, j};
      judge.within(weight, truth.o[at], bounds.o[at], where, "the weight");
      bounded = bounded && std::isfinite(bounds.o[at]);
      if (empty || !bounded) continue;
      judge.demand(weight >= 0, weight, where, "a weight must not be negative");
      if (!sees[static_cast<std::size_t>(j)]) {
        judge.demand(weight == 0, weight, where, "an invisible key's weight must be 0");
      }
      sum += weight;
      sum_truth += truth.o[at];
      sum_bound += bounds.o[at];
    }
    if (empty || !bounded) return;
    // Two sums of n doubles near 1: each off by at most n u of its size.
    sum_bound +=
        2 * static_cast<double>(problem.seqlen_kv) * kUnitDouble * (std::abs(sum) + sum_truth);
    judge.within(sum, sum_truth, sum_bound, {b, h, i, 0}, "the sum of the weights");
  });
  return judge.verdict("no row to weigh");
}

}  // namespace attest
