// Copies are made row by row: a row of one head is what stays together in every layout.
#include "optimized/plugin/cache_layout.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace attest {
namespace {

/// Number `index` of the sequence that `seed` begins (splitmix64: Steele, Lea, Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
std::uint64_t scrambled(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = seed * 0xd1342543de82ef95ULL + (index + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

Index quotient_up(Index number, Index divisor) {
  return (number + divisor - 1) / divisor;
}

/// Calls visit(entry's row, its place) for every head and slot, both counted in rows.
template <class Visit>
void for_each_row(const CacheLayout& layout, Index heads, Index capacity, Visit visit) {
  for (Index entry = 0; entry < layout.entries; ++entry) {
    for (Index slot = 0; slot < capacity; ++slot) {
      const CacheLayout::Place place = layout.place(entry, slot);
      for (Index h = 0; h < heads; ++h) {
        visit((entry * heads + h) * capacity + slot,
              (place.block * heads + h) * layout.slots + place.slot);
      }
    }
  }
}

}  // namespace

CacheLayout::Place CacheLayout::place(Index entry, Index slot) const {
  if (page_size == 0) return {entry, slot};
  const Index at = entry * table_width + slot / page_size;
  return {table[static_cast<std::size_t>(at)], slot % page_size};
}

std::vector<std::int32_t> page_permutation(Index count, Index order) {
  std::vector<std::int32_t> pages(static_cast<std::size_t>(count));
  std::iota(pages.begin(), pages.end(), 0);
  if (order == 0) return pages;
  for (std::size_t last = pages.size(); last > 1; --last) {
    const std::uint64_t bits = scrambled(static_cast<std::uint64_t>(order), last);
    std::swap(pages[last - 1], pages[bits % last]);
  }
  return pages;
}

CacheLayout cache_layout(const Problem& problem, Index capacity, const std::vector<Index>& used) {
  CacheLayout layout;
  layout.entries = static_cast<Index>(used.size());
  layout.page_size = problem.page_size;
  if (problem.page_size == 0) {
    layout.blocks = layout.entries;
    layout.slots = capacity;
    for (const Index rows : used) layout.rows.push_back(static_cast<std::int32_t>(rows));
    return layout;
  }
  const Index named = layout.entries * quotient_up(capacity, problem.page_size);
  layout.table_width = quotient_up(capacity, problem.page_size);
  layout.blocks = named + 1;
  layout.slots = problem.page_size;
  layout.table = page_permutation(layout.blocks, problem.page_order);
  layout.table.resize(static_cast<std::size_t>(named));
  layout.rows.assign(static_cast<std::size_t>(layout.blocks), 0);
  for (Index entry = 0; entry < layout.entries; ++entry) {
    Index rest = used[static_cast<std::size_t>(entry)];
    layout.pages.push_back(static_cast<std::int32_t>(quotient_up(rest, problem.page_size)));
    for (Index page = 0; rest > 0; ++page, rest -= problem.page_size) {
      const Index block = layout.place(entry, page * problem.page_size).block;
      layout.rows[static_cast<std::size_t>(block)] =
          static_cast<std::int32_t>(std::min(rest, problem.page_size));
    }
  }
  return layout;
}

std::vector<std::byte> onto_pages(const CacheLayout& layout, Index heads, Index capacity,
                                  std::size_t row_bytes, const std::byte* rows) {
  std::vector<std::byte> pages(static_cast<std::size_t>(layout.blocks * heads * layout.slots) *
                               row_bytes);
  for_each_row(layout, heads, capacity, [&](Index row, Index place) {
    std::memcpy(pages.data() + static_cast<std::size_t>(place) * row_bytes,
                rows + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  });
  return pages;
}

void from_pages(const CacheLayout& layout, Index heads, Index capacity, std::size_t row_bytes,
                const std::byte* pages, std::byte* rows) {
  for_each_row(layout, heads, capacity, [&](Index row, Index place) {
    std::memcpy(rows + static_cast<std::size_t>(row) * row_bytes,
                pages + static_cast<std::size_t>(place) * row_bytes, row_bytes);
  });
}

std::vector<std::byte> onto_ring(Index ring, const std::vector<Index>& lengths, Index heads,
                                 Index tokens, std::size_t row_bytes, const std::byte* rows) {
  const auto entries = static_cast<Index>(lengths.size());
  std::vector<std::byte> slots(static_cast<std::size_t>(entries * heads * ring) * row_bytes);
  for (Index entry = 0; entry < entries; ++entry) {
    const Index length = lengths[static_cast<std::size_t>(entry)];
    for (Index h = 0; h < heads; ++h) {
      for (Index token = std::max<Index>(0, length - ring); token < length; ++token) {
        const Index head = entry * heads + h;
        std::memcpy(slots.data() + static_cast<std::size_t>(head * ring + token % ring) * row_bytes,
                    rows + static_cast<std::size_t>(head * tokens + token) * row_bytes, row_bytes);
      }
    }
  }
  return slots;
}

}  // namespace attest
