// Orders written down by hand.
#include "reference/statistics/order_of_work.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace attest::statistics {
namespace {

/// "0 1 2 | 3 4 || 5": blocks are parted by |, states by ||.
std::string order(const PrecisionPath& path, Index splits, Index keys, std::vector<Index> seen) {
  std::string text;
  for (const Blocks& blocks : order_of_work(path, splits, keys, seen)) {
    if (!text.empty()) text += "|| ";
    for (std::size_t n = 0; n < blocks.size(); ++n) {
      if (n > 0) text += "| ";
      for (Index key : blocks[n].keys) text += std::to_string(key) + " ";
    }
  }
  return text;
}

std::vector<Index> first(Index count) {
  std::vector<Index> keys(static_cast<std::size_t>(count));
  std::iota(keys.begin(), keys.end(), Index{0});
  return keys;
}

TEST(OrderOfWork, BlocksAreOfThePartAndOnlyWhatIsSeenIsIn) {
  EXPECT_EQ(order({}, 1, 5, first(5)), "0 1 2 3 4 ");
  EXPECT_EQ(order({.kv_block = 2}, 1, 5, first(5)), "0 1 | 2 3 | 4 ");
  EXPECT_EQ(order({.kv_block = 2}, 1, 9, {1, 6, 7}), "1 | 6 7 ");
  EXPECT_EQ(order({.keys_per_rescale = 3}, 1, 5, first(5)), "0 1 2 | 3 4 ");
  EXPECT_EQ(order({.kv_block = 2}, 1, 0, {}), "");
}

TEST(OrderOfWork, TheLastBlockComesFirstAndStreamsTakeTurns) {
  EXPECT_EQ(order({.kv_block = 2, .kv_blocks_descending = true}, 1, 5, first(5)), "4 | 2 3 | 0 1 ");
  EXPECT_EQ(order({.kv_block = 1, .interleaved_accumulators = 2}, 1, 5, first(5)),
            "0 | 2 | 4 || 1 | 3 ");
  EXPECT_EQ(order({.kv_block = 1, .interleaved_accumulators = 2, .kv_blocks_descending = true}, 1,
                  5, first(5)),
            "4 | 2 | 0 || 3 | 1 ");
}

TEST(OrderOfWork, PartsAreEvenOrPowersOfTwoOrOfALength) {
  EXPECT_EQ(order({.split_size = kEvenSplits}, 2, 5, first(5)), "0 1 2 || 3 4 ");
  EXPECT_EQ(order({.split_size = kPowerOfTwoSplits}, 2, 5, first(5)), "0 1 2 3 || 4 ");
  EXPECT_EQ(order({.split_size = 2}, 3, 5, first(5)), "0 1 || 2 3 || 4 ");
  EXPECT_EQ(order({.kv_block = 4, .split_size = 3}, 2, 5, first(5)), "0 1 2 || 3 4 ");
}

TEST(OrderOfWork, AGroupOfATensorCoreIsCountedFromTheBlock) {
  const auto states = order_of_work({.kv_block = 4}, 1, 8, {5, 6});
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0][0].first, 4);
}

}  // namespace
}  // namespace attest::statistics
