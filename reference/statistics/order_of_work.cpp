// Parts, blocks and streams, from what reference/precision.hpp says of them.
#include "reference/statistics/order_of_work.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace attest::statistics {
namespace {

Index part_length(const PrecisionPath& path, Index splits, Index keys) {
  if (splits <= 1) return keys;
  const Index even = (keys + splits - 1) / splits;
  if (path.part > 0) return path.part;
  if (path.part != kPowerOfTwoParts) return even;
  return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(even)));
}

}  // namespace

std::vector<Blocks> order_of_work(const PrecisionPath& path, Index splits, Index keys,
                                  const std::vector<Index>& seen) {
  const Index part = std::max<Index>(1, part_length(path, splits, keys));
  const Index keys_of_block = path.block > 0 ? path.block : path.key_block;
  const Index length = keys_of_block > 1 || path.block == 1 ? std::min(keys_of_block, part) : part;
  const auto streams = static_cast<std::size_t>(std::max<Index>(1, path.streams));
  std::vector<Blocks> states;
  for (auto key = seen.begin(); key != seen.end();) {
    const Index start = *key / part * part;
    const auto stop = std::lower_bound(key, seen.end(), start + part);
    const Index last = (std::min(part, keys - start) - 1) / length;  // block of the part
    std::vector<Blocks> of_part(streams);
    while (key != stop) {
      const Index number = (*key - start) / length;
      const auto turn = static_cast<std::size_t>(path.falling ? last - number : number);
      Block block{start + number * length, {}};
      for (; key != stop && (*key - start) / length == number; ++key) block.keys.push_back(*key);
      of_part[turn % streams].push_back(std::move(block));
    }
    for (Blocks& blocks : of_part) {
      if (blocks.empty()) continue;
      if (path.falling) std::reverse(blocks.begin(), blocks.end());
      states.push_back(std::move(blocks));
    }
  }
  return states;
}

}  // namespace attest::statistics
