// The order of things: the report folder is tried, the first line printed, the subject opened, and
// from then on nothing that was seen is lost: every case line is on disk before it is launched,
// every finding as soon as it is one.
#include "reports/commands/session.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <system_error>

#include "fuzz/setting.hpp"
#include "reference/text.hpp"
#include "reports/commands/emulation.hpp"
#include "reports/commands/interruption.hpp"
#include "reports/commands/session_reports.hpp"
#include "reports/commands/standard_streams.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string budget_text(const CampaignOptions& campaign) {
  std::string text;
  if (campaign.budget_cases) text = fmt::format("{} cases", *campaign.budget_cases);
  if (campaign.budget_seconds) {
    text += fmt::format("{}{} s", text.empty() ? "" : " or ", *campaign.budget_seconds);
  }
  return text.empty() ? "until interrupted" : text;
}

/// A word that schedule_error() lets pass; nothing: drawn.
std::optional<std::uint64_t> schedule_of(const std::string& word) {
  std::uint64_t seed = 0;
  const auto [stop, failed] = std::from_chars(word.data(), word.data() + word.size(), seed);
  return failed == std::errc() ? std::optional(seed) : std::nullopt;
}

Run run_watched(const std::function<Subject()>& make_subject, const CampaignCommand& options,
                const CampaignOptions& campaign, std::string_view purpose,
                const SessionHooks& hooks, SessionReports& reports) {
  const fs::path report = options.report;
  Journal journal(report / "cases.log");
  const std::atomic<bool>& stop = interruption();
  const std::string where =
      campaign.where.text.empty() ? "" : fmt::format(" where {}", campaign.where.text);
  say("{}, seed {}, {}: {} '{}'{} with {}; report in {}\n", version_text(), campaign.seed,
      text_of(campaign.emulation), purpose, one_line(options.subject.subject), where,
      budget_text(campaign), one_line(report.string()));
  std::fflush(stdout);

  Progress progress(stdout);
  CampaignEvents events;
  events.about_to_run = [&](const PropertyCase& check) { journal.line(print(check)); };
  events.found = [&](const Finding& finding) {
    progress.line(reports.keep(finding));
    if (hooks.found) hooks.found(finding);
  };
  events.progress = [&](const Run& so_far, double share) {
    reports.so_far(so_far);
    progress.update(so_far, share);
    if (hooks.progressed) hooks.progressed(so_far);
  };
  const auto open = [&] {
    Subject subject = make_subject();
    reports.opened(subject.description);
    return subject;
  };
  reports.so_far({});
  Run run = run_campaign(open, campaign, events, stop);
  progress.finish();
  reports.finish(run);
  return run;
}

}  // namespace

double seconds_of(const std::string& text, const std::string& option) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, end);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (failed != std::errc() || factor == 0 || !std::isfinite(number) || number <= 0) {
    throw Error(fmt::format("{}: '{}' is not a time; write 45s, 10m or 1h", option, text));
  }
  return number * factor;
}

std::string version_text() {
  return fmt::format("attest {}", version());
}

Narrowing narrowing_of(const CampaignCommand& options) {
  Narrowing where = parse_narrowing(options.where);
  require_possible(where);
  return where;
}

Run run_session(const CampaignCommand& options, CampaignOptions campaign, std::string_view purpose,
                const SessionHooks& hooks) {
  const fs::path report = options.report;
  if (report.empty()) throw Error("--report: name a folder");
  require_writable_folder(report / "findings");
  const FolderLock lock(report);
  SubjectOptions subject = options.subject;
  subject.emulation.schedule = schedule_of(options.schedule);
  Run known;
  known.version = version();
  known.subject = reference_of(options.subject.subject);
  known.device = options.subject.device;
  known.emulation = subject.emulation;
  known.where = campaign.where.text;
  known.seed = campaign.seed;
  SessionReports reports(report, known);
  try {
    campaign.emulation = spelled(subject.emulation);
    reports.runs_under(campaign.emulation);
    subject.emulation = without_drawing(campaign.emulation);
    const auto make_subject = subject_maker(subject);
    reports.runs_plugin(plugin_named(subject.subject));
    Run run = run_watched(make_subject, options, campaign, purpose, hooks, reports);
    print_table(stdout, run, style_of(stdout));
    return run;
  } catch (const std::exception& error) {
    // Whoever reads reports alone must not take silence for a run that passed.
    reports.could_not_begin(error.what());
    throw;
  }
}

std::string schedule_error(const std::string& word) {
  return word == kDrawn ? std::string() : count_error(word);
}

std::string count_error(const std::string& word) {
  if (word.starts_with('-')) return fmt::format("'{}' is negative", word);
  std::uint64_t value = 0;
  const auto [stop, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed == std::errc::result_out_of_range)
    return fmt::format("'{}' is larger than {}", word, ~std::uint64_t{0});
  return failed == std::errc() && stop == word.data() + word.size()
             ? std::string()
             : fmt::format("'{}' is no count", word);
}

std::string positive_error(const std::string& word) {
  const std::string wrong = count_error(word);
  const bool none = wrong.empty() && word.find_first_not_of('0') == std::string::npos;
  return none ? "0 of them would judge nothing" : wrong;
}

int conclude(const Run& run) {
  const Conclusion conclusion = conclusion_of(run);
  say("{}\n", one_line(conclusion.reason));
  if (!run.findings.empty()) say("{}\n", replay_line(run, run.findings.front()));
  std::fflush(stdout);
  // Beside what is wrong with a subject its reason does not say what else went wrong.
  const bool unsaid = conclusion.exit_code == 1 && !run.error.empty();
  return unsaid ? despite(conclusion.exit_code, run.error) : conclusion.exit_code;
}

}  // namespace attest
