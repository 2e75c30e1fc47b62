// What the tiers of the certified oracle have to do with each other: each writes rows of one
// Certified. For the files of this folder.
#pragma once
#include <span>

#include "reference/oracle/certified.hpp"

namespace attest::oracle {

/// All rows, in double. A row that holds what is not finite has a NaN for its lse; of a row without
/// keys everything is right already.
Certified in_double(const Problem& problem, const Values& values);

/// The named rows (numbers of Truth::lse, rising) of `result` again, in pairs of doubles. They see
/// nothing that is not finite. Nothing is done for a softcap too large or small.
void redo_in_pairs(const Problem& problem, const Values& values, std::span<const std::size_t> rows,
                   Certified& result);

/// The same in the given number of digits, whatever the rows see.
void redo_in_digits(const Problem& problem, const Values& values, Tier tier,
                    std::span<const std::size_t> rows, Certified& result);

/// The row's lse in the Problem's base, and how far off it is: of a computed natural logarithm
/// `lse` with error `radius`, in an arithmetic of the given unit.
struct Enclosed {
  double value, radius;
};
Enclosed in_base_of(const Problem& problem, double lse, double radius);

}  // namespace attest::oracle
