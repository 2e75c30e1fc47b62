// The exact oracle: the definition of attention, five visible steps, at 50 or 100 digits.
#pragma once
#include <vector>

#include "reference/values.hpp"

namespace attest {

enum class Digits : int { fifty = 50, hundred = 100 };

/// Correctly rounded to double from the stated number of digits. (batch, head, row, column) like o.
struct Truth {
  Extent4 extent{};            // of o: (batch, query_heads, queries, v_depth)
  std::vector<double> o;       // rows at or behind a query length are 0 and not judged
  std::vector<double> lse;     // (batch, query_heads, queries), in the Problem's base
  std::vector<double> o_tail;  // o + o_tail holds about 106 bits; same for lse
  std::vector<double> lse_tail;
};
Truth exact_attention(const Problem& problem, const Values& values, Digits digits = Digits::fifty);

/// Visibility of key j from query i of batch entry b: lengths, causal, window, mask. The oracle's
/// own; no kernel and no property may use another one.
bool visible(const Problem& problem, const Values& values, Index b, Index i, Index j);
Index query_length(const Problem& problem, Index b);
Index key_length(const Problem& problem, Index b);

}  // namespace attest
