// Which key a query may see: the oracle's own reading of lengths, causality, windows and masks.
// No kernel shares this code, so that no mistake can be made twice.
#include "reference/oracle/exact.hpp"

namespace attest {

Index query_length(const Problem& problem, Index b) {
  if (problem.query_lengths.empty()) return problem.queries;
  return problem.query_lengths[static_cast<std::size_t>(b)];
}

Index key_length(const Problem& problem, Index b) {
  if (problem.key_lengths.empty()) return problem.keys;
  return problem.key_lengths[static_cast<std::size_t>(b)];
}

Index diagonal(const Problem& problem, Index b) {
  if (problem.alignment == Alignment::top_left) return 0;
  return key_length(problem, b) - query_length(problem, b);
}

bool visible(const Problem& problem, const Values& values, Index b, Index i, Index j) {
  if (i < 0 || i >= query_length(problem, b)) return false;
  if (j < 0 || j >= key_length(problem, b)) return false;
  const Index position = i + diagonal(problem, b);  // of the query, counted in keys
  if (problem.causal && j > position) return false;
  // Distances, and not the ends of the window: a window may be as wide as an Index can say.
  if (problem.window_left != kUnbounded && position - j > problem.window_left) return false;
  if (problem.window_right != kUnbounded && j - position > problem.window_right) return false;
  return !values.mask || values.mask->at(b, i, j);
}

}  // namespace attest
