// Where the slots of a cache lie in the tensors that a plugin sees: one after another, on pages in
// any order, or in a ring; and the way there and back. Knows bytes and places, and nothing of
// formats, roles or operations.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

/// A cache as one dense tensor of rows, (blocks, num_heads_kv, slots): batch entries and their
/// slots, or pages and theirs.
struct CacheLayout {
  Index blocks = 0, slots = 0;
  Index entries = 0;                // batch entries
  Index page_size = 0;              // 0: no pages
  Index table_width = 0;            // pages of a batch entry
  std::vector<std::int32_t> table;  // (entries, table_width): every entry names a page of its own
  std::vector<std::int32_t> rows;   // per block: its first so many slots may be used
  std::vector<std::int32_t> pages;  // per batch entry: its first so many table entries may be used

  struct Place {
    Index block, slot;
  };
  /// Domain: slot < what one batch entry has room for.
  Place place(Index entry, Index slot) const;
};

/// `capacity` slots per batch entry, of which the first used[b] may be used. With pages there is
/// one more than the tables name.
CacheLayout cache_layout(const Problem& problem, Index capacity, const std::vector<Index>& used);

/// A permutation of 0 .. count - 1: rising for order 0, otherwise a shuffle that depends on the two
/// numbers alone.
std::vector<std::int32_t> page_permutation(Index count, Index order);

/// Rows of a dense (entries, heads, capacity) tensor to their places; what no row is put on is 0.
std::vector<std::byte> onto_pages(const CacheLayout& layout, Index heads, Index capacity,
                                  std::size_t row_bytes, const std::byte* rows);
/// The way back, into a tensor of `capacity` slots per entry.
void from_pages(const CacheLayout& layout, Index heads, Index capacity, std::size_t row_bytes,
                const std::byte* pages, std::byte* rows);

/// The slots of a ring after all of lengths[b] tokens were written: slot j modulo ring holds the
/// last such token j. `rows` is dense (entries, heads, tokens), the result (entries, heads, ring).
std::vector<std::byte> onto_ring(Index ring, const std::vector<Index>& lengths, Index heads,
                                 Index tokens, std::size_t row_bytes, const std::byte* rows);

}  // namespace attest
