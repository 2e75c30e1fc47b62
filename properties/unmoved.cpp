// Rows that must not move: by bits, or within bounds for a subject that promises no bits.
#include "properties/unmoved.hpp"

#include <cmath>

#include "properties/ask.hpp"

namespace attest {
namespace {

void element(Judge& judge, const Tensor& before, const Tensor& after,
             const std::vector<double>* bounds, const Where& where, std::string_view what) {
  const Index flat = before.offset(where[0], where[1], where[2], where[3]);
  if (bounds != nullptr) {
    const double bound = 2 * (*bounds)[static_cast<std::size_t>(flat)];
    judge.within(after.at(flat), before.at(flat), bound, where, what);
  } else if (same_number(before, flat, after, flat)) {
    judge.demand(true, after.at(flat), where, what);
  } else {
    judge.same_bits(after, before, where, what);
  }
}

}  // namespace

bool same_number(const Tensor& one, Index at, const Tensor& other, Index there) {
  return one.bits(at) == other.bits(there) ||
         (std::isnan(one.at(at)) && std::isnan(other.at(there)));
}

Unmoved::Unmoved(const Subject& subject, const Problem& problem, const Values& values)
    : columns_(problem.head_dim_v) {
  if (subject.description.deterministic) return;
  bounds_ =
      order_free_bounds(problem, values, precision_of(subject, attention_for(problem), problem));
}

void Unmoved::o(Judge& judge, const Reply& before, const Reply& after, const Where& where,
                std::string_view what) const {
  element(judge, before.o, after.o, bounds_ ? &bounds_->o : nullptr, where, what);
}

void Unmoved::lse(Judge& judge, const Reply& before, const Reply& after, Index b, Index h, Index i,
                  std::string_view what) const {
  if (before.lse.count() == 0) return;  // nobody asked for it
  element(judge, before.lse, after.lse, bounds_ ? &bounds_->lse : nullptr, {b, h, i, 0}, what);
}

void Unmoved::row(Judge& judge, const Reply& before, const Reply& after, Index b, Index h, Index i,
                  std::string_view what) const {
  for (Index c = 0; c < columns_; ++c) o(judge, before, after, {b, h, i, c}, what);
  lse(judge, before, after, b, h, i, what);
}

}  // namespace attest
