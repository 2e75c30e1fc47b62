// Cells and strata are counted under names: a Run is data, and reports print it.
#include "fuzz/steering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "fuzz/features.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr Index kKeysMost = 256;          // of an aimed case that was not drawn with far more
constexpr Index kFarKeys = 512;           // from here on keys stay as drawn
constexpr Index kProductsMost = 1 << 22;  // of an aimed case, as of those that are drawn
constexpr std::uint64_t kMissesMost = 3;  // a cell that was never reached is then given up

bool is_attention(Operation operation) {
  return operation == Operation::prefill || operation == Operation::decode;
}

bool has_cache(Operation operation) {
  return operation != Operation::prefill && operation != Operation::projection;
}

bool is_narrow(Format format) {
  return format == Format::e4m3 || format == Format::e5m2 || format == Format::i8;
}

std::string cell_named(Operation operation, std::string_view kernels, Format input, Format cache,
                       bool whole_tiles) {
  std::string name(name_of(operation));
  if (!kernels.empty()) name += fmt::format(" {}", kernels);
  name += fmt::format(" in={}", name_of(input));
  if (cache != input) name += fmt::format(" cache={}", name_of(cache));
  return whole_tiles ? name + ", whole tiles" : name;
}

/// On a GPU nothing is known of kernels; where only costs are, whether tensor cores worked.
std::string kernels_of(const Observation& seen) {
  if (!seen.kernels.empty()) return fmt::format("{}", fmt::join(seen.kernels, "+"));
  if (!has_counters(seen.counters)) return {};
  return seen.counters.tensor_flops > 0 ? "tensor cores" : "no tensor cores";
}

bool whole_tiles(const Problem& problem) {
  return problem.seqlen_kv > 0 && problem.seqlen_kv % kTileKeys == 0;
}

Index products_of(const Problem& p) {
  return static_cast<Index>(row_count(p)) * p.seqlen_kv * (p.head_dim + p.head_dim_v);
}

bool is_smaller(const Problem& a, const Problem& b) {
  const auto size = [](const Problem& p) {
    return products_of(p) + p.batch * p.num_heads_kv * p.seqlen_kv * (p.head_dim + p.head_dim_v);
  };
  return size(a) < size(b);
}

std::string between(std::string_view what, Index value, const std::array<Index, 4>& ends) {
  Index first = 1;
  for (const Index end : ends) {
    if (value <= end) return fmt::format("{} {} to {}", what, first, end);
    first = end + 1;
  }
  return fmt::format("{} from {}", what, first);
}

/// A path may be declared by anything that a Problem says, so every word of it is a stratum.
std::vector<std::string> strata_of(Operation operation, const Case& test_case) {
  const Problem& p = test_case.problem;
  std::vector<std::string> strata{std::string(name_of(operation))};
  const auto add = [&](std::string_view what) {
    strata.push_back(fmt::format("{}, {}", name_of(operation), what));
  };
  add(between("keys", p.seqlen_kv, {8, 64, 512, 4096}));
  add(between("head_dim", p.head_dim, {32, 64, 128, 256}));
  add(fmt::format("in={} cache={}", name_of(p.input), name_of(cache_format(p))));
  for (const std::string& feature : features_of(test_case)) {
    if (feature.find(':') == std::string::npos) add(feature);
  }
  return strata;
}

void count_strata(Run& run, Operation operation, const Case& test_case, const Verdict& verdict) {
  for (const std::string& stratum : strata_of(operation, test_case)) {
    SightTally& tally = run.sight[stratum];
    ++tally.answered;
    if (verdict.unbounded > verdict.compared) ++tally.unbounded;
    if (verdict.sight == Sight::blind) ++tally.blind;
    if (verdict.sight == Sight::sharp) ++tally.sharp;
  }
}

void make_plain(Problem& p) {
  p.bias = p.alibi = p.sinks = p.mask = false;
  p.softcap = 0;
  p.seqlens_q.clear();
  p.seqlens_kv.clear();
  p.ring = 0;
  p.softmax_scale = default_scale(p.head_dim);
}

/// What usually decides which kernel is launched. Extents that were drawn large stay: kernels treat
/// some sizes apart, and the one that `alike` has is small.
void take_shape(Problem& p, const Problem& alike, bool all) {
  constexpr Index kWide = 128, kGroup = 16, kKvHeads = 4, kQueries = 256, kPage = 128;
  const bool whole_chunks = alike.head_dim % 8 == 0 && alike.head_dim_v % 8 == 0;
  const auto width = [&](Index drawn, Index small) {
    if (drawn <= kWide) return small;
    return whole_chunks ? drawn / 8 * 8 : drawn;
  };
  p.head_dim = width(p.head_dim, alike.head_dim);
  p.head_dim_v = width(p.head_dim_v, alike.head_dim_v);
  p.layout = alike.layout;
  if (!all) return;
  if (p.num_heads_q < kGroup * p.num_heads_kv && p.num_heads_kv < kKvHeads) {
    p.num_heads_q = alike.num_heads_q;
    p.num_heads_kv = alike.num_heads_kv;
  }
  if (p.seqlen_q < kQueries) p.seqlen_q = alike.seqlen_q;
  p.num_splits = alike.num_splits;
  if (p.page_size >= kPage) return;
  p.page_size = alike.page_size;
  p.page_order = alike.page_order;
}

Case likened(const Case& drawn, const Aim& aim, bool all) {
  Case made = drawn;
  Problem& p = made.problem;
  const bool far = p.seqlen_kv > kFarKeys;
  made.fill = far ? "rising_maxima" : "normal";
  take_shape(p, aim.alike.problem, all);
  make_plain(p);
  if (p.input != aim.input) p.output = is_narrow(aim.input) ? Format::bf16 : aim.input;
  p.input = aim.input;
  p.cache = std::nullopt;
  p.scales = Scales::none;
  if (aim.cache != aim.input) {
    constexpr std::array kScales{Scales::tensor, Scales::head, Scales::token, Scales::none};
    p.cache = aim.cache;
    if (is_narrow(aim.cache)) p.scales = kScales[drawn.seed / 2 % kScales.size()];
  }
  p.seqlen_kv = far ? p.seqlen_kv : std::clamp<Index>(p.seqlen_kv, 2, kKeysMost);
  if (aim.whole_tiles) p.seqlen_kv = (p.seqlen_kv + kTileKeys - 1) / kTileKeys * kTileKeys;
  if (!aim.whole_tiles && p.seqlen_kv % kTileKeys == 0) --p.seqlen_kv;
  return made;
}

/// The smallest case of every set of kernels that was seen.
std::map<std::string, Case> smallest_of(const Run& run, Operation operation) {
  std::map<std::string, Case> smallest;
  for (const auto& [name, cell] : run.cells) {
    if (cell.operation != operation) continue;
    const auto [at, is_new] = smallest.emplace(cell.kernels, cell.smallest);
    if (!is_new && is_smaller(cell.smallest.problem, at->second.problem)) {
      at->second = cell.smallest;
    }
  }
  return smallest;
}

std::vector<std::pair<Format, Format>> formats_of(Operation operation) {
  std::vector<std::pair<Format, Format>> pairs;
  for (const Format input : {Format::f32, Format::f16, Format::bf16, Format::e4m3, Format::e5m2}) {
    pairs.emplace_back(input, input);
    if (!has_cache(operation) || is_narrow(input)) continue;
    for (const Format cache : {Format::e4m3, Format::e5m2, Format::i8}) {
      pairs.emplace_back(input, cache);
    }
  }
  return pairs;
}

}  // namespace

std::string cell_of(Operation operation, const Case& test_case, const Observation& seen) {
  const Problem& p = test_case.problem;
  return cell_named(operation, kernels_of(seen), p.input,
                    has_cache(operation) ? cache_format(p) : p.input, whole_tiles(p));
}

bool is_sharp(Operation operation, const Verdict& verdict) {
  if (verdict.outcome != Outcome::holds) return false;
  return is_attention(operation) ? verdict.sight == Sight::sharp : verdict.unbounded == 0;
}

void count_sight(Run& run, const Property& property, const Case& test_case,
                 const Observation& seen) {
  if (!property.central_to) return;
  const Operation operation = *property.central_to;
  const Verdict& verdict = seen.verdict;
  const bool held = verdict.outcome == Outcome::holds;
  if (!held && (verdict.outcome != Outcome::vacuous || verdict.unbounded == 0)) return;
  CellTally& cell = run.cells[cell_of(operation, test_case, seen)];
  if (cell.cases == 0 || is_smaller(test_case.problem, cell.smallest.problem)) {
    cell.smallest = test_case;
  }
  cell.operation = operation;
  cell.kernels = kernels_of(seen);
  ++cell.cases;
  if (is_sharp(operation, verdict)) ++cell.sharp;
  if (is_attention(operation) && verdict.sight != Sight::unknown) {
    count_strata(run, operation, test_case, verdict);
  }
}

std::vector<Aim> aims_of(const Run& run, Operation operation,
                         const std::map<std::string, std::uint64_t>& spent, std::size_t count) {
  std::vector<std::tuple<std::uint64_t, Aim>> found;
  for (const auto& [kernels, alike] : smallest_of(run, operation)) {
    for (const auto& [input, cache] : formats_of(operation)) {
      for (const bool whole : {false, true}) {
        Aim aim{cell_named(operation, kernels, input, cache, whole),
                operation,
                alike,
                input,
                cache,
                whole};
        const auto cell = run.cells.find(aim.cell);
        const auto lost = spent.find(aim.cell);
        const std::uint64_t misses = lost == spent.end() ? 0 : lost->second;
        if (cell == run.cells.end() && misses >= kMissesMost) continue;
        if (cell != run.cells.end()) aim.alike = cell->second.smallest;
        const std::uint64_t sharp = cell == run.cells.end() ? 0 : cell->second.sharp;
        found.emplace_back(sharp + misses, std::move(aim));
      }
    }
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a).cell) <
           std::tie(std::get<0>(b), std::get<1>(b).cell);
  });
  std::vector<Aim> aims;
  for (auto& [wealth, aim] : found) {
    if (aims.size() == count) break;
    aims.push_back(std::move(aim));
  }
  return aims;
}

Case aimed(const Case& drawn, const Aim& aim) {
  for (const bool all : {drawn.seed % 2 == 0, true}) {
    Case made = likened(drawn, aim, all);
    const bool cheap = products_of(made.problem) <= kProductsMost;
    if (cheap && invalidity(made.problem).empty()) return made;
  }
  return drawn;
}

}  // namespace attest
