// The proven radius of a row, from what any tier of the certified oracle counted while computing
// it. The formulas are those of notes/0002-certified.md; this file knows nothing of tensors.
#pragma once
#include "reference/values.hpp"

namespace attest::oracle {

/// Radii are evaluated in double, with far fewer than 2^30 roundings of terms of one sign.
inline constexpr double kRoom = 1 + 0x1p-20;

/// Largest relative errors of an arithmetic.
struct Arithmetic {
  double unit;         // of an addition, a multiplication, a division
  double exponential;  // of exp, on (-inf, 0]
};

/// What n roundings do at most: n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd ed., lemma 3.1). Special: infinite where it says nothing.
double gamma(double roundings, double unit);

/// How far off a logit may be, absolute (note 0002, W1): `inner` is no less than sum |q k|, the
/// others are the terms of the logit.
double logit_error(const Problem& problem, double unit, double inner, double bias, double alibi);

/// A row's sums over its keys, and the sink: w are computed weights, A the errors of their
/// logarithms, without that of exp.
struct RowSums {
  double terms = 0;             // how many, at most
  double weights = 0;           // sum of w, at least 1
  double exponents = 0;         // sum of w A
  double largest_exponent = 0;  // of the A that count
};

/// Infinite where the logits are so uncertain that nothing is proven.
struct RowRadius {
  double o;    // times the largest |v| of a column: of an element of O
  double sum;  // of the natural logarithm of the sum of w, relative to the shift; its log is exact
};
RowRadius radius_of(const RowSums& sums, const Arithmetic& arithmetic);

}  // namespace attest::oracle
