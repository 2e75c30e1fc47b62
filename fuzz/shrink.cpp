// Greedy descent: every direction is walked as long as it leads to a smaller case that still fails,
// and all directions are tried again until none does.
#include "fuzz/shrink.hpp"

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "fuzz/candidates.hpp"
#include "properties/fills.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

class Descent {
 public:
  Descent(const Subject& subject, const Property& property, const CampaignOptions& options,
          const ShrinkEvents& events, std::string kind, Finding start)
      : subject_(subject),
        property_(property),
        options_(options),
        events_(events),
        kind_(std::move(kind)),
        finding_(std::move(start)),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.shrink_seconds))) {
    tried_.insert(print(finding_.shrunk));
  }

  Finding run() {
    bool moved = true;
    while (moved && !spent()) {
      moved = false;
      for (const ShrinkDirection& direction : shrink_directions()) {
        while (step(direction)) moved = true;
      }
    }
    if (events_.stop && events_.stop()) return std::move(finding_);
    begin_under(subject_, finding_.setting);
    const Problem& problem = finding_.shrunk.problem;
    explain(subject_, property_, problem, make_values(finding_.shrunk), finding_.verdict);
    return std::move(finding_);
  }

 private:
  bool spent() const {
    return finding_.shrink_steps >= options_.shrink_steps || Clock::now() >= deadline_ ||
           (events_.stop && events_.stop());
  }

  bool step(const ShrinkDirection& direction) {
    for (const Case& candidate : direction.smaller(finding_.shrunk)) {
      if (!tried_.insert(print(candidate)).second) continue;
      if (spent()) return false;
      if (events_.about_to_run)
        events_.about_to_run({finding_.property, candidate, finding_.setting});
      ++finding_.shrink_steps;
      begin_under(subject_, finding_.setting);
      const Observation seen = observe(subject_, property_, candidate);
      // A worker that dies of the signal that stops us has not shown anything.
      if (events_.stop && events_.stop()) return false;
      if (kind_of(seen) != kind_) continue;
      finding_.shrunk = candidate;
      finding_.verdict = seen.verdict;
      finding_.digest = digest_of(seen);
      return true;
    }
    return false;
  }

  const Subject& subject_;
  const Property& property_;
  const CampaignOptions& options_;
  const ShrinkEvents& events_;
  const std::string kind_;
  Finding finding_;
  const Clock::time_point deadline_;
  std::set<std::string> tried_;
};

}  // namespace

Finding shrink_observed(const Subject& subject, const PropertyCase& check, const Observation& seen,
                        const CampaignOptions& options, const ShrinkEvents& events) {
  Finding start;
  start.property = check.property;
  start.found = start.shrunk = check.test_case;
  start.setting = check.setting;
  start.verdict = seen.verdict;
  start.digest = digest_of(seen);
  return Descent(subject, property_named(check.property), options, events, kind_of(seen),
                 std::move(start))
      .run();
}

Finding shrink(const Subject& subject, const Property& property, const Case& test_case,
               const Verdict& verdict, const CampaignOptions& options) {
  Observation seen;
  if (verdict.outcome == Outcome::faulted) seen = observe(subject, property, test_case);
  if (seen.verdict.outcome != verdict.outcome) {
    seen = {};
    seen.verdict = verdict;
  }
  return shrink_observed(subject, {std::string(property.name), test_case}, seen, options, {});
}

}  // namespace attest
