// Draws cases with RapidCheck's generators, which are pure functions of a 256-bit key: the same key
// gives the same case on every machine. The only file that knows RapidCheck.
//
// Swarm testing: each case first draws how many features it will have at all, then which, so that
// some cases are bare and some have nearly everything; a bug that one feature hides from another
// still gets cases with just one of the two. Extents straddle tile edges and are drawn freely; then
// a random one is lowered until the case costs no more than it may.
#include "properties/domains/domain.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// What a property needs of its cases.
struct Needs {
  bool few_queries = false;   // decode
  bool splits = false;        // asks attention_for(problem), or decode
  bool sequence = false;      // causal, queries == keys, lengths alike
  bool plain_scores = false;  // no softcap, bias, ALiBi or mask
  bool two_keys = false;
  bool many_rows = false;     // statistics: over a thousand independent rows
  bool one_hot = false;       // V as wide as there are keys, or not much narrower
  bool neighbours = false;    // at least two batch entries or KV heads
  bool no_attention = false;  // append, projection: masks and scores mean nothing
};

Needs needs_of(std::string_view property) {
  Needs needs;
  needs.few_queries = property == "decode_agreement";
  needs.splits = property != "oracle_agreement";
  needs.sequence = property == "cached_equals_recomputed";
  needs.two_keys = property == "effective_scale";
  needs.many_rows = property == "variance_scaling";
  needs.plain_scores = needs.two_keys || needs.many_rows;
  needs.one_hot = property == "recovered_weights";
  needs.neighbours = property == "batch_independence";
  needs.no_attention = property == "append_writes_its_slots" || property == "projection_agreement";
  return needs;
}

// 0, 1, B-1, B, B+1 and 2B+1 for tiles of B = 16, 32 and 64, and a few small ones.
constexpr Index kExtents[] = {1, 2, 3, 5, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 257};
constexpr Index kDepths[] = {1, 2, 3, 5, 8, 16, 20, 24, 32, 40, 64, 65, 80, 96, 128, 256};
constexpr Index kGroups[] = {1, 1, 2, 3, 4, 6, 12};
constexpr Index kCounts[] = {1, 2, 3};  // batch entries, KV heads

template <class T, std::size_t kCount>
T pick(const T (&list)[kCount]) {
  return *rc::gen::elementOf(std::vector<T>(std::begin(list), std::end(list)));
}
Index pick_between(Index low, Index high) {
  return *rc::gen::inRange<Index>(low, high + 1);
}
bool chance(Index percent) {
  return pick_between(0, 99) < percent;
}

/// The next smaller element of a sorted list, or `value` when there is none.
Index lowered(std::span<const Index> list, Index value) {
  Index result = value;
  for (const Index element : list) {
    if (element < value) result = element;
  }
  return result;
}

double work(const Problem& p, const Needs& needs) {
  const Index columns = p.depth + (needs.one_hot ? std::max(p.keys, p.v_depth) : p.v_depth);
  return static_cast<double>(p.batch * p.query_heads) * static_cast<double>(p.queries) *
         static_cast<double>(std::max<Index>(p.keys, 1)) * static_cast<double>(columns);
}

/// How much one case may cost, in multiplications: most are small, a few are large.
double draw_budget(const Needs& needs) {
  if (needs.many_rows) return 4e5;
  const double chosen =
      *rc::gen::weightedElement<double>({{20, 3e3}, {40, 3e4}, {28, 1.5e5}, {10, 7e5}, {2, 4e6}});
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
      const Index group = p.query_heads / p.kv_heads;
      p.query_heads = p.kv_heads * lowered(std::array<Index, 6>{1, 2, 3, 4, 6, 12}, group);
      break;
    }
    case 4:
      p.queries = lowered(kExtents, p.queries);
      if (needs.sequence) p.keys = p.queries;
      break;
    case 5:
      if (!needs.two_keys) p.keys = lowered(kExtents, p.keys);
      if (needs.sequence) p.queries = p.keys;
      break;
    case 6:
    case 7:
      p.depth = lowered(kDepths, p.depth);
      break;
    default:
      p.v_depth = lowered(kDepths, p.v_depth);
  }
}

void draw_extents(Problem& p, const Needs& needs) {
  p.batch = pick(kCounts);
  p.kv_heads = pick(kCounts);
  p.query_heads = p.kv_heads * pick(kGroups);
  p.queries = needs.few_queries && chance(80) ? pick_between(1, 4) : pick(kExtents);
  p.keys = chance(3) && !needs.one_hot && !needs.no_attention ? 0 : pick(kExtents);
  p.depth = pick(kDepths);
  p.v_depth = chance(50) ? p.depth : pick(kDepths);
  if (chance(35)) {  // few heads: then lengths of several tiles are affordable
    p.batch = 1;
    p.query_heads = p.query_heads / p.kv_heads;
    p.kv_heads = 1;
  }
  if (needs.sequence) p.keys = p.queries;
  if (needs.two_keys) p.keys = 2;
  if (needs.neighbours) p.batch = std::max<Index>(p.batch, 2);
  if (needs.many_rows) {
    p.kv_heads = pick_between(1, 2);
    p.query_heads = p.kv_heads * pick_between(1, 2);
    p.keys = pick_between(1, 3);
    p.batch = pick_between(1, 2);
    p.v_depth = pick_between(1, 8);
    p.queries = 1024 / (p.batch * p.query_heads) + pick_between(1, 2);
  }
  const double budget = draw_budget(needs);
  while (work(p, needs) > budget) lower_one(p, needs);
  if (needs.one_hot) {  // at most four passes
    while (p.v_depth * 4 < p.keys) p.v_depth *= 2;
  }
}

void draw_formats(Problem& p) {
  p.input = *rc::gen::weightedElement<Format>({{40, Format::f32},
                                               {26, Format::f16},
                                               {26, Format::bf16},
                                               {4, Format::e4m3},
                                               {4, Format::e5m2}});
  const bool narrow = p.input == Format::e4m3 || p.input == Format::e5m2;
  p.output = narrow ? Format::bf16 : p.input;
  if (chance(8)) p.output = *rc::gen::element(Format::f32, Format::f16, Format::bf16);
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
  if (chance(15 + percent)) p.causal = true;
  if (chance(percent)) {
    p.window_left = pick({Index{0}, Index{1}, Index{2}, Index{7}, Index{16}, Index{33}});
  }
  if (chance(percent / 2)) p.window_right = pick({Index{0}, Index{1}, Index{3}, Index{16}});
  if (chance(percent) && !needs.sequence) p.alignment = Alignment::top_left;
  if (chance(percent) && !needs.plain_scores) p.mask = true;
  if (chance(percent) && !needs.two_keys) p.key_lengths = draw_lengths(p.batch, p.keys);
  if (chance(percent) && !needs.sequence) p.query_lengths = draw_lengths(p.batch, p.queries);
  if (needs.sequence) {
    p.causal = true;
    p.query_lengths = p.key_lengths;
  }
  if (needs.two_keys || needs.many_rows) {  // the rows are to be seen
    p.causal = false;
    p.query_lengths.clear();
    p.key_lengths.clear();
    p.window_left = p.window_right = kUnbounded;
  }
}

void draw_scores(Problem& p, const Needs& needs, Index percent) {
  p.scale = default_scale(p.depth);
  if (chance(percent)) p.scale = pick({1.0F, 0.5F, 0.3F, 0.0625F, -0.4F, 2.0F});
  if (chance(percent / 3)) p.lse_base = LogBase::two;
  if (chance(percent) && !needs.two_keys) p.sinks = true;  // a sink of 200 leaves no weight
  if (needs.plain_scores) return;
  if (chance(percent)) p.softcap = pick({1.0, 2.0, 30.0, 50.0});
  if (chance(percent)) p.bias = true;
  if (chance(percent)) p.alibi = true;
}

void draw_memory(Problem& p, const Needs& needs, Index percent) {
  if (chance(percent)) p.layout = Layout::bthd;
  if (chance(percent)) p.spare_slots = pick({Index{1}, Index{2}, Index{3}, Index{16}, Index{17}});
  const Index tiles = (p.keys + 15) / 16;
  if (needs.few_queries || (needs.splits && chance(10 + percent))) {
    p.splits = pick_between(1, std::min<Index>(tiles, 8) + 2);
  }
  if (needs.sequence || needs.no_attention) {
    p.chunk = pick({Index{1}, Index{2}, Index{3}, Index{5}, Index{16}, Index{17}, Index{33}});
    if (needs.sequence) p.chunk = std::max(p.chunk, (p.keys + 5) / 6);  // at most six steps
  }
  if (chance(percent / 8)) p.empty_row = EmptyRow::nan;
}

/// Fills whose point is lost, or whose bound is empty, on some extents.
void suit_fill(Case& drawn, const Needs& needs) {
  Problem& p = drawn.problem;
  if (drawn.fill == "overflow_f16") p.scale = 1.0F / 16384;
  if (drawn.fill == "logits_very_low") {
    // Scores of -9e4 leave f32 errors near 1 unless few products make them up.
    p.depth = std::min<Index>(p.depth, 2);
    p.scale = 1;
    if (!needs.sequence && !needs.two_keys) p.keys = std::min<Index>(p.keys, 3);
    for (Index& length : p.key_lengths) length = std::min(length, p.keys);
  }
}

Case draw(const Needs& needs) {
  Case drawn;
  Problem& p = drawn.problem;
  draw_extents(p, needs);
  const Index percent = *rc::gen::element<Index>(0, 12, 25, 50);
  draw_formats(p);
  draw_memory(p, needs, percent);
  if (!needs.no_attention) {
    draw_mask(p, needs, percent);
    draw_scores(p, needs, percent);
  } else {
    p.scale = default_scale(p.depth);
    if (chance(50)) p.key_lengths = draw_lengths(p.batch, p.keys);
  }
  std::vector<std::string> names;
  for (const Fill& fill : fills()) names.emplace_back(fill.name);
  drawn.fill = chance(20) ? "normal" : *rc::gen::elementOf(names);
  if (needs.two_keys) drawn.fill = *rc::gen::element<std::string>("integers", "normal", "signs");
  if (needs.many_rows) drawn.fill = "signs";
  drawn.seed = static_cast<std::uint64_t>(pick_between(0, (Index{1} << 32) - 1));
  suit_fill(drawn, needs);
  return drawn;
}

std::uint64_t number_of_name(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

Case draw_case(std::string_view property, std::uint64_t seed, std::uint64_t index) {
  const auto hard = hard_cases(property);
  if (index < hard.size()) return parse_case(hard[index]);
  constexpr std::uint64_t kDomainVersion = 1;  // raise it, and stored (seed, index) pairs end
  const rc::Random random(rc::Random::Key{seed, index, number_of_name(property), kDomainVersion});
  const Needs needs = needs_of(property);
  // gen::exec keeps its state in statics of RapidCheck's: one thread at a time.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  // rc::kNominalSize: ranges are drawn in full, not grown with the number of cases.
  return rc::gen::exec([needs] { return draw(needs); })(random, rc::kNominalSize).value();
}

}  // namespace attest
