// replay: the same case again, bit for bit, from a line, a finding's folder or anybody's tensors.
#include "fuzz/replay.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "properties/fills.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/emulation.hpp"
#include "reports/commands/meant_file.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

struct Asked {
  std::string property, subject, what;
  Problem problem;
  Values values;
  EmulationOptions emulation = {};
  std::optional<StoredFinding> finding = {};
};

Asked asked_of(const ReplayOptions& options) {
  const std::filesystem::path path = options.what;
  std::error_code failed;
  Asked asked;
  if (std::filesystem::is_directory(path, failed)) {
    StoredFinding stored = read_finding(path);
    asked = {stored.property,          stored.subject,           print(stored.test_case),
             stored.test_case.problem, std::move(stored.values), stored.emulation};
    asked.finding = std::move(stored);
  } else if (is_meant_as_file(options.what)) {
    TensorsFile file = read_tensors_file(path, options.problem);
    asked = {"", "", print(file.problem), std::move(file.problem), std::move(file.values)};
  } else {
    const PropertyCase check = parse_check(options.what);
    asked = {check.property, "", print(check.test_case), check.test_case.problem,
             make_values(check.test_case)};
    if (check.setting) asked.emulation.numerics = check.setting->numerics;
    if (check.setting) asked.emulation.schedule = check.setting->schedule;
  }
  if (!options.property.empty()) asked.property = property_named(options.property).name;
  if (options.subject) asked.subject = *options.subject;
  if (options.numerics) asked.emulation.numerics = *options.numerics;
  if (options.checks) asked.emulation.checks = *options.checks;
  if (options.schedule) asked.emulation.schedule = *options.schedule;
  if (asked.subject.empty()) asked.subject = "ours";
  return asked;
}

void print_replay(const Replay& one) {
  const Verdict& verdict = one.seen.verdict;
  say("{}: {}", one.property, word_of(verdict.outcome));
  if (verdict.compared > 0) {
    say(", margin {} at {}, {} numbers", short_number(verdict.margin), place_of(verdict.where),
        verdict.compared);
  }
  if (!verdict.why.empty()) say("\n  {}", verdict.why);
  if (one.seen.replies > 0) {
    say("\n  bits of {} replies: o {:016x} lse {:016x}", one.seen.replies, one.seen.o_digest,
        one.seen.lse_digest);
  }
  say("\n");
}

/// What of the circumstances is not as it was when the finding was made, and whether the subject
/// wrote the same bits all the same.
void print_comparison(const Asked& asked, const Replay& one) {
  const StoredFinding& finding = *asked.finding;
  if (one.property != finding.property || finding.digest == 0) return;
  std::vector<std::string> others;
  if (asked.subject != finding.subject) {
    others.push_back(fmt::format("another subject ('{}' then)", one_line(finding.subject)));
  }
  if (finding.subject_hash != 0 &&
      subject_hash_of(plugin_named(asked.subject)) != finding.subject_hash) {
    others.push_back("another file of the subject");
  }
  if (finding.version != version()) {
    others.push_back(fmt::format("another version of attest ({} then)", one_line(finding.version)));
  }
  if (spelled(asked.emulation) != finding.emulation) {
    others.push_back(fmt::format("another emulation ({} then)", text_of(finding.emulation)));
  }
  const bool same_bits = digest_of(one.seen) == finding.digest;
  const bool same_outcome = one.seen.verdict.outcome == finding.verdict.outcome;
  const std::string verdict =
      same_outcome ? "" : fmt::format("; it was {}", word_of(finding.verdict.outcome));
  say("  {} when it was found{}", same_bits ? "the same bits as" : "other bits than", verdict);
  if (!others.empty()) {
    say("; now: {}", joined(others, ", "));
  } else if (!same_bits) {
    say(": same subject, version and emulation, so the subject does not repeat itself");
  }
  say("\n");
}

}  // namespace

int replay(const ReplayOptions& options) {
  const Asked asked = asked_of(options);
  const auto make =
      subject_maker({asked.subject, options.device, options.case_seconds, asked.emulation});
  const Subject subject = make();
  say("{}, {}: replaying '{}' on '{}' ({})\n", version_text(), text_of(spelled(asked.emulation)),
      asked.what, asked.subject, subject.description.numerics);
  const Setting setting{asked.emulation.numerics, *asked.emulation.schedule};
  const auto replays = replay(subject, asked.property, asked.problem, asked.values, setting);
  for (const Replay& one : replays) {
    print_replay(one);
    if (asked.finding) print_comparison(asked, one);
  }
  return exit_code_of(replays);
}

}  // namespace attest
