// The exact oracle: the definition of attention, five visible steps, at 50 or 100 digits.
#pragma once
#include <vector>

#include "reference/values.hpp"

namespace attest {

enum class Digits : int { fifty = 50, hundred = 100 };

/// Correctly rounded to double from the stated number of digits. (batch, head, row, column) like o.
struct Truth {
  Extent4 extent{};            // of o: (batch, num_heads_q, queries, head_dim_v)
  std::vector<double> o;       // rows at or behind a query length are 0 and not judged
  std::vector<double> lse;     // (batch, num_heads_q, queries), in the Problem's base
  std::vector<double> o_tail;  // o + o_tail holds about 106 bits; same for lse
  std::vector<double> lse_tail;
};
///
/// Domain: any legal Problem with values of its extents.
/// Error: o is within 2^-53 |o| of the definition, lse likewise, unless a sum cancels to less than
/// 10^-30 of its terms; agreement of the two precisions is certified_digits' business.
/// Special: what is not visible enters no arithmetic. NaN and infinities that are visible follow
/// IEEE 754 through the five steps. A key under a bias of -inf is not visible.
Truth exact_attention(const Problem& problem, const Values& values, Digits digits = Digits::fifty);

/// How many decimal digits 50- and 100-digit arithmetic agree in, at the element of o or lse where
/// they agree least; at most 50. Relative to the element, except where everything cancels: an
/// element below 10^-45 of the largest visible |v| (of 1, for lse) is measured against that.
/// 50 also stands for nothing to compare; a non-finite element counts 50 when both have the same.
int certified_digits(const Problem& problem, const Values& values);

/// Visibility of key j from query i of batch entry b: lengths, causal, window, mask. The oracle's
/// own; no kernel and no property may use another one.
bool visible(const Problem& problem, const Values& values, Index b, Index i, Index j);
/// The keys that lengths, causality and windows leave to a row: first <= j < end.
struct KeyRange {
  Index first = 0, end = 0;
};
KeyRange visible_range(const Problem& problem, Index b, Index i);
/// The same, and not under a bias of -inf: the key carries weight in this row of head h.
bool weighed(const Problem& problem, const Values& values, Index b, Index h, Index i, Index j);
Index query_length(const Problem& problem, Index b);
Index key_length(const Problem& problem, Index b);
/// Query i of batch entry b stands at key i + diagonal.
Index diagonal(const Problem& problem, Index b);

}  // namespace attest
