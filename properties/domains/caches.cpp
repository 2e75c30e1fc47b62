// A cache costs about the same wherever it lies, so nothing here looks at what a case costs, but
// for large pages, and for the whole path, whose projections do.
#include "properties/domains/caches.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "properties/domains/draw.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr Index kOrdersMost = 5;  // a few permutations; 0 is none

/// Elements of k and v that are stored with so many tokens.
double stored(const Problem& p, Index tokens) {
  return static_cast<double>(p.batch * p.num_heads_kv * tokens) *
         static_cast<double>(p.head_dim + p.head_dim_v);
}

/// Tokens on two pages, where that costs little.
void reach_second_page(Problem& p) {
  constexpr double kProductsMost = 3e5;
  const Index keys = p.page_size + pick_between(1, p.page_size);
  const Index rows = p.num_heads_q / p.num_heads_kv * p.seqlen_q;
  if (p.seqlen_kv > p.page_size || stored(p, keys) * static_cast<double>(rows) > kProductsMost)
    return;
  p.seqlen_kv = keys;
  if (p.seqlens_kv.empty()) return;
  p.seqlens_kv.front() = keys;
}

void draw_pages(Problem& p, const Needs& needs) {
  constexpr double kPageMost = 1 << 15;  // elements: a page is also what one step of work is
  const bool large = chance(30);
  p.page_size = pick({Index{1}, Index{3}, Index{4}, Index{16}, Index{32}, Index{64}});
  if (large) {
    const Index size = pick({Index{128}, Index{256}, Index{512}});
    if (stored(p, size) <= kPageMost * static_cast<double>(p.batch)) p.page_size = size;
  }
  p.page_order = pick_between(0, kOrdersMost);
  const bool free_keys = !needs.path && !needs.sequence && !needs.two_keys;
  if (large && free_keys && chance(60)) reach_second_page(p);
}

/// Little room beyond what the window needs, so that tokens are overwritten.
void draw_ring(Problem& p, const Needs& needs) {
  if (needs.no_attention) p.seqlen_q = pick_between(1, 3);
  for (Index& length : p.seqlens_q) length = std::min(length, p.seqlen_q);
  if (p.window_left == kUnbounded) {
    p.window_left = pick({Index{0}, Index{1}, Index{2}, Index{7}, Index{16}, Index{33}});
  }
  p.alignment = Alignment::bottom_right;
  p.spare_slots = 0;
  p.ring = p.window_left + p.seqlen_q + pick({Index{0}, Index{1}, Index{5}, Index{16}});
}

void draw_narrow(Problem& p) {
  p.cache = pick({Format::e4m3, Format::i8, Format::e4m3, Format::i8, Format::e5m2});
  p.scales = pick({Scales::tensor, Scales::head, Scales::token});
}

/// The whole path projects every token: few, and narrow.
void draw_path(Problem& p) {
  p.batch = std::min<Index>(p.batch, 2);
  const Index group = std::min<Index>(p.num_heads_q / p.num_heads_kv, 4);
  p.num_heads_kv = std::min<Index>(p.num_heads_kv, 2);
  p.num_heads_q = p.num_heads_kv * group;
  p.seqlen_q = std::min<Index>(p.seqlen_q, 4);
  p.seqlen_kv = std::clamp<Index>(p.seqlen_kv, 1, 70);
  p.head_dim = std::min<Index>(p.head_dim, 32);
  p.head_dim_v = std::min<Index>(p.head_dim_v, 32);
  for (auto [lengths, most] : {std::pair{&p.seqlens_q, p.seqlen_q}, {&p.seqlens_kv, p.seqlen_kv}}) {
    if (lengths->empty()) continue;
    lengths->resize(static_cast<std::size_t>(p.batch));
    for (Index& length : *lengths) length = std::min(length, most);
  }
  if (bytes_of(p.input) == 1) p.input = pick({Format::f32, Format::f16, Format::bf16});
  p.chunk = std::max(p.chunk, (p.seqlen_kv + 2) / 3);  // at most three steps
  draw_narrow(p);
}

void draw_rope(Problem& p) {
  if (p.head_dim % 2 != 0) p.head_dim += p.head_dim < 256 ? 1 : -1;
  p.rope = pick({Rope::halves, Rope::pairs});
}

}  // namespace

void draw_cache(Problem& p, const Needs& needs) {
  if (needs.path) draw_path(p);
  if (needs.pages || chance(needs.served)) {
    if (!needs.pages && chance(25)) {
      draw_ring(p, needs);
    } else if (needs.pages || chance(75)) {
      draw_pages(p, needs);
    }
    if (needs.narrow && !needs.path && chance(60)) {
      draw_narrow(p);
      if (chance(15)) p.scales = Scales::none;
    } else if (needs.narrow && !needs.path && chance(40)) {
      p.cache = pick({Format::f32, Format::f16, Format::bf16});
      if (*p.cache == p.input) p.cache = std::nullopt;
    }
  }
  if (needs.turns && chance(needs.path ? 60 : 30)) draw_rope(p);
}

}  // namespace attest
