// Places are distinct, rows come back from where they were put, and a ring holds the last tokens.
#include "optimized/plugin/cache_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace attest {
namespace {

/// Row n holds the number n.
std::vector<std::byte> numbered(Index rows) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), 1);
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}
std::int32_t number_at(const std::vector<std::byte>& bytes, Index row) {
  return reinterpret_cast<const std::int32_t*>(bytes.data())[row];
}

TEST(CacheLayout, RowsComeBackFromWhereTheyWerePut) {
  for (const Index page_size : {0, 1, 3, 4, 16}) {
    for (const Index order : {0, 1, 7}) {
      Problem p;
      p.page_size = page_size;
      p.page_order = order;
      constexpr Index kHeads = 2, kCapacity = 13;
      const CacheLayout layout = cache_layout(p, kCapacity, {13, 0, 5});
      std::set<std::pair<Index, Index>> places;
      for (Index entry = 0; entry < 3; ++entry) {
        for (Index slot = 0; slot < kCapacity; ++slot) {
          const CacheLayout::Place place = layout.place(entry, slot);
          EXPECT_TRUE(place.block >= 0 && place.block < layout.blocks);
          EXPECT_TRUE(place.slot >= 0 && place.slot < layout.slots);
          EXPECT_TRUE(places.insert({place.block, place.slot}).second);
        }
      }
      const auto rows = numbered(3 * kHeads * kCapacity);
      const auto pages = onto_pages(layout, kHeads, kCapacity, 4, rows.data());
      ASSERT_EQ(pages.size(), static_cast<std::size_t>(layout.blocks * kHeads * layout.slots * 4));
      const CacheLayout::Place last = layout.place(2, 4);
      EXPECT_EQ(number_at(pages, (last.block * kHeads + 1) * layout.slots + last.slot),
                number_at(rows, (2 * kHeads + 1) * kCapacity + 4));
      std::vector<std::byte> back(rows.size());
      from_pages(layout, kHeads, kCapacity, 4, pages.data(), back.data());
      EXPECT_EQ(back, rows);
    }
  }
}

TEST(CacheLayout, OnlyWhatIsInUseMayBeUsed) {
  Problem p;
  p.page_size = 4;
  p.page_order = 3;
  const CacheLayout layout = cache_layout(p, 10, {10, 0, 5});
  EXPECT_EQ(layout.table_width, 3);
  EXPECT_EQ(layout.pages, (std::vector<std::int32_t>{3, 0, 2}));
  EXPECT_EQ(layout.blocks, 10);  // one is named nowhere
  std::vector<std::int32_t> rows;
  for (const Index entry : {0, 1, 2}) {
    for (const Index page : {0, 1, 2}) {
      rows.push_back(layout.rows[static_cast<std::size_t>(layout.place(entry, page * 4).block)]);
    }
  }
  EXPECT_EQ(rows, (std::vector<std::int32_t>{4, 4, 2, 0, 0, 0, 4, 1, 0}));
  EXPECT_EQ(std::accumulate(layout.rows.begin(), layout.rows.end(), 0), 15);
}

TEST(CacheLayout, OrdersArePermutationsOfTheirOwn) {
  std::set<std::vector<std::int32_t>> orders;
  for (Index order = 0; order < 5; ++order) {
    std::vector<std::int32_t> pages = page_permutation(40, order);
    EXPECT_EQ(pages, page_permutation(40, order));
    EXPECT_EQ(std::ranges::is_sorted(pages), order == 0);
    EXPECT_TRUE(orders.insert(pages).second);
    std::ranges::sort(pages);
    EXPECT_EQ(pages, page_permutation(40, 0));
  }
}

TEST(CacheLayout, ARingHoldsTheLastTokens) {
  const auto rows = numbered(2 * 7);
  const auto ring = onto_ring(3, {7, 2}, 1, 7, 4, rows.data());
  std::vector<std::int32_t> slots;
  for (Index slot = 0; slot < 6; ++slot) slots.push_back(number_at(ring, slot));
  EXPECT_EQ(slots, (std::vector<std::int32_t>{7, 5, 6, 8, 9, 0}));  // tokens 6 4 5; 0 1 and none
}

}  // namespace
}  // namespace attest
