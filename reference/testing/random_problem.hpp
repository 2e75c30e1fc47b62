// Random legal Problems for the tests of this folder. It knows nothing of fills or of subjects;
// the domains that draw real cases live elsewhere.
#pragma once
#include <cmath>
#include <random>

#include "reference/problem.hpp"
#include "reference/text.hpp"

namespace attest {

/// Legal by construction; `extent_max` bounds every extent.
inline Problem random_problem(std::mt19937_64& random, Index extent_max) {
  const auto below = [&](Index bound) { return static_cast<Index>(random() % bound); };
  const auto coin = [&](Index odds) { return below(odds) == 0; };
  Problem p;
  p.batch = 1 + below(3);
  p.num_heads_kv = 1 + below(3);
  p.num_heads_q = p.num_heads_kv * (1 + below(3));
  p.seqlen_q = 1 + below(extent_max);
  p.seqlen_kv = below(extent_max + 1);
  p.head_dim = 1 + below(extent_max);
  p.head_dim_v = 1 + below(extent_max);
  p.input = static_cast<Format>(below(5));
  p.output = static_cast<Format>(below(3));
  p.softmax_scale = coin(2) ? default_scale(p.head_dim)
                            : std::ldexp(static_cast<float>(below(1 << 24) - (1 << 23)),
                                         static_cast<int>(below(30)) - 35);
  if (coin(3)) p.softcap = 0.25 + static_cast<double>(random() >> 11) * 0x1p-48;
  p.causal = coin(2);
  if (coin(3)) p.alignment = Alignment::top_left;
  if (coin(3)) p.window_left = below(extent_max + 2);
  if (coin(3)) p.window_right = below(extent_max + 2);
  p.bias = coin(3);
  p.alibi = coin(3);
  p.sinks = coin(3);
  p.mask = coin(3);
  if (coin(3)) {
    for (Index b = 0; b < p.batch; ++b) p.seqlens_q.push_back(below(p.seqlen_q + 1));
  }
  if (coin(3)) {
    for (Index b = 0; b < p.batch; ++b) p.seqlens_kv.push_back(below(p.seqlen_kv + 1));
  }
  if (coin(3)) p.empty_row = EmptyRow::nan;
  if (coin(3)) p.lse_base = LogBase::two;
  if (coin(3)) p.layout = Layout::bthd;
  if (coin(3)) p.spare_slots = below(20);
  if (coin(3)) p.num_splits = 1 + below(9);
  if (coin(3)) p.chunk = 1 + below(9);
  if (coin(3)) p.cache = static_cast<Format>(below(6));
  if (p.cache && *p.cache >= Format::e4m3 && coin(2)) p.scales = static_cast<Scales>(below(4));
  if (coin(3)) p.page_size = 1 + below(9);
  if (coin(3)) p.page_order = below(9);
  if (p.head_dim % 2 == 0 && coin(3)) p.rope = static_cast<Rope>(below(3));
  if (p.window_left != kUnbounded && p.alignment == Alignment::bottom_right && coin(3)) {
    p.page_size = p.spare_slots = 0;
    p.ring = p.window_left + p.seqlen_q + below(9);
  }
  // Fields that came later are drawn from a copy, so that the others stay what they were.
  std::mt19937_64 later = random;
  if (later() % 6 == 0) p.lse_base = LogBase::none;
  if (later() % 3 == 0) p.empty_lse = EmptyLse::plus_inf;
  if (later() % 3 == 0) p.strided = static_cast<std::uint32_t>(later() % (1U << kStridedCount));
  return p;
}

}  // namespace attest
