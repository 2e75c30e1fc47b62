// Draws cases with RapidCheck's generators, which are pure functions of a 256-bit key: the same key
// gives the same case on every machine. The only file that knows RapidCheck.
//
// Swarm testing: each case first draws how many features it will have at all, then which, so that
// some cases are bare and some have nearly everything; a bug that one feature hides from another
// still gets cases with just one of the two. Numbers come from lists of edges or, in a good part of
// the cases, from a whole range: a list alone would hide every mistake that its author did not
// think of. Then a random extent is lowered until the case costs no more than it may; some cases
// have one extent far larger than the rest, which makes it affordable.
#include "properties/domains/domain.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
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
  bool many_scores = false;   // for a narrow V
  bool whole_tiles = false;   // of keys, and nothing that hides any of them
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
  needs.many_scores = property == "no_score_matrix";
  needs.whole_tiles = property == "work_grows_with_scores" || property == "cached_work";
  return needs;
}

// 0, 1, B-1, B, B+1 and 2B+1 for tiles of B = 16 to 128 where that is affordable, tiles of 48,
// and a few small ones. All lists are sorted: `lowered` relies on it.
constexpr Index kExtents[] = {1,  2,  3,  5,  7,  15,  16,  17,  31,  32,  33,
                              48, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257};
constexpr Index kDepths[] = {1, 2, 3, 5, 8, 16, 20, 24, 32, 40, 64, 65, 80, 96, 128, 192, 256};
constexpr Index kGroups[] = {1, 1, 2, 3, 4, 5, 6, 8, 12};
constexpr Index kCounts[] = {1, 2, 3};  // batch entries, KV heads
constexpr Index kDepthMost = 256;
constexpr Index kGroupMost = 16;

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

/// Log-uniform, +-8 to 15 eighths of a power of two: exact in every format that may carry it.
double draw_number(int least_exponent, int most_exponent) {
  const int exponent = static_cast<int>(pick_between(least_exponent, most_exponent));
  return std::ldexp(static_cast<double>(pick_between(8, 15)), exponent - 3);
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
      p.query_heads = p.kv_heads * any_lower(kGroups, group);
      break;
    }
    case 4:
      p.queries = any_lower(kExtents, p.queries);
      if (needs.sequence) p.keys = p.queries;
      break;
    case 5:
      if (!needs.two_keys) p.keys = any_lower(kExtents, p.keys);
      if (needs.sequence) p.queries = p.keys;
      break;
    case 6:
    case 7:
      p.depth = any_lower(kDepths, p.depth);
      break;
    default:
      p.v_depth = any_lower(kDepths, p.v_depth);
  }
}

Index draw_long() {
  return chance(50) ? pick({Index{128}, Index{256}, Index{512}, Index{513}, Index{1024}})
                    : pick_between(130, 1024);
}

/// One extent far larger than the rest: these cases cost little as they are and are not lowered.
void draw_one_large(Problem& p, const Needs& needs) {
  const bool free_lengths = !needs.sequence && !needs.two_keys && !needs.one_hot;
  p.batch = p.kv_heads = p.query_heads = 1;
  p.queries = pick_between(1, 4);
  p.keys = pick_between(1, 17);
  p.depth = pick_between(1, 8);
  p.v_depth = pick_between(1, 8);
  switch (pick_between(free_lengths ? 0 : 2, 6)) {
    case 0:
      p.queries = pick_between(1, 2);
      p.keys = draw_long();
      break;
    case 1:
      if (!needs.few_queries) p.queries = draw_long();
      break;
    case 2:
      p.batch = pick_between(3, 8);
      p.query_heads = p.kv_heads = pick_between(1, 2);
      break;
    case 3:
      p.kv_heads = pick_between(3, 6);
      p.query_heads = p.kv_heads * pick_between(1, 4);
      break;
    case 4:
      p.kv_heads = pick_between(1, 2);
      p.query_heads = p.kv_heads * pick_between(4, kGroupMost);
      break;
    default:
      p.depth = chance(50) ? pick({Index{192}, Index{256}}) : pick_between(129, kDepthMost);
      p.v_depth = chance(50) ? p.depth : pick_between(1, kDepthMost);
  }
}

void draw_any(Problem& p, const Needs& needs) {
  p.batch = chance(80) ? pick(kCounts) : pick_between(1, 5);
  p.kv_heads = chance(80) ? pick(kCounts) : pick_between(1, 6);
  p.query_heads = p.kv_heads * draw_group();
  p.queries = needs.few_queries && chance(80) ? pick_between(1, 4) : draw_length();
  p.keys = chance(3) && !needs.one_hot && !needs.no_attention ? 0 : draw_length();
  p.depth = draw_depth();
  p.v_depth = chance(50) ? p.depth : draw_depth();
  if (chance(35)) {  // few heads: then lengths of several tiles are affordable
    p.batch = 1;
    p.query_heads = p.query_heads / p.kv_heads;
    p.kv_heads = 1;
  }
}

void draw_extents(Problem& p, const Needs& needs) {
  const bool one_large = !needs.many_rows && chance(18);
  one_large ? draw_one_large(p, needs) : draw_any(p, needs);
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
  const double budget = one_large ? work(p, needs) : draw_budget(needs);
  while (work(p, needs) > budget) lower_one(p, needs);
  if (needs.one_hot) {  // at most four passes
    while (p.v_depth * 4 < p.keys) p.v_depth *= 2;
  }
}

void draw_costs(Problem& p, const Needs& needs) {
  const bool sequence = needs.whole_tiles && chance(10);
  p.batch = sequence ? 1 : pick_between(1, 2);
  p.kv_heads = sequence ? 1 : pick_between(1, 2);
  p.query_heads = sequence ? 1 : p.kv_heads * pick_between(1, 2);
  p.depth = chance(50) ? pick_between(1, 8) : 64;
  p.v_depth = pick_between(1, 4);
  p.keys = needs.whole_tiles ? 128 * pick_between(1, sequence ? 1 : 2) : pick_between(40, 160);
  p.queries = sequence ? p.keys : needs.whole_tiles ? pick_between(1, 3) : pick_between(16, 80);
}

void draw_formats(Problem& p) {
  p.input = *rc::gen::weightedElement<Format>({{40, Format::f32},
                                               {26, Format::f16},
                                               {26, Format::bf16},
                                               {4, Format::e4m3},
                                               {4, Format::e5m2}});
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
    p.causal = p.queries == p.keys;
    return;
  }
  if (chance(15 + percent)) p.causal = true;
  if (chance(percent)) {
    p.window_left = chance(60)
                        ? pick({Index{0}, Index{1}, Index{2}, Index{7}, Index{16}, Index{33}})
                        : pick_between(0, std::max(p.keys, p.queries));
  }
  if (chance(percent / 2)) {
    p.window_right = chance(60) ? pick({Index{0}, Index{1}, Index{3}, Index{16}})
                                : pick_between(0, std::max(p.keys, p.queries));
  }
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
  if (chance(percent)) {
    p.scale = chance(60) ? pick({1.0F, 0.5F, 0.3F, 0.0625F, -0.4F, 2.0F, 16.0F})
                         : static_cast<float>(draw_number(-9, 3)) * (chance(20) ? -1.0F : 1.0F);
  }
  if (chance(percent / 3)) p.lse_base = LogBase::two;
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
  const Index tiles = (p.keys + 15) / 16;
  const Index rows = p.batch * p.query_heads * p.queries;
  const Index most = std::max<Index>(kParts / rows, 4);
  if (chance(65)) return pick_between(1, std::min(std::min<Index>(tiles, 8) + 2, most));
  if (chance(50)) return pick_between(1, std::min(tiles + 2, most));
  if (chance(50)) return pick_between(1, std::min<Index>(40, most));
  return std::min(p.keys + pick_between(1, 9), most);
}

void draw_memory(Problem& p, const Needs& needs, Index percent) {
  if (chance(percent)) p.layout = Layout::bthd;
  if (chance(percent)) p.spare_slots = pick({Index{1}, Index{2}, Index{3}, Index{16}, Index{17}});
  if (needs.few_queries || (needs.splits && chance(10 + percent))) p.splits = draw_splits(p);
  if (needs.sequence || needs.no_attention) {
    p.chunk = chance(70)
                  ? pick({Index{1}, Index{2}, Index{3}, Index{5}, Index{16}, Index{17}, Index{33}})
                  : pick_between(1, 40);
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
  needs.many_scores || needs.whole_tiles ? draw_costs(p, needs) : draw_extents(p, needs);
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
  constexpr std::uint64_t kDomainVersion = 2;  // raise it, and stored (seed, index) pairs end
  const rc::Random random(rc::Random::Key{seed, index, number_of_name(property), kDomainVersion});
  const Needs needs = needs_of(property);
  // gen::exec keeps its state in statics of RapidCheck's: one thread at a time.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  // rc::kNominalSize: ranges are drawn in full, not grown with the number of cases.
  return rc::gen::exec([needs] { return draw(needs); })(random, rc::kNominalSize).value();
}

}  // namespace attest
