// The order of things: the report folder is tried, the subject opened, the first line printed, and
// from then on nothing that was seen is lost: every case line is on disk before it is launched,
// every finding as soon as it is one.
#include "reports/commands/session.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <system_error>

#include "fuzz/setting.hpp"
#include "properties/fills.hpp"
#include "reference/text.hpp"
#include "reports/commands/emulation.hpp"
#include "reports/commands/interruption.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// One line per case, complete in the file before the case is launched.
class Journal {
 public:
  explicit Journal(const fs::path& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
    if (!file_)
      throw Error(fmt::format("cannot write '{}'; choose another --report", path.string()));
  }
  void line(const std::string& text) {
    fmt::print(file_.get(), "{}\n", text);
    if (std::fflush(file_.get()) != 0) {
      throw Error(fmt::format("cannot write '{}' any more; is the disk full?", path_.string()));
    }
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  fs::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// What an earlier run left would be taken for this one's, were this one to end without a report.
/// Of the findings only what is a finding's folder goes.
void remove_earlier_reports(const fs::path& report) {
  std::error_code ignored;
  for (const char* name : kReportFiles) fs::remove(report / name, ignored);
  const fs::path folder = report / "findings";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (fs::exists(entry.path() / "verdict.json")) fs::remove_all(entry.path(), ignored);
  }
}

std::string kept(const fs::path& report, const Run& run, const Finding& finding) {
  const std::string replay = replay_line(run, finding);
  const fs::path folder = write_finding(report / "findings", finding, make_values(finding.shrunk),
                                        run.subject, replay, emulation_of(run, finding));
  std::string text = fmt::format("{}: {}", finding.property, word_of(finding.verdict.outcome));
  if (!finding.verdict.why.empty()) text += ": " + finding.verdict.why;
  if (!finding.found_why.empty() && !(finding.found == finding.shrunk)) {
    text += fmt::format("\n  as drawn: {}", one_line(finding.found_why));
  }
  text += fmt::format("\n  drawn   {}\n  shrunk  {}  ({} steps)\n",
                      print(PropertyCase{"", finding.found, finding.setting}),
                      print(finding.shrunk), finding.shrink_steps);
  text += fmt::format("  kept in {}\n  {}\n", folder.string(), replay);
  return text;
}

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

Run run_session(const CampaignCommand& options, CampaignOptions campaign, std::string_view purpose,
                const SessionHooks& hooks) {
  const fs::path report = options.report;
  require_writable_folder(report / "findings");
  const FolderLock lock(report);
  remove_earlier_reports(report);
  SubjectOptions subject = options.subject;
  subject.emulation.schedule = schedule_of(options.schedule);
  campaign.emulation = spelled(subject.emulation);
  subject.emulation = without_drawing(campaign.emulation);
  const auto make_subject = subject_maker(subject);
  Journal journal(report / "cases.log");
  const std::atomic<bool>& stop = interruption();

  fmt::print("{}, seed {}, {}: {} '{}' with {}; report in {}\n", version_text(), campaign.seed,
             text_of(campaign.emulation), purpose, options.subject.subject, budget_text(campaign),
             report.string());
  std::fflush(stdout);

  Run naming;  // what a finding's replay line needs to know of the run
  naming.subject = reference_of(options.subject.subject);
  naming.device = options.subject.device;
  naming.emulation = campaign.emulation;
  Progress progress(stdout);
  CampaignEvents events;
  events.about_to_run = [&](const PropertyCase& check) { journal.line(print(check)); };
  events.found = [&](const Finding& finding) {
    progress.line(kept(report, naming, finding));
    if (hooks.found) hooks.found(finding);
  };
  events.progress = [&](const Run& so_far, double share) {
    progress.update(so_far, share);
    if (hooks.progressed) hooks.progressed(so_far);
  };
  Run run = run_campaign(make_subject, campaign, events, stop);
  progress.finish();
  run.subject = reference_of(options.subject.subject);
  run.device = options.subject.device;
  write_reports(report, run);
  print_table(stdout, run, style_of(stdout));
  return run;
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

int printed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  throw Error(
      "standard output cannot be written, so some of what was found may not have been seen");
}

int conclude(const Run& run) {
  const Conclusion conclusion = conclusion_of(run);
  fmt::print("{}\n", conclusion.reason);
  if (!run.findings.empty()) fmt::print("{}\n", replay_line(run, run.findings.front()));
  std::fflush(stdout);
  return conclusion.exit_code;
}

}  // namespace attest
