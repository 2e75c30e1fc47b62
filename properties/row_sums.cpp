// Row sums: with V = 1 every output is 1, for the weights of a row sum to one.
// Over the reals: sum_j w_j 1 / sum_j w_j = 1; a sink joins only the denominator, and the sum is
// then what the oracle says.
// In floating point: errors of scores and exponentials cancel between numerator and denominator, so
// only two summations, the rounding of the weights and the division are left (the order-free bound
// with V = 1, where v - o is 0).
// Sees: padded keys in the row sum, a lost rescale of either sum, sums in too narrow a format.
#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/oracle/certified.hpp"

namespace attest {

Verdict row_sums(const Subject& subject, const Problem& problem, const Values& values) {
  Values ones = values;
  for (Index flat = 0; flat < ones.v.count(); ++flat) ones.v.set(flat, 1);
  const Answer answer = ask_attention(subject, problem, ones);
  if (answer.instead) return *answer.instead;

  Bounds bounds =
      order_free_bounds(problem, ones, precision_of(subject, attention_for(problem), problem));
  const Certified certified =
      certified_attention(problem, ones, share_of(bounds.o_before, bounds.lse));
  certified.widen(bounds.o, bounds.lse);
  const Tensor& o = answer.reply.o;
  Judge judge;
  for_each_row(problem, [&](Index b, Index h, Index i) {
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      const auto flat = static_cast<std::size_t>(o.offset(b, h, i, c));
      judge.within(o.at(b, h, i, c), certified.truth.o[flat], bounds.o[flat], {b, h, i, c},
                   "the row sum");
    }
  });
  return judge.verdict("no row to sum");
}

}  // namespace attest
