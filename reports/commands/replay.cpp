// replay: the same case again, bit for bit, from a line, a finding's folder or anybody's tensors.
#include "fuzz/replay.hpp"

#include <fmt/format.h>

#include <filesystem>

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
};

Asked asked_of(const ReplayOptions& options) {
  const std::filesystem::path path = options.what;
  std::error_code failed;
  Asked asked;
  if (std::filesystem::is_directory(path, failed)) {
    StoredFinding stored = read_finding(path);
    asked = {stored.property,          stored.subject,           print(stored.test_case),
             stored.test_case.problem, std::move(stored.values), stored.emulation};
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
  for (const Replay& one : replays) print_replay(one);
  return exit_code_of(replays);
}

}  // namespace attest
