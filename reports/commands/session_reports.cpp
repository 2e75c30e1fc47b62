// Reports are written whole, over those of a moment ago: see the header.
#include "reports/commands/session_reports.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "properties/fills.hpp"
#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kWriteEvery = std::chrono::seconds(5);  // of a run that may be killed

/// Of the findings only what is a finding's folder goes.
void remove_earlier_reports(const fs::path& report) {
  std::error_code ignored;
  for (const char* name : kReportFiles) fs::remove(report / name, ignored);
  const fs::path folder = report / "findings";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (fs::exists(entry.path() / "verdict.json")) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

Journal::Journal(const fs::path& path) : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (!file_) throw Error(fmt::format("cannot write '{}'; choose another --report", path.string()));
}

void Journal::line(const std::string& text) {
  const std::string line = text + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0) {
    throw Error(fmt::format("cannot write '{}' any more; is the disk full?", path_.string()));
  }
}

SessionReports::SessionReports(fs::path folder, Run known)
    : folder_(std::move(folder)), known_(std::move(known)), written_(Clock::now()) {
  remove_earlier_reports(folder_);
}

void SessionReports::opened(const Description& description) {
  known_.numerics = description.numerics;
  known_.precision = description.precision;
}

void SessionReports::runs_plugin(const fs::path& plugin) {
  subject_hash_ = subject_hash_of(plugin);
}

Run SessionReports::named(const Run& run) const {
  Run whole = run;
  whole.version = known_.version;
  whole.subject = known_.subject;
  whole.device = known_.device;
  whole.emulation = known_.emulation;
  whole.where = known_.where;
  whole.seed = known_.seed;
  for (Finding& finding : whole.findings) finding = signed_by_run(finding);
  return whole;
}

Finding SessionReports::signed_by_run(Finding finding) const {
  finding.version = known_.version;
  finding.subject_hash = subject_hash_;
  return finding;
}

std::string SessionReports::keep(const Finding& found) {
  const Finding finding = signed_by_run(found);
  const std::string replay = replay_line(known_, finding);
  std::string text = fmt::format("{}: {}", finding.property, word_of(finding.verdict.outcome));
  if (!finding.verdict.why.empty()) text += ": " + one_line(finding.verdict.why);
  if (!finding.found_why.empty() && !(finding.found == finding.shrunk)) {
    text += fmt::format("\n  as drawn: {}", one_line(finding.found_why));
  }
  text += fmt::format("\n  drawn   {}\n  shrunk  {}  ({} steps)\n",
                      print(PropertyCase{"", finding.found, finding.setting}),
                      print(finding.shrunk), finding.shrink_steps);
  try {
    const fs::path kept = write_finding(folder_ / "findings", finding, make_values(finding.shrunk),
                                        known_.subject, replay, emulation_of(known_, finding));
    text += fmt::format("  kept in {}\n", one_line(kept.string()));
  } catch (const Error& error) {
    if (trouble_.empty()) trouble_ = error.what();
    text += fmt::format("  not kept: {}\n", one_line(error.what()));
  }
  return text + fmt::format("  {}\n", replay);
}

void SessionReports::write(const Run& run) {
  try {
    write_reports(folder_, run);
  } catch (const Error& error) {
    if (trouble_.empty()) trouble_ = error.what();
  }
}

void SessionReports::so_far(const Run& run) {
  const auto now = Clock::now();
  const bool first = run.cases() == 0 && findings_ == 0;
  if (!first && run.findings.size() == findings_ && now - written_ < kWriteEvery) return;
  written_ = now;
  findings_ = run.findings.size();
  Run killed = named(run);
  killed.numerics = known_.numerics;
  killed.precision = known_.precision;
  killed.interrupted = true;
  write(killed);
}

void SessionReports::finish(Run& run) {
  run = named(run);
  if (run.error.empty()) run.error = trouble_;
  write(run);
  if (run.error.empty()) run.error = trouble_;
}

void SessionReports::could_not_begin(const std::string& why) {
  known_.error = why;
  write(known_);
}

}  // namespace attest
