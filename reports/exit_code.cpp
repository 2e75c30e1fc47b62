// What a run's findings and tallies mean for the caller: the one place where 0, 1 and 2 are told
// apart. A continuous-integration job must never mistake "could not tell" for either answer.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/setting.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"
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

std::string_view name_of_central(Operation operation) {
  for (const Property& property : catalogue()) {
    if (property.central_to == operation) return property.name;
  }
  return {};
}

bool offers(const Run& run, Operation operation) {
  return std::ranges::find(run.offered, operation) != run.offered.end();
}

const PropertyTally* central_tally(const Run& run, Operation operation) {
  const auto tally =
      std::ranges::find(run.tallies, name_of_central(operation), &PropertyTally::property);
  return tally == run.tallies.end() ? nullptr : &*tally;
}

bool any_judged(const Run& run) {
  return std::ranges::any_of(run.offered, [&run](Operation operation) {
    const PropertyTally* tally = central_tally(run, operation);
    return tally != nullptr && tally->judged() > 0;
  });
}

/// Of an operation that is offered but was never judged: a kernel that nobody looked at would pass.
/// Where --where has narrowed the run, those that have nothing of what was asked for may be: the
/// reason names them, unless there is no other.
std::string unjudged(const Run& run) {
  if (!run.where.empty() && any_judged(run)) return {};
  for (const Operation operation : run.offered) {
    const std::string_view central = name_of_central(operation);
    const PropertyTally* tally = central_tally(run, operation);
    if (tally == nullptr || tally->judged() > 0 || tally->cases == 0) continue;
    const std::string lead =
        fmt::format("{} is offered, but {} judged no case of it", name_of(operation), central);
    const auto most = std::ranges::max_element(tally->declines, {},
                                               [](const auto& reason) { return reason.second; });
    if (most == tally->declines.end()) {
      return fmt::format("{}: more cases are needed (--cases, --budget)", lead);
    }
    return fmt::format(
        "{}: {} draws were declined, {} of them because of '{}'; draw what it accepts (--where)",
        lead, tally->declined + tally->redrawn, most->second, one_line(most->first));
  }
  return {};
}

/// On the emulator the same check gives the same bits, so only a GPU may be what came and went.
std::string disorder(const Run& run) {
  if (run.unreproduced.empty()) return {};
  const Unreproduced& first = run.unreproduced.front();
  EmulationOptions emulation = without_drawing(run.emulation);
  if (first.setting) {
    emulation.numerics = first.setting->numerics;
    emulation.schedule = first.setting->schedule;
  }
  return fmt::format(
      "{} checks failed and did not fail again on a fresh worker, the first with '{}'. {} {}",
      run.unreproduced.size(), one_line(first.what),
      first.setting
          ? "The emulator repeats itself, so the testbed is in disorder: please report it, with"
          : "A race on a GPU comes and goes like this, and so does a testbed in disorder: run the "
            "command several times, and report it where it never fails:",
      replay_line(run.subject, first.property, first.test_case, emulation,
                  first.setting && draws(run.emulation)));
}

// Of a stratum in which half of the cases could tell, so many would all be blind once in 2^16 runs.
constexpr std::uint64_t kStratumLeast = 16;

/// Cases of one kind, enough of them, of which not one could have refused a wrong answer; or an
/// operation of which most cases promise nothing of most numbers: then most of what is drawn is
/// accepted whatever it is, and calling the rest a proof would mislead.
std::string blindness(const Run& run) {
  for (const auto& [stratum, sight] : run.sight) {
    if (sight.answered < kStratumLeast) continue;
    if (2 * sight.unbounded > sight.answered) {
      return fmt::format(
          "{}: as the subject declares its rounding, nothing is promised in {} of "
          "{} cases, so nothing was proven of them",
          stratum, sight.unbounded, sight.answered);
    }
    if (sight.blind == sight.answered) {
      return fmt::format(
          "{}: as the subject declares its rounding, none of {} cases could have "
          "refused a wrong answer",
          stratum, sight.answered);
    }
  }
  return {};
}

std::string proven(const Run& run, std::uint64_t compared) {
  std::string reason = fmt::format("nothing violated in {} judged cases, {} numbers compared",
                                   run.judged(), compared);
  if (!run.where.empty()) {
    reason = fmt::format(
        "nothing violated in {} judged cases where {}, {} numbers compared; "
        "nothing is said of other problems",
        run.judged(), run.where, compared);
  }
  std::vector<std::string> absent, declined;
  for (const std::string& name : names_of(run, Standing::declined)) {
    const auto property = std::ranges::find(catalogue(), name, &Property::name);
    const bool known = property != catalogue().end() && property->central_to;
    if (known && !offers(run, *property->central_to)) {
      absent.emplace_back(name_of(*property->central_to));
    } else {
      declined.push_back(name);
    }
  }
  if (!absent.empty()) reason += fmt::format("; not offered: {}", joined(absent, ", "));
  if (!declined.empty()) reason += fmt::format("; always declined: {}", joined(declined, ", "));
  return reason;
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
  if (const std::string trouble = disorder(run); !trouble.empty()) return {kCouldNotTell, trouble};
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
  if (const std::string why = unjudged(run); !why.empty()) return {kCouldNotTell, why};
  if (const std::string why = blindness(run); !why.empty()) return {kCouldNotTell, why};
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
  return {kProven, proven(run, compared)};
}

int exit_code_of(const Run& run) {
  return conclusion_of(run).exit_code;
}

}  // namespace attest
