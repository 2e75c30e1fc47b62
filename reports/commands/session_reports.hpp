// What a campaign leaves behind, kept up to date while it runs, so that a run that is killed, or
// that a full disk ends, has left what it had. It knows files and texts, not how cases are run.
#pragma once
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "fuzz/campaign.hpp"

namespace attest {

/// One line per case, complete in the file before the case is launched.
class Journal {
 public:
  explicit Journal(const std::filesystem::path& path);
  void line(const std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

class SessionReports {
 public:
  /// Throws Error when `folder` cannot be written; what an earlier run left there goes, since it
  /// would be taken for this one's. `known` is what of the run is known before it.
  SessionReports(std::filesystem::path folder, Run known);

  // These are known later than the folder.
  void runs_under(const EmulationOptions& emulation) { known_.emulation = emulation; }
  void opened(const Description& description);
  void runs_plugin(const std::filesystem::path& plugin);

  /// The finding's folder and what is printed of it. When the folder cannot be written the text
  /// says so, and the trouble is kept.
  std::string keep(const Finding& found);

  /// Now and then, and with every finding: the reports of a run that was killed here.
  void so_far(const Run& run);

  /// The reports of the run that ended, with what is known of it. Run::error then also says what
  /// could not be written.
  void finish(Run& run);

  /// The same of a run that did not begin. What cannot be written is not said: the reason is.
  void could_not_begin(const std::string& why);

 private:
  Run named(const Run& run) const;
  Finding signed_by_run(Finding finding) const;
  void write(const Run& run);

  std::filesystem::path folder_;
  Run known_;
  std::string trouble_;  // the first thing that could not be written
  std::uint64_t subject_hash_ = 0;
  std::size_t findings_ = 0;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace attest
