// Counting, and nothing else.
#include "fuzz/tally.hpp"

#include <algorithm>
#include <string>

#include "fuzz/features.hpp"
#include "fuzz/steering.hpp"

namespace attest {
namespace {

void count_reason(PropertyTally& tally, const std::string& why) {
  const std::string reason = why.empty() ? "no reason given" : why;
  const bool room = tally.declines.size() < kDeclinesMax || tally.declines.contains(reason);
  ++tally.declines[room ? reason : std::string(kOtherReasons)];
}

void count_outcome(PropertyTally& tally, const Case& test_case, const Verdict& verdict) {
  ++tally.cases;
  switch (verdict.outcome) {
    case Outcome::holds:
      // The first that holds sets the place even when its margin is 0.
      if (++tally.held == 1 || verdict.margin > tally.margin_max) {
        tally.margin_max = verdict.margin;
        tally.margin_case = test_case;
        tally.margin_where = verdict.where;
      }
      break;
    case Outcome::violated:
      ++tally.violated;
      break;
    case Outcome::vacuous:
      ++tally.vacuous;
      break;
    case Outcome::declined:
      ++tally.declined;
      count_reason(tally, verdict.why);
      break;
    case Outcome::faulted:
      ++tally.faulted;
      break;
  }
}

}  // namespace

std::uint64_t Run::cases() const {
  std::uint64_t sum = 0;
  for (const PropertyTally& tally : tallies) sum += tally.cases;
  return sum;
}

std::uint64_t Run::judged() const {
  std::uint64_t sum = 0;
  for (const PropertyTally& tally : tallies) sum += tally.judged();
  return sum;
}

void open_tallies(Run& run, std::span<const Property* const> properties) {
  for (const Property* property : properties) {
    PropertyTally& tally = run.tallies.emplace_back();
    tally.property = property->name;
    tally.statement = property->statement;
  }
}

void note_offered(Run& run, const Subject& subject) {
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const auto operation = static_cast<Operation>(n);
    if (offers(subject, operation)) run.offered.push_back(operation);
  }
}

bool fails(const Observation& seen) {
  return seen.verdict.outcome == Outcome::violated || seen.verdict.outcome == Outcome::faulted;
}

void count_redrawn(Run& run, std::size_t property, std::span<const std::string> declines) {
  PropertyTally& tally = run.tallies[property];
  tally.redrawn += declines.size();
  for (const std::string& why : declines) count_reason(tally, why);
}

void count(Run& run, std::size_t property, const Case& test_case, const Observation& seen) {
  const Verdict& verdict = seen.verdict;
  PropertyTally& tally = run.tallies[property];
  count_outcome(tally, test_case, verdict);
  run.counters += seen.counters;
  for (const Power& power : verdict.power) {
    PowerTally& told = run.power[power.wrong_answer];
    ++told.cases;
    if (power.refused) ++told.refused;
  }
  for (const auto& [name, size] : seen.declared) {
    WidestDeclaration& widest = run.widest[name];
    if (widest.property.empty() || size > widest.size) widest = {size, tally.property, test_case};
  }
  const auto known = std::ranges::find(catalogue(), tally.property, &Property::name);
  if (known != catalogue().end()) count_sight(run, *known, test_case, seen);
  if (verdict.outcome != Outcome::holds && !fails(seen)) return;
  if (verdict.compared > 0) tally.compared += static_cast<std::uint64_t>(verdict.compared);
  for (const std::string& feature : features_of(test_case)) ++run.features[feature];
}

}  // namespace attest
