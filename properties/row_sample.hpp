// Row sample: so many rows of so many heads, drawn by a seed, for whoever has no time for all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

struct RowSample {
  Index rows = 0;   // of a head, at most; 0: all
  Index heads = 0;  // of all batch entries together, at most; 0: all
  std::uint64_t seed = 1;
  bool is_whole() const { return rows == 0 && heads == 0; }
};

/// By row_number(): whether the row is in the sample. Rows behind a query length are in none.
/// The same sample on every machine; empty where it is the whole.
std::vector<bool> rows_in(const RowSample& sample, const Problem& problem);

/// Of `count` rows from number `first` on; empty where all are.
std::vector<bool> part_of(const std::vector<bool>& rows, std::size_t first, Index count);

}  // namespace attest
