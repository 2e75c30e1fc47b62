// Rows: the query rows that are judged, and which keys each of them sees.
#pragma once
#include <algorithm>
#include <vector>

#include "reference/oracle/exact.hpp"
#include "reference/values.hpp"

namespace attest {

/// Calls visit(b, h, i) for every row that exists; those behind a query length do not.
template <class Visit>
void for_each_row(const Problem& problem, Visit visit) {
  for (Index b = 0; b < problem.batch; ++b) {
    const Index rows = query_length(problem, b);
    for (Index h = 0; h < problem.num_heads_q; ++h) {
      for (Index i = 0; i < rows; ++i) visit(b, h, i);
    }
  }
}

/// The KV head that query head h reads.
inline Index kv_head_of(const Problem& problem, Index h) {
  return h / (problem.num_heads_q / problem.num_heads_kv);
}

/// visible() of the oracle, for all keys of one row.
inline std::vector<bool> visible_keys(const Problem& problem, const Values& values, Index b,
                                      Index i) {
  std::vector<bool> keys(static_cast<std::size_t>(problem.seqlen_kv));
  for (Index j = 0; j < problem.seqlen_kv; ++j) {
    keys[static_cast<std::size_t>(j)] = visible(problem, values, b, i, j);
  }
  return keys;
}

/// The keys that carry weight: visible ones whose bias is not -inf. A row without any is empty.
inline std::vector<bool> weighed_keys(const Problem& problem, const Values& values, Index b,
                                      Index h, Index i) {
  std::vector<bool> keys(static_cast<std::size_t>(problem.seqlen_kv));
  for (Index j = 0; j < problem.seqlen_kv; ++j) {
    keys[static_cast<std::size_t>(j)] = weighed(problem, values, b, h, i, j);
  }
  return keys;
}

inline Index count_of(const std::vector<bool>& keys) {
  return std::count(keys.begin(), keys.end(), true);
}

}  // namespace attest
