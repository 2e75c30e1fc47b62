// Every question to a fresh subject: what an earlier one left behind cannot answer.
#include "fuzz/confirmation.hpp"

#include "fuzz/run.hpp"
#include "fuzz/tally.hpp"
#include "properties/fills.hpp"

namespace attest {
namespace {

Observation seen_afresh(const std::function<Subject()>& make_subject, const PropertyCase& check,
                        const ShrinkEvents& events) {
  const Subject fresh = make_subject();
  if (events.about_to_run) events.about_to_run(check);
  begin_under(fresh, check.setting);
  return observe(fresh, property_named(check.property), check.test_case);
}

std::string explained(const Subject& subject, const PropertyCase& check, Verdict verdict) {
  begin_under(subject, check.setting);
  explain(subject, property_named(check.property), check.test_case.problem,
          make_values(check.test_case), verdict);
  return verdict.why;
}

}  // namespace

std::optional<Finding> confirmed(const std::function<Subject()>& make_subject,
                                 const PropertyCase& check, const Observation& seen,
                                 const CampaignOptions& options, const ShrinkEvents& events,
                                 Observation& again) {
  const auto stopped = [&] { return events.stop && events.stop(); };
  // Whoever is stopped keeps what was seen: there is no time to see it again.
  again = stopped() ? seen : seen_afresh(make_subject, check, events);
  if (stopped()) again = seen;
  if (!fails(again)) return std::nullopt;
  const Subject shrinking = make_subject();
  Finding finding = shrink_observed(shrinking, check, again, options, events);
  finding.version = version();
  finding.digest = digest_of(again);
  finding.found_why = again.verdict.why;
  if (stopped()) return finding;
  finding.found_why = explained(make_subject(), check, again.verdict);
  if (finding.shrunk == finding.found) return finding;
  const PropertyCase small{check.property, finding.shrunk, check.setting};
  const Observation last = seen_afresh(make_subject, small, events);
  if (stopped()) return finding;
  finding.digest = digest_of(last);
  if (kind_of(last) == kind_of(again)) return finding;
  finding.shrunk = finding.found;
  finding.verdict = again.verdict;
  finding.verdict.why = finding.found_why;
  finding.digest = digest_of(again);
  return finding;
}

}  // namespace attest
