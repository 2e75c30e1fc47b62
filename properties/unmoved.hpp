// Unmoved: a row of one reply against the same row of another that must not differ. Bit for bit
// where the subject promises the same bits on every run; where it does not, the order of its sums
// may change by itself, and both rows need only lie within the order-free bound of the same truth.
// Two NaNs are the same: IEEE 754 leaves open which bits a NaN that was computed has.
#pragma once
#include <optional>
#include <string_view>

#include "properties/judge.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/subject.hpp"

namespace attest {

class Unmoved {
 public:
  Unmoved(const Subject& subject, const Problem& problem, const Values& values);

  /// O and LSE of row (b, h, i).
  void row(Judge& judge, const Reply& before, const Reply& after, Index b, Index h, Index i,
           std::string_view what) const;
  /// One number of O.
  void o(Judge& judge, const Reply& before, const Reply& after, const Where& where,
         std::string_view what) const;
  /// The LSE of row (b, h, i); nothing where none was asked for.
  void lse(Judge& judge, const Reply& before, const Reply& after, Index b, Index h, Index i,
           std::string_view what) const;

 private:
  Index columns_;
  std::optional<Bounds> bounds_;  // set: bits are not promised
};

/// The same bits, or both NaN.
bool same_number(const Tensor& one, Index at, const Tensor& other, Index there);

}  // namespace attest
