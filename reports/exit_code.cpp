// What a run's findings and tallies mean for the caller: the one place where 0, 1 and 2 are told
// apart. A continuous-integration job must never mistake "could not tell" for either answer.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr int kProven = 0, kSubjectWrong = 1, kCouldNotTell = 2;

std::vector<std::string> names_of(const Run& run, Standing standing) {
  std::vector<std::string> names;
  for (const PropertyTally& tally : run.tallies) {
    if (standing_of(tally) == standing) names.push_back(tally.property);
  }
  return names;
}

}  // namespace

Conclusion conclusion_of(const Run& run) {
  // A failure counts however the run ended: what was seen was seen.
  std::vector<std::string> failed = names_of(run, Standing::failed);
  for (const Finding& finding : run.findings) {
    if (std::find(failed.begin(), failed.end(), finding.property) == failed.end()) {
      failed.push_back(finding.property);
    }
  }
  if (!failed.empty()) {
    const std::string stopped =
        run.interrupted ? fmt::format("interrupted after {} cases; ", run.cases()) : "";
    return {kSubjectWrong,
            fmt::format("{}the subject is wrong: {}", stopped, joined(failed, ", "))};
  }
  if (!run.error.empty()) {
    return {kCouldNotTell, fmt::format("the testbed could not go on: {}", run.error)};
  }
  if (run.interrupted) {
    return {kCouldNotTell,
            fmt::format("interrupted after {} cases: nothing was violated until then, which "
                        "proves too little",
                        run.cases())};
  }
  std::uint64_t compared = 0, declined = 0;
  for (const PropertyTally& tally : run.tallies) {
    compared += tally.compared;
    declined += tally.declined;
  }
  if (compared == 0) {
    const bool refused_all = run.cases() > 0 && declined == run.cases();
    return {kCouldNotTell, refused_all ? "the subject declined every case: nothing was compared"
                                       : "nothing was compared"};
  }
  // A property that could have been judged but never was would pass whatever the subject does.
  if (const auto unproven = names_of(run, Standing::unproven); !unproven.empty()) {
    return {kCouldNotTell,
            fmt::format("no case compared a number for {}: more cases are needed (--cases, "
                        "--budget)",
                        joined(unproven, ", "))};
  }
  // The bounds accepted this wrong answer in every case in which it was tried.
  if (const auto blind = split_power(run).blind; !blind.empty()) {
    return {kCouldNotTell,
            fmt::format("nothing was violated, but no case could have told these wrong answers "
                        "from the right one: {}; more cases are needed (--cases, --budget)",
                        joined(blind, ", "))};
  }
  std::string reason =
      fmt::format("nothing violated in {} cases, {} numbers compared", run.cases(), compared);
  if (const auto untested = names_of(run, Standing::declined); !untested.empty()) {
    reason += fmt::format("; not offered by the subject: {}", joined(untested, ", "));
  }
  return {kProven, reason};
}

int exit_code_of(const Run& run) {
  return conclusion_of(run).exit_code;
}

}  // namespace attest
