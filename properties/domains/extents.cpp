// Numbers come from lists of edges or, in a good part of the cases, from a whole range: a list
// alone would hide every mistake that its author did not think of. Then a random extent is lowered
// until the case costs no more than it may; some cases have one extent far larger than the rest,
// which makes it affordable.
#include "properties/domains/extents.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "properties/domains/draw.hpp"

namespace attest {
namespace {

// 0, 1, B-1, B, B+1 and 2B+1 for tiles of B = 16 to 128 where that is affordable, tiles of 48,
// and a few small ones. All lists are sorted: `lowered` relies on it.
constexpr Index kExtents[] = {1,  2,  3,  5,  7,  15,  16,  17,  31,  32,  33,
                              48, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257};
constexpr Index kDepths[] = {1, 2, 3, 5, 8, 16, 20, 24, 32, 40, 64, 65, 80, 96, 128, 192, 256};
constexpr Index kGroups[] = {1, 1, 2, 3, 4, 5, 6, 8, 12};
constexpr Index kCounts[] = {1, 2, 3};  // batch entries, KV heads
constexpr Index kDepthMost = 256;
constexpr Index kGroupMost = 16;
// Where one extent is far larger than the rest: what kernels have instances, loops or index types
// of their own for. 576 by 512 is latent attention; 2^15 and 2^16 end 16-bit indices.
constexpr Index kLong[] = {128, 256, 512, 513, 1024, 1025, 2048, 2049, 4096};
constexpr Index kFar[] = {8192, 16384, 32768, 32769, 33000, 40000};
constexpr Index kManyEntries[] = {9, 16, 17, 32, 33, 64};
constexpr Index kManyKvHeads[] = {4, 8, 8, 16};
constexpr Index kWideGroups[] = {16, 32, 64, 128};
constexpr std::pair<Index, Index> kWide[] = {{192, 192}, {192, 128}, {256, 256}, {320, 320},
                                             {512, 512}, {576, 512}, {576, 576}};
constexpr Index kWideMost = 576;
constexpr Index kManyRows = 10'240;  // heads times tokens, more than a grid of the tokens alone
constexpr double kWorkMost = 4e6;    // of one case, in multiplications

/// The next smaller element of a sorted list, or `value` when there is none.
Index lowered(std::span<const Index> list, Index value) {
  Index result = value;
  for (const Index element : list) {
    if (element < value) result = element;
  }
  return result;
}

/// Like `lowered`, but sometimes to a number that is in no list.
Index any_lower(std::span<const Index> list, Index value) {
  if (value > 2 && chance(30)) return pick_between((value + 1) / 2, value - 1);
  return lowered(list, value);
}

Index draw_length() {
  return chance(70) ? pick(kExtents) : pick_between(1, pick({Index{20}, Index{80}, Index{260}}));
}
Index draw_depth() {
  return chance(75) ? pick(kDepths) : pick_between(1, kDepthMost);
}
Index draw_group() {
  return chance(70) ? pick(kGroups) : pick_between(1, kGroupMost);
}

double work(const Problem& p, const Needs& needs) {
  const Index columns =
      p.head_dim + (needs.one_hot ? std::max(p.seqlen_kv, p.head_dim_v) : p.head_dim_v);
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
         static_cast<double>(std::max<Index>(p.seqlen_kv, 1)) * static_cast<double>(columns);
}

/// How much one case may cost, in multiplications: most are small, a few are large.
double draw_budget(const Needs& needs) {
  if (needs.many_rows) return 4e5;
  const double chosen = *rc::gen::weightedElement<double>(
      {{20, 3e3}, {40, 3e4}, {28, 1.5e5}, {10, 7e5}, {2, kWorkMost}});
  // Properties that ask many times: once per chunk and token, or per set of hidden keys.
  return needs.sequence ? std::min(chosen, 3e5) : chosen;
}

/// Lowers one extent to the next smaller one; widths and heads more often than lengths, for it is
/// at the edges of tiles that kernels go wrong.
void lower_one(Problem& p, const Needs& needs) {
  // Statistics need their rows: only the widths may give way.
  switch (needs.many_rows ? pick_between(6, 9) : pick_between(0, 9)) {
    case 0:
    case 1:
      p.batch = std::max<Index>(needs.neighbours ? 2 : 1, p.batch - 1);
      break;
    case 2:
    case 3: {
      const Index group = p.num_heads_q / p.num_heads_kv;
      p.num_heads_q = p.num_heads_kv * any_lower(kGroups, group);
      break;
    }
    case 4:
      p.seqlen_q = any_lower(kExtents, p.seqlen_q);
      if (needs.sequence) p.seqlen_kv = p.seqlen_q;
      break;
    case 5:
      if (!needs.two_keys) p.seqlen_kv = any_lower(kExtents, p.seqlen_kv);
      if (needs.sequence) p.seqlen_q = p.seqlen_kv;
      break;
    case 6:
    case 7:
      p.head_dim = any_lower(kDepths, p.head_dim);
      break;
    default:
      p.head_dim_v = any_lower(kDepths, p.head_dim_v);
  }
}

Index draw_long() {
  return chance(60) ? pick(kLong) : pick_between(130, 4096);
}

void draw_many_entries(Problem& p) {
  p.batch = chance(25) ? pick_between(3, 8) : chance(60) ? pick(kManyEntries) : pick_between(9, 64);
}

void draw_many_heads(Problem& p) {
  p.num_heads_kv = chance(60) ? pick(kManyKvHeads) : pick_between(3, 7);
  p.num_heads_q = p.num_heads_kv * pick_between(1, 4);
}

void draw_wide_group(Problem& p) {
  p.num_heads_q =
      p.num_heads_kv * (chance(60) ? pick(kWideGroups) : pick_between(4, 2 * kGroupMost));
}

void draw_many_keys(Problem& p) {
  p.seqlen_q = pick_between(1, 2);
  p.seqlen_kv = chance(60) ? draw_long() : chance(75) ? pick(kFar) : pick_between(4097, 40'000);
}

void draw_wide_rows(Problem& p) {
  if (chance(60)) {
    std::tie(p.head_dim, p.head_dim_v) = pick(kWide);
    return;
  }
  p.head_dim = pick_between(129, chance(70) ? kDepthMost : kWideMost);
  p.head_dim_v = chance(50) ? p.head_dim : pick_between(1, kDepthMost);
}

/// Rows of all heads and entries together, each of them small.
void draw_many_rows(Problem& p, const Needs& needs) {
  p.seqlen_kv = pick_between(1, 3);
  p.head_dim = pick({Index{1}, Index{2}, Index{8}});
  p.head_dim_v = pick({Index{1}, Index{2}, Index{8}});
  p.num_heads_kv = pick({Index{1}, Index{2}, Index{8}});
  p.num_heads_q = p.num_heads_kv * pick({Index{4}, Index{8}, Index{16}});
  if (needs.few_queries) p.batch = kManyRows / (4 * p.num_heads_q);
  p.seqlen_q = kManyRows / (p.batch * p.num_heads_q) + pick_between(0, 1);
}

void draw_large_extent(Problem& p, const Needs& needs) {
  const bool free_lengths = !needs.sequence && !needs.two_keys && !needs.one_hot;
  switch (pick_between(free_lengths ? 0 : 4, 11)) {
    case 0:
    case 1:
      return draw_many_keys(p);
    case 2:
      if (!needs.few_queries) p.seqlen_q = draw_long();
      return;
    case 3:
      if (chance(50)) draw_many_rows(p, needs);
      return;
    case 4:
    case 5:
      return draw_many_entries(p);
    case 6:
    case 7:
      return draw_many_heads(p);
    case 8:
    case 9:
      return draw_wide_group(p);
    default:
      return draw_wide_rows(p);
  }
}

/// One extent far larger than the rest, or two where that is affordable: these cases cost little as
/// they are and are not lowered.
void draw_one_large(Problem& p, const Needs& needs) {
  constexpr double kTwoMost = 5e5;
  constexpr Index kHeadsMost = 256;  // of all entries: each may be a block, however small
  p.batch = 1;
  p.num_heads_kv = p.num_heads_q = pick_between(1, 2);
  p.seqlen_q = pick_between(1, 4);
  p.seqlen_kv = pick_between(1, 17);
  p.head_dim = pick_between(1, 8);
  p.head_dim_v = pick_between(1, 8);
  draw_large_extent(p, needs);
  Problem two = p;
  draw_large_extent(two, needs);
  if (work(two, needs) <= kTwoMost && two.batch * two.num_heads_q <= kHeadsMost) p = two;
}

void draw_any(Problem& p, const Needs& needs) {
  p.batch = chance(80) ? pick(kCounts) : pick_between(1, 5);
  p.num_heads_kv = chance(80) ? pick(kCounts) : pick_between(1, 6);
  p.num_heads_q = p.num_heads_kv * draw_group();
  p.seqlen_q = needs.few_queries && chance(80) ? pick_between(1, 4) : draw_length();
  p.seqlen_kv = chance(3) && !needs.one_hot && !needs.no_attention ? 0 : draw_length();
  p.head_dim = draw_depth();
  p.head_dim_v = chance(50) ? p.head_dim : draw_depth();
  if (chance(35)) {  // few heads: then lengths of several tiles are affordable
    p.batch = 1;
    p.num_heads_q = p.num_heads_q / p.num_heads_kv;
    p.num_heads_kv = 1;
  }
}

void draw_within_budget(Problem& p, const Needs& needs) {
  const bool one_large = !needs.many_rows && chance(30);
  one_large ? draw_one_large(p, needs) : draw_any(p, needs);
  if (needs.sequence) p.seqlen_kv = p.seqlen_q;
  if (needs.two_keys) p.seqlen_kv = 2;
  if (needs.neighbours) p.batch = std::max<Index>(p.batch, 2);
  if (needs.many_rows) {
    p.num_heads_kv = pick_between(1, 2);
    p.num_heads_q = p.num_heads_kv * pick_between(1, 2);
    p.seqlen_kv = pick_between(1, 3);
    p.batch = pick_between(1, 2);
    p.head_dim_v = pick_between(1, 8);
    p.seqlen_q = 1024 / (p.batch * p.num_heads_q) + pick_between(1, 2);
  }
  const double budget = one_large ? work(p, needs) : draw_budget(needs);
  while (work(p, needs) > budget) lower_one(p, needs);
  if (needs.one_hot) {  // at most four passes
    while (p.head_dim_v * 4 < p.seqlen_kv) p.head_dim_v *= 2;
  }
}

void draw_costs(Problem& p, const Needs& needs) {
  const bool sequence = needs.whole_tiles && chance(10);
  p.batch = sequence ? 1 : pick_between(1, 2);
  p.num_heads_kv = sequence ? 1 : pick_between(1, 2);
  p.num_heads_q = sequence ? 1 : p.num_heads_kv * pick_between(1, 2);
  p.head_dim = chance(60) ? pick_between(1, 8) : 64;
  p.head_dim_v = pick_between(1, 4);
  p.seqlen_kv = needs.whole_tiles ? 128 * pick_between(1, sequence ? 1 : 2) : pick_between(20, 70);
  p.seqlen_q = sequence            ? p.seqlen_kv
               : needs.whole_tiles ? pick_between(1, 3)
                                   : pick_between(8, 40);
}

}  // namespace

void draw_extents(Problem& p, const Needs& needs) {
  needs.many_scores || needs.whole_tiles ? draw_costs(p, needs) : draw_within_budget(p, needs);
}

/// Matrix units take 16-bit rows of whole 16 bytes: most cases should reach the kernels that use
/// them, some those that serve the rest.
void align_rows(Problem& p, const Needs& needs) {
  Problem aligned = p;
  aligned.head_dim = std::max<Index>(p.head_dim / 8, 1) * 8;
  aligned.head_dim_v = std::max<Index>(p.head_dim_v / 8, 1) * 8;
  if (chance(70) && work(aligned, needs) <= kWorkMost) p = aligned;
}

}  // namespace attest
