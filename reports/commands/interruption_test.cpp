// Signals in mid-campaign: SIGINT ends with a report, SIGKILL leaves everything that was found.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "reports/commands/testing/ran.hpp"
#include "reports/formats.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Interruption : public CommandLine {
 protected:
  /// Starts `attest WORDS` in the test's folder, waits until `ready`, sends `signal`; the status.
  int struck(std::vector<std::string> words, int signal, const std::function<bool()>& ready) {
    words.insert(words.begin(), (bin() / "attest").string());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (chdir(folder_.c_str()) != 0) _exit(99);
      const int out = open("out.txt", O_CREAT | O_TRUNC | O_WRONLY, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(99);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!ready() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(ready()) << text_of(folder_ / "out.txt");
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  bool journal_has(int lines) const {
    const std::string text = text_of(report_ / "cases.log");
    return std::ranges::count(text, '\n') >= lines;
  }
  bool has_finding() const {
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(report_ / "findings", none_yet)) {
      if (entry.path().extension() != ".part") return true;
    }
    return false;
  }
  std::string misbehaves() const { return (bin() / "test_plugins" / "misbehaves.so").string(); }

  const fs::path report_ = folder_ / "attest-report";
};

TEST_F(Interruption, SigintReportsWhatItHasAndCouldNotTell) {
  const int status = struck({"gate", "--subject", "skeleton", "--budget", "10m"}, SIGINT,
                            [this] { return journal_has(600); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2) << text_of(folder_ / "out.txt");
  const attest::Run told = read_run_json(report_ / "run.json");
  EXPECT_TRUE(told.interrupted);
  // A line of the journal is a draw; what was declined and drawn again is no case.
  std::uint64_t draws = told.cases();
  for (const attest::PropertyTally& tally : told.tallies) draws += tally.redrawn;
  EXPECT_GE(draws, 300U);
  EXPECT_TRUE(told.findings.empty());
}

TEST_F(Interruption, AReportFolderBelongsToOneRunAtATime) {
  std::string refusal;
  struck({"gate", "--subject", "skeleton", "--budget", "10m"}, SIGINT, [&] {
    if (!journal_has(50)) return false;
    if (refusal.empty()) {
      const std::string line = "cd '" + folder_.string() + "' && '" + (bin() / "attest").string() +
                               "' fuzz --subject skeleton --cases 5 >/dev/null 2>second.txt";
      EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 2);
      refusal = text_of(folder_ / "second.txt");
    }
    return true;
  });
  EXPECT_NE(refusal.find("attest-report: another attest"), std::string::npos) << refusal;
  EXPECT_EQ(run("gate --subject skeleton --cases 500").exit_code, 0)
      << "the lock went with the run";
}

TEST_F(Interruption, SigintAfterAFindingSaysThatTheSubjectIsWrong) {
  const int status =
      struck({"fuzz", "--subject", misbehaves()}, SIGINT, [this] { return has_finding(); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1) << text_of(folder_ / "out.txt");
  EXPECT_FALSE(read_run_json(report_ / "run.json").findings.empty());
}

TEST_F(Interruption, SigkillLeavesReportsOfWhatWasSeen) {
  struck({"fuzz", "--subject", misbehaves()}, SIGKILL,
         [this] { return text_of(report_ / "run.json").find("\"verdict\"") != std::string::npos; });
  const attest::Run told = read_run_json(report_ / "run.json");
  EXPECT_TRUE(told.interrupted);
  ASSERT_FALSE(told.findings.empty());
  EXPECT_EQ(exit_code_of(told), 1);
  EXPECT_NE(told.subject.find("misbehaves"), std::string::npos);
  EXPECT_FALSE(told.numerics.empty());
  EXPECT_NE(text_of(report_ / "junit.xml").find("</testsuites>"), std::string::npos);
}

TEST_F(Interruption, SigkillBeforeAFindingLeavesAReportThatProvesNothing) {
  struck({"gate", "--subject", "skeleton", "--budget", "10m"}, SIGKILL,
         [this] { return journal_has(300); });
  const attest::Run told = read_run_json(report_ / "run.json");
  EXPECT_TRUE(told.interrupted);
  EXPECT_EQ(exit_code_of(told), 2);
}

TEST_F(Interruption, ATerminalThatGoesAwayLeavesAReport) {
  const int status = struck({"gate", "--subject", "skeleton", "--budget", "10m"}, SIGHUP,
                            [this] { return journal_has(300); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_TRUE(read_run_json(report_ / "run.json").interrupted);
}

TEST_F(Interruption, SigkillLeavesFindingsJournalAndPlace) {
  const int status = struck({"fuzz", "--subject", misbehaves(), "--corpus", "kept"}, SIGKILL,
                            [this] { return has_finding(); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(journal_has(1));
  for (const auto& entry : fs::directory_iterator(report_ / "findings")) {
    if (entry.path().extension() == ".part") continue;
    const StoredFinding finding = read_finding(entry.path());
    EXPECT_FALSE(finding.property.empty());
    EXPECT_EQ(run("replay '" + entry.path().string() + "'").exit_code, 1);
  }
  EXPECT_TRUE(fs::exists(folder_ / "kept" / "place.txt"));
}

TEST_F(Interruption, TheLastLineOfTheJournalWasRunningWhenKilled) {
  const std::string hangs = "causality q=1x1x1x1 kv=1x1x1 scale=6";  // HANGS of misbehaves.so
  fs::create_directories(folder_ / "kept");
  std::ofstream(folder_ / "kept" / "hangs.case") << hangs << '\n';
  const int status =
      struck({"fuzz", "--subject", misbehaves(), "--corpus", "kept", "--threads", "1",
              "--properties", "causality", "--case-seconds", "50"},
             SIGKILL, [&] { return text_of(report_ / "cases.log").ends_with(hangs + "\n"); });
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace attest
