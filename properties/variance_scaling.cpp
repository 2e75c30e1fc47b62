// Variance scaling: of iid inputs with mean 0 and variance 1, the scaled scores have variance
// scale^2 head_dim: 1 with the customary scale. That is what the scale is for.
// Over the reals: a score is scale times a sum of head_dim terms of variance 1. A subject's scores
// are read off as s_j = ln(w_j) + LSE, weights through one-hot V. How sure: inputs are +-1 (fill
// "signs"), so s / (scale sqrt(head_dim)), given the keys, is strictly sub-Gaussian with variance
// exactly 1, independent over query rows. For the mean M of its square over n rows (of any mean
// over a row's keys: exp is convex), Chernoff gives
//   P(M >= 1 + t) <= exp(-n/2 (t - ln(1 + t))),  as E exp(l s^2) <= (1 - 2l)^(-1/2), and
//   P(M <= 1 - t) <= exp(-n t^2 / 6),            as E s^4 <= 3.
// Each side gets 5e-10: a false alarm in less than one of 10^9 seeds, and no number is tuned.
// In floating point: every recovered score carries the radius that the bounds of w and LSE give it.
// Sees: no scale, a scale of the wrong head_dim, scores of too few or too many columns.
#include <algorithm>
#include <cmath>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/weights.hpp"
#include "reference/bound/order_free.hpp"

namespace attest {
namespace {

constexpr double kMissEachSide = 5e-10;  // see above: two sides, 1e-9 together

bool is_plus_or_minus_one(const Tensor& tensor) {
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    if (std::abs(tensor.at(flat)) != 1) return false;
  }
  return true;
}

/// The t with n/2 (t - ln(1 + t)) = ln(1 / kMissEachSide), by bisection, from above.
double upper_excess(double rows) {
  const double wanted = 2 * -std::log(kMissEachSide) / rows;
  double low = 0, high = 1;
  while (high - std::log1p(high) < wanted) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (middle - std::log1p(middle) < wanted ? low : high) = middle;
  }
  return high;
}
double lower_excess(double rows) {
  return std::sqrt(6 * -std::log(kMissEachSide) / rows);
}

/// Least and largest mean square that the recovered scores of one row allow.
struct Square {
  double least = 0, largest = 0;
};

}  // namespace

Verdict variance_scaling(const Subject& subject, const Problem& problem, const Values& values) {
  const Problem& p = problem;
  if (const auto refused = refusal(subject, attention_for(p), p)) return *refused;
  if (!wants_lse(p)) return declined("needs the LSE, which this problem does not ask for");
  const bool plain =
      p.softcap == 0 && !p.bias && !p.alibi && p.seqlen_kv > 0 && p.softmax_scale != 0;
  if (!plain || !is_plus_or_minus_one(values.q) || !is_plus_or_minus_one(values.k)) {
    return vacuous("needs q, k = +-1 (fill signs), keys, and no softcap, bias or ALiBi");
  }
  const RecoveredWeights recovered = recover_weights(subject, p, values);
  if (recovered.instead) return *recovered.instead;
  const Bounds bounds = order_free_bounds(with_identity(p), with_identity(p, values),
                                          precision_of(subject, attention_for(p), p));
  const double nats = p.lse_base == LogBase::two ? std::log(2.0) : 1;
  const double unit = std::abs(p.softmax_scale) * std::sqrt(static_cast<double>(p.head_dim));

  Judge judge;
  double least = 0, largest = 0, rows = 0;
  for_each_row(p, [&](Index b, Index h, Index i) {
    const std::vector<bool> sees = visible_keys(p, values, b, i);
    if (count_of(sees) == 0) return;
    const Index row = (b * p.num_heads_q + h) * p.seqlen_q + i;
    const double lse = recovered.lse.at(row) * nats;
    const double lse_radius = bounds.lse[static_cast<std::size_t>(row)] * nats;
    if (!std::isfinite(lse_radius)) return;  // it may be anything
    Square square;
    for (Index j = 0; j < p.seqlen_kv; ++j) {
      if (!sees[static_cast<std::size_t>(j)]) continue;
      const auto at = static_cast<std::size_t>(row * p.seqlen_kv + j);
      const double weight = recovered.weight[at];
      judge.demand(std::isfinite(lse) && (weight >= 0 || !std::isfinite(bounds.o[at])), weight,
                   {b, h, i, j}, "weights and LSE must be numbers");
      const double relative = weight > 0 ? bounds.o[at] / weight : HUGE_VAL;
      const double radius =
          relative < 1 ? lse_radius - std::log1p(-relative) : HUGE_VAL;  // a weight of 0: unknown
      const double score = relative < 1 ? std::abs(std::log(weight) + lse) : 0;
      const double low = radius < score ? (score - radius) / unit : 0;
      const double high = radius < HUGE_VAL ? (score + radius) / unit : HUGE_VAL;
      square.least += low * low;
      square.largest += high * high;
    }
    least += square.least / static_cast<double>(count_of(sees));
    largest += square.largest / static_cast<double>(count_of(sees));
    rows += 1;
  });
  if (rows == 0) return vacuous("no row that sees a key");
  least /= rows;
  largest /= rows;
  const double above = 1 + upper_excess(rows), below = 1 - lower_excess(rows);
  judge.within(least, std::min(1.0, least), above - 1, {}, "the variance over scale^2 head_dim");
  judge.within(largest, std::max(1.0, largest), 1 - below, {},
               "the variance over scale^2 head_dim");
  return judge.verdict();
}

}  // namespace attest
