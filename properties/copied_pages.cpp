// Copied pages: afterwards page `to` of K and V holds the bits of page `from`, for every pair that
// was asked for, and every other page is as it was.
// No arithmetic is involved: compared bit for bit. Pages hold arbitrary patterns, NaN included; a
// source may serve several targets, and no page that is written is read.
// Sees: pages off by one, heads or slots left out, K and V confused, pairs read in the wrong order.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "properties/ask.hpp"
#include "properties/cache_rows.hpp"
#include "properties/catalogue.hpp"
#include "properties/counter_random.hpp"
#include "properties/judge.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr Index kPagesMost = 13;
constexpr Index kElementsMost = 1 << 15;  // of K and V together

/// Of the pages in some order, the first third is read and the second written; in the last third
/// nothing happens.
PageCopy copy_for(const Problem& p) {
  const Index page = p.num_heads_kv * p.page_size * (p.head_dim + p.head_dim_v);
  const Index pages = std::clamp<Index>(kElementsMost / page, 3, kPagesMost);
  PageCopy copy;
  copy.k = patterned(cache_format(p), {pages, p.num_heads_kv, p.page_size, p.head_dim}, 1);
  copy.v = patterned(cache_format(p), {pages, p.num_heads_kv, p.page_size, p.head_dim_v}, 2);
  std::vector<Index> order;
  for (Index n = 0; n < pages; ++n) order.push_back(n);
  const auto seed = static_cast<std::uint64_t>(p.page_order);
  for (Index last = pages; last > 1; --last) {
    const auto other =
        random_bits(seed, Stream::other, 0, 0, 3, last)[0] % static_cast<std::uint32_t>(last);
    std::swap(order[static_cast<std::size_t>(last - 1)], order[other]);
  }
  const auto third = static_cast<std::size_t>(pages / 3);
  for (std::size_t n = 0; n < third; ++n) {
    copy.pairs.push_back({order[n / 2], order[third + n]});  // sources serve two
  }
  return copy;
}

void judge_side(Judge& judge, std::string_view name, const Tensor& before, const Tensor& after,
                const std::vector<PageCopy::Pair>& pairs) {
  const Extent4& extent = before.extent;
  for (Index page = 0; page < extent[0]; ++page) {
    const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const PageCopy::Pair& one) { return one.to == page; });
    const Index from = pair == pairs.end() ? page : pair->from;
    const std::string why =
        std::string(name) + (from == page ? ": this page must stay as it was"
                                          : ": a copied page must hold the bits of its source");
    for (Index h = 0; h < extent[1]; ++h) {
      for (Index slot = 0; slot < extent[2]; ++slot) {
        for (Index c = 0; c < extent[3]; ++c) {
          const Index at = before.offset(page, h, slot, c);
          judge.demand(after.bits(at) == before.bits(before.offset(from, h, slot, c)), after.at(at),
                       {page, h, slot, c}, why);
        }
      }
    }
  }
}

}  // namespace

Verdict copied_pages(const Subject& subject, const Problem& problem, const Values&) {
  if (const auto refused = refusal(subject, Operation::copy_pages, problem)) return *refused;
  if (problem.page_size == 0) return vacuous("a cache without pages");
  const PageCopy copy = copy_for(problem);
  const Answer answer = ask_copy_pages(subject, problem, copy);
  if (answer.instead) return *answer.instead;
  Judge judge;
  judge_side(judge, "k", copy.k, answer.reply.k, copy.pairs);
  judge_side(judge, "v", copy.v, answer.reply.v, copy.pairs);
  return judge.verdict();
}

}  // namespace attest
