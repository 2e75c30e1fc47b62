// The table of directions. Each row edits a copy of the case; what follows from an edit (lengths
// that no longer fit, a scale that was the default) is put right in one place, `edited`.
#include "fuzz/candidates.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "properties/fills.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

using Cases = std::vector<Case>;

/// From `value` towards `target`: the target, then half of the way, a quarter, ..., one.
std::vector<Index> towards(Index target, Index value) {
  if (value < target) return {target};
  std::vector<Index> steps;
  if (value > target) steps.push_back(target);
  for (Index cut = (value - target) / 2; cut > 0; cut /= 2) steps.push_back(value - cut);
  return steps;
}

Index halved(Index value) {
  return value <= 1 ? value : 1 + (value - 1) / 2;
}

/// Appends `from` with `edit` applied, when that is legal and differs.
template <class Edit>
void add(Cases& cases, const Case& from, const Edit& edit) {
  Case edited = from;
  Problem& problem = edited.problem;
  edit(problem);
  put_right(problem, from.problem);
  if (edited != from && invalidity(problem).empty()) cases.push_back(std::move(edited));
}

void drop_features(Problem& p) {
  const Problem plain;
  p.causal = p.bias = p.alibi = p.sinks = p.mask = false;
  p.alignment = plain.alignment;
  p.softcap = plain.softcap;
  p.window_left = p.window_right = kUnbounded;
  p.seqlens_q.clear();
  p.seqlens_kv.clear();
  p.empty_row = plain.empty_row;
  p.lse_base = plain.lse_base;
  p.layout = plain.layout;
  p.empty_lse = plain.empty_lse;
  p.strided = plain.strided;
  p.spare_slots = plain.spare_slots;
  p.num_splits = plain.num_splits;
  p.chunk = plain.chunk;
  p.cache = plain.cache;
  p.scales = plain.scales;
  p.page_size = plain.page_size;
  p.page_order = plain.page_order;
  p.ring = plain.ring;
  p.rope = plain.rope;
}

Cases without_features(const Case& from) {
  Cases cases;
  add(cases, from, drop_features);
  return cases;
}

Cases with_smaller_extents(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) {
    p.batch = p.num_heads_q = p.num_heads_kv = p.seqlen_q = p.seqlen_kv = p.head_dim =
        p.head_dim_v = 1;
  });
  add(cases, from, [](Problem& p) {
    const Index group = p.num_heads_kv > 0 ? p.num_heads_q / p.num_heads_kv : 1;
    p.batch = halved(p.batch);
    p.num_heads_kv = halved(p.num_heads_kv);
    p.num_heads_q = p.num_heads_kv * halved(group);
    for (Index* extent : {&p.seqlen_q, &p.seqlen_kv, &p.head_dim, &p.head_dim_v})
      *extent = halved(*extent);
  });
  return cases;
}

template <bool Problem::*field>
Cases without(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) { p.*field = false; });
  return cases;
}

template <auto field>
Cases with_default(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) { p.*field = Problem{}.*field; });
  return cases;
}

Cases with_fewer_strided(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) { p.strided = 0; });
  for (std::uint32_t bit = 1; bit <= from.problem.strided; bit <<= 1U) {
    if ((from.problem.strided & bit) == 0) continue;
    add(cases, from, [bit](Problem& p) { p.strided &= ~bit; });
  }
  return cases;
}

template <Index Problem::*field>
Cases with_smaller(const Case& from) {
  Cases cases;
  for (const Index value : towards(Problem{}.*field, from.problem.*field)) {
    add(cases, from, [value](Problem& p) { p.*field = value; });
  }
  return cases;
}

template <Index Problem::*field>
Cases with_simpler_window(const Case& from) {
  Cases cases;
  if (from.problem.*field == kUnbounded) return cases;
  add(cases, from, [](Problem& p) { p.*field = kUnbounded; });
  for (const Index value : towards(0, from.problem.*field)) {
    add(cases, from, [value](Problem& p) { p.*field = value; });
  }
  return cases;
}

Cases with_simpler_softcap(const Case& from) {
  Cases cases;
  if (from.problem.softcap == 0) return cases;
  add(cases, from, [](Problem& p) { p.softcap = 0; });
  add(cases, from, [](Problem& p) { p.softcap = 1; });
  return cases;
}

/// Which entry of the batch fails is not known, so first, last and every single one are left out.
Cases with_fewer_batch_entries(const Case& from) {
  Cases cases;
  const Index batch = from.problem.batch;
  const auto keep = [&](Index begin, Index count) {
    add(cases, from, [begin, count](Problem& p) {
      for (std::vector<Index>* lengths : {&p.seqlens_q, &p.seqlens_kv}) {
        if (lengths->empty()) continue;
        const auto first = lengths->begin() + begin;
        *lengths = std::vector<Index>(first, first + count);
      }
      p.batch = count;
    });
  };
  for (const Index count : towards(1, batch)) {
    for (Index begin = 0; begin + count <= batch; begin += count) keep(begin, count);
    keep(batch - count, count);
  }
  return cases;
}

Cases with_fewer_heads(const Case& from) {
  Cases cases;
  const Index kv = from.problem.num_heads_kv;
  if (kv <= 0) return cases;
  const Index group = from.problem.num_heads_q / kv;
  const auto become = [&](Index heads, Index per_head) {
    add(cases, from, [heads, per_head](Problem& p) {
      p.num_heads_kv = heads;
      p.num_heads_q = heads * per_head;
    });
  };
  become(1, 1);
  become(kv, 1);
  for (const Index heads : towards(1, kv)) become(heads, group);
  for (const Index per_head : towards(1, group)) become(kv, per_head);
  return cases;
}

/// Queries and keys together, so that the diagonal stays where it is.
Cases with_fewer_tokens(const Case& from) {
  Cases cases;
  const Index queries = from.problem.seqlen_q, keys = from.problem.seqlen_kv;
  for (const Index shorter : towards(1, std::min(queries, keys))) {
    const Index cut = std::min(queries, keys) - shorter;
    add(cases, from, [cut](Problem& p) {
      p.seqlen_q -= cut;
      p.seqlen_kv -= cut;
    });
  }
  return cases;
}

/// One extent, with lengths that are cut off at it, or that shrink with it.
template <Index Problem::*extent, std::vector<Index> Problem::*own_lengths>
Cases with_shorter(const Case& from) {
  Cases cases;
  const std::vector<Index>& lengths = from.problem.*own_lengths;
  if (!lengths.empty()) {
    add(cases, from, [](Problem& p) { (p.*own_lengths).clear(); });
    add(cases, from, [](Problem& p) { p.*extent = *std::ranges::max_element(p.*own_lengths); });
  }
  for (const Index value : towards(1, from.problem.*extent)) {
    add(cases, from, [value](Problem& p) { p.*extent = value; });
    if (lengths.empty()) continue;
    add(cases, from, [value](Problem& p) {
      for (Index& length : p.*own_lengths) {
        length = std::max<Index>(0, length - (p.*extent - value));
      }
      p.*extent = value;
    });
  }
  for (std::size_t entry = 0; entry < lengths.size(); ++entry) {
    add(cases, from, [entry](Problem& p) { (p.*own_lengths)[entry] = p.*extent; });
  }
  return cases;
}

Cases with_smaller_depths(const Case& from) {
  Cases cases;
  for (const Index head_dim :
       towards(1, std::max(from.problem.head_dim, from.problem.head_dim_v))) {
    add(cases, from, [head_dim](Problem& p) {
      p.head_dim = std::min(p.head_dim, head_dim);
      p.head_dim_v = std::min(p.head_dim_v, head_dim);
    });
  }
  return cases;
}

Cases with_f32(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) { p.input = p.output = Format::f32; });
  add(cases, from, [](Problem& p) { p.output = Format::f32; });
  add(cases, from, [](Problem& p) { p.input = Format::f32; });
  return cases;
}

/// The format of the inputs, then without scales, then scales that serve more.
Cases with_simpler_cache(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) {
    p.cache = std::nullopt;
    p.scales = Scales::none;
  });
  for (const Scales scales : {Scales::none, Scales::tensor, Scales::head}) {
    if (scales >= from.problem.scales) break;
    add(cases, from, [scales](Problem& p) { p.scales = scales; });
  }
  return cases;
}

/// A ring asks for as many slots as its window and rows: with either it shrinks by itself.
Cases with_smaller_ring(const Case& from) {
  Cases cases;
  const Problem& p = from.problem;
  if (p.ring == 0) return cases;
  add(cases, from, [](Problem& q) { q.ring = 0; });
  for (const Index ring : towards(p.window_left + p.seqlen_q, p.ring)) {
    add(cases, from, [ring](Problem& q) { q.ring = ring; });
  }
  for (const Index left : towards(0, p.window_left)) {
    add(cases, from, [left](Problem& q) {
      q.ring -= q.window_left - left;
      q.window_left = left;
    });
  }
  return cases;
}

Cases with_default_scale(const Case& from) {
  Cases cases;
  add(cases, from, [](Problem& p) { p.softmax_scale = default_scale(p.head_dim); });
  return cases;
}

/// The plainest fill first; one that is itself in the list gives way only to those before it.
Cases with_plainer_fill(const Case& from) {
  Cases cases;
  for (const std::string_view plain : {std::string_view("normal"), std::string_view("ramp")}) {
    if (from.fill == plain) break;
    const auto is_plain = [plain](const Fill& fill) { return fill.name == plain; };
    if (std::ranges::none_of(fills(), is_plain)) continue;
    cases.push_back(from);
    cases.back().fill = plain;
  }
  return cases;
}

Cases with_smaller_seed(const Case& from) {
  Cases cases;
  for (std::uint64_t seed = 0; seed < std::min<std::uint64_t>(from.seed, 3); ++seed) {
    cases.push_back(from);
    cases.back().seed = seed;
  }
  return cases;
}

}  // namespace

const std::vector<ShrinkDirection>& shrink_directions() {
  static const std::vector<ShrinkDirection> directions{
      {"without features", without_features},
      {"extents", with_smaller_extents},
      {"batch", with_fewer_batch_entries},
      {"heads", with_fewer_heads},
      {"mask", without<&Problem::mask>},
      {"bias", without<&Problem::bias>},
      {"alibi", without<&Problem::alibi>},
      {"sinks", without<&Problem::sinks>},
      {"softcap", with_simpler_softcap},
      {"cache", with_simpler_cache},
      {"page_size", with_smaller<&Problem::page_size>},
      {"page_order", with_smaller<&Problem::page_order>},
      {"ring", with_smaller_ring},
      {"rope", with_default<&Problem::rope>},
      {"window_left", with_simpler_window<&Problem::window_left>},
      {"window_right", with_simpler_window<&Problem::window_right>},
      {"causal", without<&Problem::causal>},
      {"alignment", with_default<&Problem::alignment>},
      {"tokens", with_fewer_tokens},
      {"queries", with_shorter<&Problem::seqlen_q, &Problem::seqlens_q>},
      {"keys", with_shorter<&Problem::seqlen_kv, &Problem::seqlens_kv>},
      {"depths", with_smaller_depths},
      {"head_dim", with_smaller<&Problem::head_dim>},
      {"head_dim_v", with_smaller<&Problem::head_dim_v>},
      {"spare_slots", with_smaller<&Problem::spare_slots>},
      {"splits", with_smaller<&Problem::num_splits>},
      {"chunk", with_smaller<&Problem::chunk>},
      {"formats", with_f32},
      {"scale", with_default_scale},
      {"empty_row", with_default<&Problem::empty_row>},
      {"empty_lse", with_default<&Problem::empty_lse>},
      {"lse_base", with_default<&Problem::lse_base>},
      {"layout", with_default<&Problem::layout>},
      {"strided", with_fewer_strided},
      {"fill", with_plainer_fill},
      {"seed", with_smaller_seed},
  };
  return directions;
}

}  // namespace attest
