// A pair is asked as one example's Problem with the other's value put in, then the other way round:
// an example may hold a companion without which its value is not accepted.
#include "properties/domains/pairs.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace attest {
namespace {

/// A kind of value, and a Problem that has it.
struct Example {
  std::size_t dimension;
  std::size_t kind;
  const Problem* problem;
};

bool is_paired(const Dimension& dimension, Operation operation) {
  return dimension.kind && dimension.asked_by(operation);
}

/// The first Problem of every kind, in the order of the dimensions: the base's kinds come first.
std::vector<Example> examples_of(Pairs& pairs, Operation operation,
                                 const AcceptedValues& accepted) {
  std::vector<Example> examples;
  for (std::size_t n = 0; n < accepted.size(); ++n) {
    const Dimension& dimension = dimensions()[n];
    if (!is_paired(dimension, operation)) continue;
    for (const Problem& problem : accepted[n]) {
      const auto [at, is_new] = pairs.number.emplace(dimension.kind(problem), pairs.kinds.size());
      if (!is_new) continue;
      pairs.kinds.push_back(at->first);
      examples.push_back({n, at->second, &problem});
    }
  }
  return examples;
}

/// `from` with the value that `example` stands for, where that is accepted.
std::optional<Problem> with(const Problem& from, const Example& example, const Accepts& accepts) {
  const Dimension& dimension = dimensions()[example.dimension];
  Problem made = from;
  dimension.take(made, *example.problem);
  follow_edit(made, from);
  if (!accepts(made)) return {};
  return made;
}

std::optional<Problem> with_both(const Example& a, const Example& b, const Pairs& pairs,
                                 const Accepts& accepts) {
  for (const auto& [from, other] : {std::pair{&a, &b}, {&b, &a}}) {
    auto made = with(*from->problem, *other, accepts);
    if (!made) continue;
    const bool still = dimensions()[a.dimension].kind(*made) == pairs.kinds[a.kind] &&
                       dimensions()[b.dimension].kind(*made) == pairs.kinds[b.kind];
    if (still) return made;
  }
  return {};
}

/// Pairs that no Problem of the plan has yet.
class Missing {
 public:
  explicit Missing(const Pairs& pairs) : open_(pairs.together) {}

  bool has(std::size_t a, std::size_t b) const { return open_[a][b]; }
  void close(std::size_t a, std::size_t b) { open_[a][b] = open_[b][a] = false; }
  void close_all(const std::vector<std::size_t>& kinds) {
    for (const std::size_t a : kinds) {
      for (const std::size_t b : kinds) close(a, b);
    }
  }
  std::size_t of(std::size_t kind, const std::vector<std::size_t>& others) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(others, [&](std::size_t other) { return open_[kind][other]; }));
  }

 private:
  std::vector<std::vector<bool>> open_;
};

/// `row`, in every dimension changed to the kind that brings the most new pairs, if one does.
Problem filled(Problem row, const std::pair<std::size_t, std::size_t>& seed, Operation operation,
               const Pairs& pairs, const std::vector<Example>& examples, const Missing& missing,
               const Accepts& accepts) {
  const auto kind_of = [&](std::size_t n) {
    const auto at = pairs.number.find(dimensions()[n].kind(row));
    return at == pairs.number.end() ? pairs.kinds.size() : at->second;
  };
  for (auto first = examples.begin(); first != examples.end();) {
    const std::size_t n = first->dimension;
    const auto last = std::find_if(first, examples.end(),
                                   [n](const Example& example) { return example.dimension != n; });
    const auto begin = std::exchange(first, last);
    if (n == seed.first || n == seed.second) continue;
    std::vector<std::size_t> others = kinds_of(pairs, operation, row);
    const std::size_t now = kind_of(n);
    std::erase(others, now);
    const std::size_t gained = now == pairs.kinds.size() ? 0 : missing.of(now, others);
    const Example* best = nullptr;
    std::size_t most = gained;
    for (auto example = begin; example != last; ++example) {
      const std::size_t gain = missing.of(example->kind, others);
      if (gain > most) {
        most = gain;
        best = &*example;
      }
    }
    if (best == nullptr) continue;
    if (auto better = with(row, *best, accepts)) row = std::move(*better);
  }
  return row;
}

}  // namespace

std::uint64_t Pairs::count() const {
  std::uint64_t sum = 0;
  for (const std::vector<bool>& row : together) {
    sum += static_cast<std::uint64_t>(std::ranges::count(row, true));
  }
  return sum / 2;
}

Pairs pairs_of(Operation operation, const AcceptedValues& accepted, const Accepts& accepts) {
  Pairs pairs;
  const std::vector<Example> examples = examples_of(pairs, operation, accepted);
  pairs.together.assign(pairs.kinds.size(), std::vector<bool>(pairs.kinds.size()));
  for (const Example& a : examples) {
    for (const Example& b : examples) {
      if (b.dimension <= a.dimension || !with_both(a, b, pairs, accepts)) continue;
      pairs.together[a.kind][b.kind] = pairs.together[b.kind][a.kind] = true;
    }
  }
  return pairs;
}

std::vector<std::size_t> kinds_of(const Pairs& pairs, Operation operation, const Problem& problem) {
  std::vector<std::size_t> numbers;
  for (const Dimension& dimension : dimensions()) {
    if (!is_paired(dimension, operation)) continue;
    const auto at = pairs.number.find(dimension.kind(problem));
    if (at != pairs.number.end()) numbers.push_back(at->second);
  }
  return numbers;
}

std::vector<Problem> plan_of(Operation operation, const Pairs& pairs,
                             const AcceptedValues& accepted, const Accepts& accepts) {
  Pairs same;
  const std::vector<Example> examples = examples_of(same, operation, accepted);
  Missing missing(pairs);
  std::vector<Problem> plan;
  for (const Example& a : examples) {
    for (const Example& b : examples) {
      if (b.dimension <= a.dimension || !missing.has(a.kind, b.kind)) continue;
      missing.close(a.kind, b.kind);
      const auto seed = with_both(a, b, pairs, accepts);
      if (!seed) continue;
      plan.push_back(
          filled(*seed, {a.dimension, b.dimension}, operation, pairs, examples, missing, accepts));
      missing.close_all(kinds_of(pairs, operation, plan.back()));
    }
  }
  return plan;
}

}  // namespace attest
