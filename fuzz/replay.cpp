// The loop over properties, and what its verdicts mean together.
#include "fuzz/replay.hpp"

#include "fuzz/tally.hpp"

namespace attest {

std::vector<Replay> replay(const Subject& subject, std::string_view property,
                           const Problem& problem, const Values& values, const Setting& setting) {
  std::vector<Replay> replays;
  const auto add = [&](const Property& each) {
    begin_under(subject, setting);
    replays.push_back({std::string(each.name), observe(subject, each, problem, values)});
    begin_under(subject, setting);
    explain(subject, each, problem, values, replays.back().seen.verdict);
  };
  if (!property.empty()) {
    add(property_named(property));
    return replays;
  }
  for (const Property& each : catalogue()) add(each);
  return replays;
}

int exit_code_of(const std::vector<Replay>& replays) {
  bool held = false;
  for (const Replay& one : replays) {
    if (fails(one.seen)) return 1;
    held = held || one.seen.verdict.outcome == Outcome::holds;
  }
  return held ? 0 : 2;
}

}  // namespace attest
