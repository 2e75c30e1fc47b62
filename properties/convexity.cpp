// Convexity: every output lies between the least and the largest visible value of its column.
// Over the reals: it is a weighted mean with non-negative weights that sum to one. A sink adds a
// value of 0 to the mean.
// In floating point: it may leave the hull by the order-free bound and no more.
// Sees: weights that do not sum to one, negative weights, values that no visible key holds. Needs
// no oracle, only the bound.
#include <algorithm>
#include <limits>

#include "properties/ask.hpp"
#include "properties/cache_rows.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "reference/bound/order_free.hpp"

namespace attest {

Verdict convexity(const Subject& subject, const Problem& problem, const Values& values) {
  const Answer answer = ask_attention(subject, problem, values);
  if (answer.instead) return *answer.instead;
  const Bounds bounds =
      order_free_bounds(problem, values, precision_of(subject, attention_for(problem), problem));
  const Tensor& o = answer.reply.o;
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    const std::vector<bool> sees = weighed_keys(problem, values, b, h, i);
    if (count_of(sees) == 0) return;  // Its value is a convention: oracle_agreement's business.
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      double low = std::numeric_limits<double>::infinity(), high = -low;
      for (Index j = 0; j < problem.seqlen_kv; ++j) {
        if (!sees[static_cast<std::size_t>(j)]) continue;
        const double number = number_at(values.v, values.v_scales, b, kv_head_of(problem, h), j, c);
        low = std::min(low, number);
        high = std::max(high, number);
      }
      if (problem.sinks) {
        low = std::min(low, 0.0);
        high = std::max(high, 0.0);
      }
      const double got = o.at(b, h, i, c);
      // Written with !(>=): a NaN stays itself and fails.
      const double nearest = !(got >= low) ? low : !(got <= high) ? high : got;
      const auto flat = static_cast<std::size_t>(o.offset(b, h, i, c));
      judge.within(got, nearest, bounds.o[flat], {b, h, i, c}, "o, outside the hull,");
    }
  });
  return judge.verdict("no row that sees a key");
}

}  // namespace attest
