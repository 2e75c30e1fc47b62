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
  return static_cast<double>(p.batch * p.kv_heads * tokens) *
         static_cast<double>(p.depth + p.v_depth);
}

/// Tokens on two pages, where that costs little.
void reach_second_page(Problem& p) {
  constexpr double kProductsMost = 3e5;
  const Index keys = p.page_size + pick_between(1, p.page_size);
  const Index rows = p.query_heads / p.kv_heads * p.queries;
  if (p.keys > p.page_size || stored(p, keys) * static_cast<double>(rows) > kProductsMost) return;
  p.keys = keys;
  if (p.key_lengths.empty()) return;
  p.key_lengths.front() = keys;
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
  if (needs.no_attention) p.queries = pick_between(1, 3);
  for (Index& length : p.query_lengths) length = std::min(length, p.queries);
  if (p.window_left == kUnbounded) {
    p.window_left = pick({Index{0}, Index{1}, Index{2}, Index{7}, Index{16}, Index{33}});
  }
  p.alignment = Alignment::bottom_right;
  p.spare_slots = 0;
  p.ring = p.window_left + p.queries + pick({Index{0}, Index{1}, Index{5}, Index{16}});
}

void draw_narrow(Problem& p) {
  p.cache = pick({Format::e4m3, Format::i8, Format::e4m3, Format::i8, Format::e5m2});
  p.scales = pick({Scales::tensor, Scales::head, Scales::token});
}

/// The whole path projects every token: few, and narrow.
void draw_path(Problem& p) {
  p.batch = std::min<Index>(p.batch, 2);
  const Index group = std::min<Index>(p.query_heads / p.kv_heads, 4);
  p.kv_heads = std::min<Index>(p.kv_heads, 2);
  p.query_heads = p.kv_heads * group;
  p.queries = std::min<Index>(p.queries, 4);
  p.keys = std::clamp<Index>(p.keys, 1, 70);
  p.depth = std::min<Index>(p.depth, 32);
  p.v_depth = std::min<Index>(p.v_depth, 32);
  for (auto [lengths, most] : {std::pair{&p.query_lengths, p.queries}, {&p.key_lengths, p.keys}}) {
    if (lengths->empty()) continue;
    lengths->resize(static_cast<std::size_t>(p.batch));
    for (Index& length : *lengths) length = std::min(length, most);
  }
  if (bytes_of(p.input) == 1) p.input = pick({Format::f32, Format::f16, Format::bf16});
  p.chunk = std::max(p.chunk, (p.keys + 2) / 3);  // at most three steps
  draw_narrow(p);
}

void draw_rope(Problem& p) {
  if (p.depth % 2 != 0) p.depth += p.depth < 256 ? 1 : -1;
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
