// Parts, blocks and streams, from what reference/precision.hpp says of them.
#include "reference/statistics/order_of_work.hpp"

#include <algorithm>

#include "reference/bound/visits.hpp"

namespace attest::statistics {
namespace {

/// Even parts where the path does not say.
Index part_length(const PrecisionPath& path, Index splits, Index keys) {
  const Index declared = bound::keys_of_part(path, splits, keys);
  return std::max<Index>(1, declared > 0 ? declared : (keys + splits - 1) / splits);
}

}  // namespace

std::vector<Blocks> order_of_work(const PrecisionPath& path, Index splits, Index keys,
                                  const std::vector<Index>& seen) {
  const Index part = part_length(path, splits, keys);
  const Index keys_of_block = path.kv_block > 0 ? path.kv_block : path.keys_per_rescale;
  const Index length =
      keys_of_block > 1 || path.kv_block == 1 ? std::min(keys_of_block, part) : part;
  const auto streams = static_cast<std::size_t>(std::max<Index>(1, path.interleaved_accumulators));
  std::vector<Blocks> states;
  for (auto key = seen.begin(); key != seen.end();) {
    const Index start = *key / part * part;
    const auto stop = std::lower_bound(key, seen.end(), start + part);
    const Index last = (std::min(part, keys - start) - 1) / length;  // block of the part
    std::vector<Blocks> of_part(streams);
    while (key != stop) {
      const Index number = (*key - start) / length;
      const auto turn =
          static_cast<std::size_t>(path.kv_blocks_descending ? last - number : number);
      Block block{start + number * length, {}};
      for (; key != stop && (*key - start) / length == number; ++key) block.keys.push_back(*key);
      of_part[turn % streams].push_back(std::move(block));
    }
    for (Blocks& blocks : of_part) {
      if (blocks.empty()) continue;
      if (path.kv_blocks_descending) std::reverse(blocks.begin(), blocks.end());
      states.push_back(std::move(blocks));
    }
  }
  return states;
}

}  // namespace attest::statistics
