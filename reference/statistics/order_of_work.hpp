// Which keys a kernel of a declared path visits when, for one row: states, each with its blocks in
// the order in which it meets them. Where a path does not say, the choice is that of
// reference/model, which is good enough for what is likely and would not be for a bound.
#pragma once
#include <vector>

#include "reference/precision.hpp"

namespace attest::statistics {

struct Block {
  Index first = 0;          // the key at which it begins, seen or not
  std::vector<Index> keys;  // that are seen, rising
};
using Blocks = std::vector<Block>;

/// Domain: `seen` rises, and is below `keys`, those of the batch entry; splits >= 1. Only states
/// and blocks that see a key are in the result.
std::vector<Blocks> order_of_work(const PrecisionPath& path, Index splits, Index keys,
                                  const std::vector<Index>& seen);

}  // namespace attest::statistics
