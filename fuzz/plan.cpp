// A round is so many cases of every property; the first of each few is drawn as always.
#include "fuzz/plan.hpp"

#include <utility>

#include "properties/domains/hard_cases.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kRound = 8;  // cases of each property
// The first of so many is not aimed: what nobody thought of is still drawn.
constexpr std::uint64_t kUnaimedEvery = 4;
constexpr std::uint64_t kAimedInRound = kRound - kRound / kUnaimedEvery;
// Two rounds are needed to plan by; two more are left to hard cases, which a default gate then
// tries to the last.
constexpr std::uint64_t kFirstAimed = 4 * kRound;
// Properties walk the plan of pairs from places so far apart, each one Problem after the other.
constexpr std::uint64_t kPlanStep = 37;
// Aimed cases are drawn by indices that no other case has.
constexpr std::uint64_t kAimedFrom = std::uint64_t{1} << 38;

}  // namespace

Plan::Plan(std::vector<const Property*> properties, std::uint64_t first_index)
    : properties_(std::move(properties)), first_round_(round_of(first_index)) {}

std::uint64_t Plan::round_of(std::uint64_t index) const {
  return number_of(index) / kRound;
}

bool Plan::is_aimed(std::uint64_t index) const {
  const std::uint64_t number = number_of(index);
  return property_of(index).central_to && number >= kFirstAimed && number % kUnaimedEvery != 0;
}

bool Plan::knows(std::uint64_t index) const {
  const std::uint64_t round = round_of(index);
  return round < first_round_ + 2 || rounds_.contains(round);
}

std::uint64_t Plan::draw_index(std::uint64_t index) const {
  const std::uint64_t number = number_of(index);
  if (is_aimed(index)) return kAimedFrom + number;
  if (!property_of(index).central_to || number < kFirstAimed) return number;
  // What is aimed has taken no index from the others: hard cases come first, all of them.
  return kFirstAimed + (number - kFirstAimed) / kUnaimedEvery;
}

/// Only one property asks such an operation, so its aimed cases have to bring the pairs as well.
bool Plan::asks_alone(std::uint64_t index) const {
  const auto central = property_of(index).central_to;
  return central && *central != Operation::prefill && *central != Operation::decode;
}

std::optional<std::uint64_t> Plan::pair(std::uint64_t index) const {
  const std::uint64_t at = is_aimed(index) ? number_of(index) : draw_index(index);
  const bool free =
      is_aimed(index) ? asks_alone(index) : at >= hard_cases(property_of(index).name).size();
  if (!free || at % 2 == 0) return {};
  return at / 2 + kPlanStep * (index % properties_.size());
}

const Aim* Plan::aim(std::uint64_t index) const {
  if (!is_aimed(index) || pair(index)) return nullptr;
  const auto round = rounds_.find(round_of(index));
  if (round == rounds_.end()) return nullptr;
  const std::vector<Aim>& aims = round->second[index % properties_.size()];
  const std::uint64_t place = number_of(index) % kRound;
  const std::uint64_t nth = place - place / kUnaimedEvery - 1;
  return aims.empty() ? nullptr : &aims[nth % aims.size()];
}

void Plan::seen(const Aim& aim, const Case& test_case, const Observation& seen) {
  const bool there = cell_of(aim.operation, test_case, seen) == aim.cell;
  if (!there || !is_sharp(aim.operation, seen.verdict)) ++spent_[aim.cell];
}

void Plan::counted(std::uint64_t index, const Run& run) {
  if (index % (kRound * properties_.size()) != 0) return;
  const std::uint64_t planned = round_of(index) + 1;
  if (planned < first_round_ + 2) return;
  std::vector<std::vector<Aim>>& aims = rounds_[planned];
  for (const Property* property : properties_) {
    aims.push_back(property->central_to ? aims_of(run, *property->central_to, spent_, kAimedInRound)
                                        : std::vector<Aim>{});
  }
}

}  // namespace attest
