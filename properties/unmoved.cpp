// Rows that must not move: by bits, or within bounds for a subject that promises no bits.
#include "properties/unmoved.hpp"

#include "properties/ask.hpp"

namespace attest {
namespace {

void element(Judge& judge, const Tensor& before, const Tensor& after,
             const std::vector<double>* bounds, const Where& where, std::string_view what) {
  if (bounds == nullptr) {
    judge.same_bits(after, before, where, what);
    return;
  }
  const Index flat = before.offset(where[0], where[1], where[2], where[3]);
  const double bound = 2 * (*bounds)[static_cast<std::size_t>(flat)];
  judge.within(after.at(flat), before.at(flat), bound, where, what);
}

}  // namespace

Unmoved::Unmoved(const Subject& subject, const Problem& problem, const Values& values)
    : columns_(problem.v_depth) {
  if (subject.description.deterministic) return;
  bounds_ =
      order_free_bounds(problem, values, precision_of(subject, attention_for(problem), problem));
}

void Unmoved::row(Judge& judge, const Reply& before, const Reply& after, Index b, Index h, Index i,
                  std::string_view what) const {
  for (Index c = 0; c < columns_; ++c) {
    element(judge, before.o, after.o, bounds_ ? &bounds_->o : nullptr, {b, h, i, c}, what);
  }
  if (before.lse.count() == 0) return;  // nobody asked for it
  element(judge, before.lse, after.lse, bounds_ ? &bounds_->lse : nullptr, {b, h, i, 0}, what);
}

}  // namespace attest
