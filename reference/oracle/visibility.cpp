// Which key a query may see: the oracle's own reading of lengths, causality, windows and masks.
// No kernel shares this code, so that no mistake can be made twice.
#include "reference/oracle/exact.hpp"

#include <limits>

#include <algorithm>

namespace attest {

Index query_length(const Problem& problem, Index b) {
  if (problem.seqlens_q.empty()) return problem.seqlen_q;
  return problem.seqlens_q[static_cast<std::size_t>(b)];
}

Index key_length(const Problem& problem, Index b) {
  if (problem.seqlens_kv.empty()) return problem.seqlen_kv;
  return problem.seqlens_kv[static_cast<std::size_t>(b)];
}

Index diagonal(const Problem& problem, Index b) {
  if (problem.alignment == Alignment::top_left) return 0;
  return key_length(problem, b) - query_length(problem, b);
}

KeyRange visible_range(const Problem& problem, Index b, Index i) {
  if (i < 0 || i >= query_length(problem, b)) return {};
  const Index position = i + diagonal(problem, b);  // of the query, counted in keys
  KeyRange range{0, key_length(problem, b)};
  if (problem.causal) range.end = std::min(range.end, position + 1);
  // Compared before they are subtracted: a window may be as wide as an Index can say.
  if (problem.window_left != kUnbounded && problem.window_left < position) {
    range.first = position - problem.window_left;
  }
  if (problem.window_right != kUnbounded && problem.window_right < range.end - position) {
    range.end = position + problem.window_right + 1;
  }
  range.first = std::min(range.first, range.end);
  return range.end > 0 ? range : KeyRange{};
}

bool visible(const Problem& problem, const Values& values, Index b, Index i, Index j) {
  const KeyRange range = visible_range(problem, b, i);
  if (j < range.first || j >= range.end) return false;
  return !values.mask || values.mask->at(b, i, j);
}

bool weighed(const Problem& problem, const Values& values, Index b, Index h, Index i, Index j) {
  if (!visible(problem, values, b, i, j)) return false;
  return !values.bias || values.bias->at(b, h, i, j) != -std::numeric_limits<double>::infinity();
}

}  // namespace attest
