// Draws cases with RapidCheck's generators, which are pure functions of a 256-bit key: the same key
// gives the same case on every machine. RapidCheck is known here and in draw.hpp alone.
//
// Swarm testing: each case first draws how many features it will have at all, then which, so that
// some cases are bare and some have nearly everything; a bug that one feature hides from another
// still gets cases with just one of the two. extents.cpp draws the shapes.
#include "properties/domains/domain.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "properties/domains/caches.hpp"
#include "properties/domains/draw.hpp"
#include "properties/domains/extents.hpp"
#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "reference/fnv.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// Its point is the bias: without one it is "normal".
constexpr std::string_view kBiasFill = "low_bias";

/// Of a row that lies alone a whole page of memory is used.
constexpr Index kFarKeysMost = 1024;

void draw_formats(Problem& p, const Needs& needs) {
  p.input = *rc::gen::weightedElement<Format>({{40, Format::f32},
                                               {26, Format::f16},
                                               {26, Format::bf16},
                                               {4, Format::e4m3},
                                               {4, Format::e5m2}});
  if (p.input == Format::f16 || p.input == Format::bf16) align_rows(p, needs);
  const bool narrow = p.input == Format::e4m3 || p.input == Format::e5m2;
  p.output = narrow ? Format::bf16 : p.input;
  if (chance(16)) p.output = *rc::gen::element(Format::f32, Format::f16, Format::bf16);
}

/// One length per batch entry; some are 0, but seldom all of them.
std::vector<Index> draw_lengths(Index batch, Index largest) {
  std::vector<Index> lengths;
  for (Index b = 0; b < batch; ++b) {
    lengths.push_back(chance(15) ? 0 : chance(30) ? largest : pick_between(0, largest));
  }
  const bool all_empty = *std::max_element(lengths.begin(), lengths.end()) == 0;
  if (all_empty && !chance(5))
    lengths[static_cast<std::size_t>(pick_between(0, batch - 1))] = largest;
  return lengths;
}

void draw_mask(Problem& p, const Needs& needs, Index percent) {
  if (needs.whole_tiles) {
    p.causal = p.seqlen_q == p.seqlen_kv;
    return;
  }
  if (chance(15 + percent)) p.causal = true;
  if (chance(percent)) {
    p.window_left = chance(60)
                        ? pick({Index{0}, Index{1}, Index{2}, Index{7}, Index{16}, Index{33}})
                        : pick_between(0, std::max(p.seqlen_kv, p.seqlen_q));
  }
  if (chance(percent / 2)) {
    p.window_right = chance(60) ? pick({Index{0}, Index{1}, Index{3}, Index{16}})
                                : pick_between(0, std::max(p.seqlen_kv, p.seqlen_q));
  }
  if (chance(percent) && !needs.sequence) p.alignment = Alignment::top_left;
  if (chance(percent) && !needs.plain_scores) p.mask = true;
  if (chance(percent) && !needs.two_keys) p.seqlens_kv = draw_lengths(p.batch, p.seqlen_kv);
  if (chance(percent) && !needs.sequence) p.seqlens_q = draw_lengths(p.batch, p.seqlen_q);
  if (needs.sequence) {
    p.causal = true;
    p.seqlens_q = p.seqlens_kv;
  }
  if (needs.two_keys || needs.many_rows) {  // the rows are to be seen
    p.causal = false;
    p.seqlens_q.clear();
    p.seqlens_kv.clear();
    p.window_left = p.window_right = kUnbounded;
  }
}

void draw_scores(Problem& p, const Needs& needs, Index percent) {
  p.softmax_scale = default_scale(p.head_dim);
  if (chance(percent)) {
    p.softmax_scale = chance(60)
                          ? pick({1.0F, 0.5F, 0.3F, 0.0625F, -0.4F, 2.0F, 16.0F})
                          : static_cast<float>(draw_number(-9, 3)) * (chance(20) ? -1.0F : 1.0F);
  }
  if (chance(percent / 3)) p.lse_base = LogBase::two;
  if (chance(percent / 4) && !needs.many_rows) p.lse_base = LogBase::none;
  if (chance(percent / 4)) p.empty_lse = EmptyLse::plus_inf;
  if (chance(percent) && !needs.two_keys) p.sinks = true;  // a sink of 200 leaves no weight
  if (needs.plain_scores) return;
  if (chance(percent)) {
    p.softcap = chance(50) ? pick({1.0, 2.0, 30.0, 50.0}) : draw_number(-3, 9);  // 1/8 to 960
  }
  if (chance(percent)) p.bias = !needs.whole_tiles;
  if (chance(percent)) p.alibi = true;
}

/// Mostly about as many as there are tiles, sometimes many more, or more than there are keys.
Index draw_splits(const Problem& p) {
  constexpr Index kParts = 4096;  // rows times splits: each part is a block that costs its time
  const Index tiles = (p.seqlen_kv + 15) / 16;
  const Index rows = p.batch * p.num_heads_q * p.seqlen_q;
  const Index most = std::max<Index>(kParts / rows, 4);
  if (chance(65)) return pick_between(1, std::min(std::min<Index>(tiles, 8) + 2, most));
  if (chance(50)) return pick_between(1, std::min(tiles + 2, most));
  if (chance(50)) return pick_between(1, std::min<Index>(40, most));
  return std::min(p.seqlen_kv + pick_between(1, 9), most);
}

void draw_memory(Problem& p, const Needs& needs, Index percent) {
  if (chance(percent)) p.layout = Layout::bthd;
  if (chance(percent))
    p.strided = static_cast<std::uint32_t>(pick_between(1, (1 << kStridedCount) - 1));
  if (chance(percent)) p.spare_slots = pick({Index{1}, Index{2}, Index{3}, Index{16}, Index{17}});
  if (needs.few_queries || (needs.splits && chance(10 + percent))) p.num_splits = draw_splits(p);
  if (needs.sequence || needs.no_attention || needs.path) {
    p.chunk = chance(70)
                  ? pick({Index{1}, Index{2}, Index{3}, Index{5}, Index{16}, Index{17}, Index{33}})
                  : pick_between(1, 40);
    if (needs.sequence) p.chunk = std::max(p.chunk, (p.seqlen_kv + 5) / 6);  // at most six steps
    const bool append = needs.no_attention && needs.turns;
    if (append && chance(6)) {
      p.chunk = pick({Index{256}, Index{257}, Index{300}, Index{600}, Index{1025}});
      p.head_dim = std::min<Index>(p.head_dim, 8);
      p.head_dim_v = std::min<Index>(p.head_dim_v, 8);
    }
    // Caches are seldom as large as what is in them: most have room for the next step, and more.
    if ((append || needs.sequence) && chance(70)) p.spare_slots = p.chunk + pick_between(0, 17);
  }
  if (chance(percent / 8)) p.empty_row = EmptyRow::nan;
}

/// Fills whose point is lost, or whose bound is empty, on some extents.
void suit_fill(Case& drawn, const Needs& needs) {
  Problem& p = drawn.problem;
  // Over many keys that weigh alike nothing tells one from none: in most such cases few weigh.
  if (p.seqlen_kv > 512 && !needs.no_attention && chance(60)) {
    drawn.fill = pick({std::string("rising_maxima"), std::string("previous_token")});
  }
  if (drawn.fill == "overflow_f16") p.softmax_scale = 1.0F / 16384;
  if (drawn.fill == "logits_very_low") {
    // Scores of -9e4 leave f32 errors near 1 unless few products make them up.
    p.head_dim = std::min<Index>(p.head_dim, 2);
    p.softmax_scale = 1;
    if (!needs.sequence && !needs.two_keys) p.seqlen_kv = std::min<Index>(p.seqlen_kv, 3);
    for (Index& length : p.seqlens_kv) length = std::min(length, p.seqlen_kv);
  }
}

Case draw(const Needs& needs) {
  Case drawn;
  Problem& p = drawn.problem;
  draw_extents(p, needs);
  const Index percent = *rc::gen::element<Index>(0, 12, 25, 50);
  draw_formats(p, needs);
  draw_memory(p, needs, percent);
  if (!needs.no_attention) {
    draw_mask(p, needs, percent);
    draw_scores(p, needs, percent);
  } else {
    p.softmax_scale = default_scale(p.head_dim);
    if (chance(50)) p.seqlens_kv = draw_lengths(p.batch, p.seqlen_kv);
    if (needs.biased) p.bias = chance(30);
  }
  std::vector<std::string> names;
  for (const Fill& fill : fills()) {
    if (fill.name != kBiasFill) names.emplace_back(fill.name);
  }
  drawn.fill = chance(20) ? "normal" : *rc::gen::elementOf(names);
  if (needs.two_keys) drawn.fill = *rc::gen::element<std::string>("integers", "normal", "signs");
  if (needs.many_rows) drawn.fill = "signs";
  drawn.seed = static_cast<std::uint64_t>(pick_between(0, (Index{1} << 32) - 1));
  if (p.bias && !needs.no_attention && chance(15)) drawn.fill = kBiasFill;
  suit_fill(drawn, needs);
  const bool scale_follows = p.softmax_scale == default_scale(p.head_dim);
  draw_cache(p, needs);
  if (scale_follows) p.softmax_scale = default_scale(p.head_dim);
  if (p.strided != 0 && p.seqlen_kv <= kFarKeysMost && p.seqlen_q <= kFarKeysMost && chance(8)) {
    p.strided |= 1U << static_cast<unsigned>(Strided::far);
  }
  return drawn;
}

}  // namespace

Needs needs_of(std::string_view property) {
  Needs needs;
  needs.path = property == "quantised_path";
  needs.few_queries = property == "decode_agreement" || needs.path;
  needs.splits = property != "oracle_agreement";
  needs.sequence = property == "cached_equals_recomputed";
  needs.two_keys = property == "effective_scale";
  needs.many_rows = property == "variance_scaling";
  needs.plain_scores = needs.two_keys || needs.many_rows;
  needs.one_hot = property == "recovered_weights";
  needs.stored_bits = needs.plain_scores || needs.one_hot || property == "cached_work";
  needs.neighbours = property == "batch_independence";
  needs.no_attention = property == "append_writes_its_slots" ||
                       property == "projection_agreement" || property == "copied_pages";
  needs.many_scores = property == "no_score_matrix";
  const bool growth = property == "work_grows_with_scores";
  needs.whole_tiles = growth || property == "cached_work";
  needs.prefill = growth || needs.many_scores;
  needs.biased = property == "projection_agreement";
  const bool append = property == "append_writes_its_slots";
  needs.pages = needs.path || property == "copied_pages";
  needs.narrow = needs.pages || needs.few_queries || append || needs.neighbours ||
                 property == "causality" || property == "convexity" || property == "rerun" ||
                 property == "batch_invariance" || property == "visible_nonfinite";
  needs.served = needs.few_queries || append ? 50 : needs.narrow || needs.sequence ? 25 : 0;
  needs.turns = needs.path || append;
  return needs;
}

Case draw_case(std::string_view property, std::uint64_t seed, std::uint64_t index) {
  const auto hard = hard_cases(property);
  if (index < hard.size()) return parse_case(hard[index]);
  constexpr std::uint64_t kDomainVersion = 5;  // raise it, and stored (seed, index) pairs end
  const rc::Random random(rc::Random::Key{seed, index, fnv_of(property), kDomainVersion});
  const Needs needs = needs_of(property);
  // gen::exec keeps its state in statics of RapidCheck's: one thread at a time.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  // rc::kNominalSize: ranges are drawn in full, not grown with the number of cases.
  return rc::gen::exec([needs] { return draw(needs); })(random, rc::kNominalSize).value();
}

}  // namespace attest
