// A round is so many cases of every property; the first of each few is drawn as always.
#include "fuzz/plan.hpp"

#include <utility>

#include "properties/domains/hard_cases.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kRound = 8;  // cases of each property
// Of so many the first is drawn as always, for what nobody thought of, the second is planned, and
// the others are aimed.
constexpr std::uint64_t kTurn = 4;
constexpr std::uint64_t kAimedInTurn = 2;
constexpr std::uint64_t kAimedInRound = kRound / kTurn * kAimedInTurn;
// Two rounds are needed to plan by; two more are left to hard cases, which a default gate then
// tries to the last.
constexpr std::uint64_t kFirstAimed = 4 * kRound;
// Properties walk the plan of pairs from places so far apart, each one Problem after the other.
constexpr std::uint64_t kPlanStep = 37;
// Aimed and planned cases are drawn by indices that no other case has.
constexpr std::uint64_t kAimedFrom = std::uint64_t{1} << 38;

}  // namespace

Plan::Plan(std::vector<const Property*> properties, std::uint64_t first_index)
    : properties_(std::move(properties)), first_round_(round_of(first_index)) {}

std::uint64_t Plan::round_of(std::uint64_t index) const {
  return number_of(index) / kRound;
}

bool Plan::takes_turns(std::uint64_t index) const {
  return property_of(index).central_to && number_of(index) >= kFirstAimed;
}

bool Plan::knows(std::uint64_t index) const {
  const std::uint64_t round = round_of(index);
  return round < first_round_ + 2 || rounds_.contains(round);
}

std::uint64_t Plan::draw_index(std::uint64_t index) const {
  const std::uint64_t number = number_of(index);
  if (!takes_turns(index)) return number;
  if (number % kTurn != 0) return kAimedFrom + number;
  // What is aimed or planned has taken no index from the others: all hard cases come.
  return kFirstAimed + (number - kFirstAimed) / kTurn;
}

std::optional<std::uint64_t> Plan::pair(std::uint64_t index) const {
  const std::uint64_t number = number_of(index), apart = kPlanStep * (index % properties_.size());
  if (takes_turns(index)) {
    return number % kTurn == 1 ? std::optional(number / kTurn + apart) : std::nullopt;
  }
  const bool hard = number < hard_cases(property_of(index).name).size();
  return !hard && number % 2 == 1 ? std::optional(number / 2 + apart) : std::nullopt;
}

const Aim* Plan::aim(std::uint64_t index) const {
  const std::uint64_t number = number_of(index), turn = number % kTurn;
  if (!takes_turns(index) || turn < kTurn - kAimedInTurn) return nullptr;
  const auto round = rounds_.find(round_of(index));
  if (round == rounds_.end()) return nullptr;
  const std::vector<Aim>& aims = round->second[index % properties_.size()];
  const std::uint64_t nth = number % kRound / kTurn * kAimedInTurn + turn - (kTurn - kAimedInTurn);
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
