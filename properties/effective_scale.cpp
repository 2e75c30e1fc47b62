// Effective scale: with two keys, ln(w1 / w0) = scale (q.k1 - q.k0), so the weights tell which
// scale a kernel really used, at every head_dim, also where it pads the head_dim to a wider one.
// Over the reals: exactly. In floating point: each weight lies within its order-free bound, which
// encloses the logarithm of their ratio; the sums here are of exact products in double, off by at
// most n u of double. Sees: the scale of a padded head_dim, a fixed scale, a scale applied twice or
// not at all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/weights.hpp"
#include "reference/bound/order_free.hpp"

namespace attest {
namespace {

struct Enclosed {
  double middle, radius;
};

/// q.k1 - q.k0 of row i.
Enclosed score_difference(const Problem& problem, const Values& values, Index b, Index h, Index i) {
  const Index g = kv_head_of(problem, h);
  double sum = 0, absolute = 0;
  for (Index c = 0; c < problem.head_dim; ++c) {
    const double q = values.q.at(b, h, i, c);
    for (const Index j : {Index{0}, Index{1}}) {
      const double product = q * values.k.at(b, g, j, c);  // exact: at most 48 bits
      sum += j == 1 ? product : -product;
      absolute += std::abs(product);
    }
  }
  return {sum, 2 * static_cast<double>(problem.head_dim) * kUnitDouble * absolute};
}

bool is_plain(const Problem& p) {
  return p.seqlen_kv == 2 && p.seqlens_kv.empty() && p.softcap == 0 && !p.bias && !p.alibi;
}

}  // namespace

Verdict effective_scale(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto refused = refusal(subject, attention_for(problem), problem)) return *refused;
  if (!is_plain(problem)) {
    return vacuous("needs two keys and no softcap, bias, ALiBi or key lengths");
  }
  const RecoveredWeights recovered = recover_weights(subject, problem, values);
  if (recovered.instead) return *recovered.instead;
  const Bounds bounds = order_free_bounds(with_identity(problem), with_identity(problem, values),
                                          precision_of(subject, attention_for(problem), problem));
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    if (count_of(visible_keys(problem, values, b, i)) != 2) return;
    const auto row =
        static_cast<std::size_t>(((b * problem.num_heads_q + h) * problem.seqlen_q + i) * 2);
    const double w0 = recovered.weight[row], w1 = recovered.weight[row + 1];
    const double b0 = bounds.o[row], b1 = bounds.o[row + 1];
    const Where where{b, h, i, 0};
    if (!std::isfinite(b0) || !std::isfinite(b1)) return;  // they may be anything
    if (!(w0 >= 0 && w1 >= 0)) {
      judge.demand(false, std::min(w0, w1), where, "the weights must be numbers, at least 0");
      return;
    }
    // Where rounding may have taken all of a weight, its logarithm is not enclosed.
    if (!(w0 > b0 && w1 > b1)) return;
    const Enclosed x = score_difference(problem, values, b, h, i);
    const double scale = problem.softmax_scale;
    const double measured = std::log(w1) - std::log(w0);
    // -log1p(-r) is the larger side of ln(1 +- r). Six roundings in double, of terms this large.
    const double radius = -std::log1p(-b0 / w0) - std::log1p(-b1 / w1) + std::abs(scale) * x.radius;
    const double rounding =
        6 * std::numeric_limits<double>::epsilon() *
        (std::abs(std::log(w0)) + std::abs(std::log(w1)) + std::abs(scale * x.middle));
    judge.within(measured, scale * x.middle, radius + rounding, where, "ln(w1/w0)");
  });
  return judge.verdict("no row whose two weights can both be told from 0");
}

}  // namespace attest
