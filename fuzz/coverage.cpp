// Names come from the table of dimensions, so that what was drawn and what is accepted are called
// alike.
#include "fuzz/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "properties/domains/fitted.hpp"

namespace attest {
namespace {

/// An extent, and the dimension of which it is a part.
struct Extent {
  std::string_view name, dimension;
  Index Problem::*value;
};

constexpr Extent kExtents[] = {
    {"batch", "batch", &Problem::batch},
    {"num_heads_q", "heads", &Problem::num_heads_q},
    {"num_heads_kv", "heads", &Problem::num_heads_kv},
    {"seqlen_q", "seqlen_q", &Problem::seqlen_q},
    {"seqlen_kv", "seqlen_kv", &Problem::seqlen_kv},
    {"head_dim", "head_dim", &Problem::head_dim},
    {"head_dim_v", "head_dim", &Problem::head_dim_v},
    {"page_size", "page_size", &Problem::page_size},
    {"ring", "ring", &Problem::ring},
    {"splits", "splits", &Problem::num_splits},
    {"new tokens", "chunk", &Problem::chunk},
};

}  // namespace

Coverage::Coverage(const Served& served) : served_(served) {
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const std::size_t kinds = served.operations[n].pairs.kinds.size();
    met_[n].pairs.assign(kinds, std::vector<bool>(kinds));
  }
}

void Coverage::count(std::string_view property, const Problem& problem) {
  if (const auto operation = operation_for(property, problem, served_)) count(*operation, problem);
}

void Coverage::count(Operation operation, const Problem& problem) {
  Met& met = met_[static_cast<std::size_t>(operation)];
  for (const Extent& extent : kExtents) {
    if (!dimension_named(extent.dimension).asked_by(operation)) continue;
    const Index value = problem.*extent.value;
    Range& range =
        met.ranges.try_emplace(std::string(extent.name), Range{value, value}).first->second;
    range.least = std::min(range.least, value);
    range.most = std::max(range.most, value);
  }
  for (const Dimension& dimension : dimensions()) {
    if (dimension.asked_by(operation)) met.values.insert(dimension.word(problem));
  }
  const auto kinds = kinds_of(served_.of(operation).pairs, operation, problem);
  for (const std::size_t a : kinds) {
    for (const std::size_t b : kinds) met.pairs[a][b] = true;
  }
}

std::map<Operation, CoveredTally> Coverage::tallies() const {
  std::map<Operation, CoveredTally> tallies;
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const ServedOperation& there = served_.operations[n];
    if (!there.base) continue;
    const Met& met = met_[n];
    CoveredTally& tally = tallies[static_cast<Operation>(n)];
    tally.ranges = met.ranges;
    tally.values = there.values.size();
    tally.pairs = there.pairs.count();
    std::ranges::copy_if(there.values, std::back_inserter(tally.unmet_values),
                         [&](const std::string& value) { return !met.values.contains(value); });
    for (std::size_t a = 0; a < there.pairs.kinds.size(); ++a) {
      for (std::size_t b = a + 1; b < there.pairs.kinds.size(); ++b) {
        if (!there.pairs.together[a][b] || met.pairs[a][b]) continue;
        tally.unmet_pairs.push_back(
            fmt::format("{} with {}", there.pairs.kinds[a], there.pairs.kinds[b]));
      }
    }
  }
  return tallies;
}

}  // namespace attest
