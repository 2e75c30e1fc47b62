// Of all that may be taken those are whose random numbers are the least: no number of them is
// likelier than another, and none is taken twice.
#include "properties/row_sample.hpp"

#include <algorithm>
#include <utility>

#include "properties/counter_random.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

/// `count` of the numbers below `all`, or all of them.
template <class Bits>
std::vector<Index> taken(Index all, Index count, const Bits& bits) {
  std::vector<std::pair<std::uint32_t, Index>> order;
  for (Index n = 0; n < all; ++n) order.emplace_back(bits(n), n);
  std::ranges::sort(order);
  if (count != 0 && count < all) order.resize(static_cast<std::size_t>(count));
  std::vector<Index> numbers;
  for (const auto& [drawn, n] : order) numbers.push_back(n);
  return numbers;
}

}  // namespace

std::vector<bool> rows_in(const RowSample& sample, const Problem& p) {
  if (sample.is_whole()) return {};
  std::vector<Index> heads;  // that have rows
  for (Index n = 0; n < p.batch * p.num_heads_q; ++n) {
    if (query_length(p, n / p.num_heads_q) > 0) heads.push_back(n);
  }
  std::vector<bool> in(row_count(p));
  const auto head_bits = [&](Index n) {
    const Index head = heads[static_cast<std::size_t>(n)];
    return random_bits(sample.seed, Stream::sample, 0, head, -1, 0)[0];
  };
  for (const Index n : taken(static_cast<Index>(heads.size()), sample.heads, head_bits)) {
    const Index head = heads[static_cast<std::size_t>(n)];
    const auto row_bits = [&](Index i) {
      return random_bits(sample.seed, Stream::sample, 0, head, i, 0)[0];
    };
    const Index b = head / p.num_heads_q, h = head % p.num_heads_q;
    for (const Index i : taken(query_length(p, b), sample.rows, row_bits)) {
      in[row_number(p, b, h, i)] = true;
    }
  }
  return in;
}

std::vector<bool> part_of(const std::vector<bool>& rows, std::size_t first, Index count) {
  if (rows.empty()) return {};
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + count};
}

}  // namespace attest
