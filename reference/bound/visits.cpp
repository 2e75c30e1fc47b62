// README, "Order".
#include "reference/bound/visits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "reference/bound/roundings.hpp"

namespace attest::bound {
namespace {

/// The reference of each visit; false where it cannot be told.
bool set_references(const Scores& scores, double lazy, State& state) {
  Reference largest, reference;
  for (Visit& visit : state.visits) {
    Reference here;
    for (std::size_t n = visit.begin; n < visit.end; ++n) {
      here = here.join(reference_of(scores.keys[n]));
    }
    largest = largest.join(here);
    visit.before = reference;
    const bool first = &visit == &state.visits.front();
    if (first || lazy == 0) {
      visit.may_rise = !first && here.high > reference.low;
      reference = largest;
    } else {
      // In powers of two, with a few roundings of its own.
      const double growth_low = (largest.low - reference.high) / kLn2 * (2 - kRoom);
      const double growth_high = (largest.high - reference.low) / kLn2 * kRoom;
      if (growth_low <= lazy && growth_high >= lazy) return false;
      visit.may_rise = growth_low > lazy;
      if (visit.may_rise) reference = largest;
    }
    visit.reference = reference;
  }
  double rises = 0;
  for (auto visit = state.visits.rbegin(); visit != state.visits.rend(); ++visit) {
    visit->later_rises = rises;
    if (visit->may_rise) ++rises;
  }
  return true;
}

}  // namespace

Reference reference_of(const Term& term) {
  const double error = term.logit_error * (1 + kEvaluation);
  return {term.logit, term.logit - error, term.logit + error, term.moved};
}

Index keys_of_part(const PrecisionPath& path, Index splits, Index keys) {
  if (splits <= 1) return keys;
  const Index even = std::max<Index>(1, (keys + splits - 1) / splits);
  if (path.split_size == kEvenSplits) return even;
  if (path.split_size == kPowerOfTwoSplits) {
    return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(even)));
  }
  return std::max<Index>(0, path.split_size);
}

std::optional<Visits> visits_of(const Row& row, const Scores& scores) {
  const PrecisionPath& path = row.path;
  const Index keys = key_length(row.problem, row.b),
              part_keys = keys_of_part(path, row.problem.num_splits, keys);
  if (path.kv_block < 1 || path.interleaved_accumulators < 1 || part_keys < 1) return std::nullopt;
  if (!(path.rescale_threshold_log2 >= 0)) return std::nullopt;
  std::map<Index, std::map<Index, State>> found;  // by part, then by stream
  for (std::size_t n = 0; n < scores.keys.size(); ++n) {
    const Index part = scores.keys[n].j / part_keys;
    const Index number = (scores.keys[n].j - part * part_keys) / path.kv_block;
    State& state = found[part][number % path.interleaved_accumulators];
    const Index first_key = part * part_keys + number * path.kv_block;
    if (state.visits.empty() || state.visits.back().first_key != first_key) {
      state.visits.emplace_back();
      state.visits.back().begin = n;
      state.visits.back().first_key = first_key;
    }
    state.visits.back().end = n + 1;
  }
  Visits visits{{}, std::min(path.kv_block, std::min(part_keys, keys))};
  for (auto& [number, states] : found) {
    visits.parts.emplace_back();
    for (auto& [stream, state] : states) {
      if (path.kv_blocks_descending) std::reverse(state.visits.begin(), state.visits.end());
      if (!set_references(scores, path.rescale_threshold_log2, state)) return std::nullopt;
      visits.parts.back().push_back(state);
    }
  }
  return visits;
}

}  // namespace attest::bound
