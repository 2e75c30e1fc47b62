// Plugins that cannot be opened end a gate with exit 2 before anything has run; plugins that go
// wrong in a case are wrong: exit 1, whatever they did to their process.
#include <fmt/format.h>

#include "optimized/plugin/test_plugins/behaviours.h"
#include "reports/commands/testing/ran.hpp"
#include "reports/formats.hpp"

namespace attest {
namespace {

class BadPlugin : public CommandLine {
 protected:
  static std::string plugin(const std::string& name) {
    return "'" + (bin() / "test_plugins" / (name + ".so")).string() + "'";
  }
  /// misbehaves.so does what the scale says.
  Ran misbehave(Behaviour behaviour, const std::string& more = "") const {
    return run("replay 'oracle_agreement q=2x2x3x4 kv=2x4x4 kv_len=4,2 spare=2 scale=" +
               std::to_string(static_cast<int>(behaviour)) + "' --subject " + plugin("misbehaves") +
               " " + more);
  }
  void faults(Behaviour behaviour, const std::string& part, const std::string& more = "") const {
    const Ran ran = misbehave(behaviour, more);
    EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("oracle_agreement: faulted"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
  }
};

TEST_F(BadPlugin, AWrongAnswerIsExplained) {
  const Ran ran = misbehave(BEHAVES_WELL);  // zeros, which no row of this case has
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("oracle_agreement: violated"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("resembles what one gets when O is left at zero (answers_zero)"),
            std::string::npos)
      << ran.out;
}

TEST_F(BadPlugin, CannotBeOpened) {
  std::ofstream(folder_ / "text.so") << "not a library";
  refuses("gate --subject /nonexistent.so", {"/nonexistent.so", "no such file"});
  refuses("gate --subject text.so", {"text.so", "no shared library"});
  refuses("gate --subject " + plugin("lacks_the_symbol"), {"attest_subject"});
  refuses("gate --subject " + plugin("other_version"), {"version"});
  refuses("gate --subject " + plugin("crashes_at_load"), {"crashes_at_load", "SIG"});
  refuses("gate --subject " + plugin("exits_at_load"), {"exits_at_load"});
  refuses("gate --case-seconds 0.3 --subject " + plugin("hangs_at_load"), {"hangs_at_load"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1' --subject /nonexistent.so", {"no such file"});
}

TEST_F(BadPlugin, GoesWrongInACase) {
  EXPECT_NE(misbehave(BEHAVES_WELL).out.find("oracle_agreement: violated"), std::string::npos)
      << "zeros are the wrong answer";
  faults(WRITES_NULL, "SIGSEGV");
  faults(EXITS, "exit(3)");
  faults(HANGS, "500 ms", "--case-seconds 0.5");
  faults(WRITES_BEHIND_V, "v");
  faults(CHANGES_Q, "q");
  faults(FORGETS_LAST_O, "o");
}

// Of an instruction that is not emulated nothing follows for the subject, whoever asks it.
TEST_F(BadPlugin, WhatTheEmulatorDoesNotExecuteIsNotTheSubjectsFault) {
  const std::string line =
      fmt::format("q=1x1x2x4 kv=1x2x4 scale={}", static_cast<int>(REACHES_UNSUPPORTED));
  const std::string strays = " --subject " + plugin("strays");
  const std::vector<std::string> parts = {
      "prefill: ", "the emulator does not execute 'multimem.red", "run it on a GPU"};
  refuses("replay 'oracle_agreement " + line + "'" + strays, parts);
  std::vector<std::string> with_cell = parts;
  with_cell.push_back("(while measuring 'prefill " + line + "')");
  refuses("measure --case '" + line + "'" + strays, with_cell);
  std::filesystem::create_directories(folder_ / "corpus");
  std::ofstream(folder_ / "corpus" / "line.case") << "causality " << line << "\n";
  const Ran campaign =
      run("fuzz --corpus corpus --cases 20 --properties causality --threads 1" + strays);
  EXPECT_EQ(campaign.exit_code, 2) << campaign.out;
  EXPECT_EQ(campaign.last_line().find("the testbed could not go on: prefill: kernel"), 0U)
      << campaign.out;
  const Ran healthy = run("measure --case 'q=1x1x2x4 kv=1x2x4 scale=0'" + strays);
  EXPECT_EQ(healthy.exit_code, 1) << "zeros are the wrong answer, and the subject's";
}

TEST_F(BadPlugin, AGateNamesWhatIsWrongAndHowToSeeItAgain) {
  const Ran ran = run("gate --subject " + plugin("misbehaves") + " --cases 60");
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  const std::string last = ran.last_line();
  ASSERT_EQ(last.find("./attest replay "), 0U) << last;
  const Ran again = run(last.substr(std::string("./attest ").size()));
  EXPECT_EQ(again.exit_code, 1) << again.out << again.err;
  int folders = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_ / "attest-report" / "findings")) {
    ++folders;
    const Ran stored = run("replay '" + entry.path().string() + "'");
    EXPECT_EQ(stored.exit_code, 1) << stored.out << stored.err;
  }
  EXPECT_GT(folders, 0);
  EXPECT_EQ(run("gate --subject skeleton --cases 30 --properties row_sums").exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "attest-report" / "findings"))
      << "findings of an earlier run are not this one's";
}

TEST_F(BadPlugin, AReplaySaysWhatIsNotAsItWasWhenItWasFound) {
  namespace fs = std::filesystem;
  fs::copy_file(bin() / "test_plugins" / "echoes.so", folder_ / "mine.so");
  EXPECT_EQ(run("gate --cases 60 --properties oracle_agreement --subject ./mine.so").exit_code, 1);
  fs::path found;
  for (const auto& entry : fs::directory_iterator(folder_ / "attest-report" / "findings")) {
    if (read_finding(entry.path()).verdict.outcome == Outcome::violated) found = entry.path();
  }
  ASSERT_FALSE(found.empty());
  const std::string replay = "replay '" + found.string() + "'";
  const auto says = [](const Ran& ran, const std::string& part) {
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  };
  says(run(replay), "\n  the same bits as when it was found\n");
  says(run(replay + " --checks none"),
       "the same bits as when it was found; now: another emulation (numerics ");
  says(run(replay + " --subject " + plugin("echoes")),
       "the same bits as when it was found; now: another subject ('");
  std::ofstream(folder_ / "mine.so", std::ios::app) << "built again";
  says(run(replay), "the same bits as when it was found; now: another file of the subject\n");
  std::string verdict = text_of(found / "verdict.json");
  verdict.replace(verdict.find("\"digest\": \"") + 11, 16, "0123456789abcdef");
  verdict.replace(verdict.find("\"version\": \"") + 12, 1, "7");
  std::ofstream(found / "verdict.json") << verdict;
  says(run(replay),
       "other bits than when it was found; now: another file of the subject, another "
       "version of attest (7");
  verdict.replace(verdict.find("0123456789abcdef"), 16, "0123456789abcdeg");
  std::ofstream(found / "verdict.json") << verdict;
  refuses(replay, {"digest", "16 hexadecimal digits"});
}

TEST_F(BadPlugin, AFindingOfADrawnSettingReplaysUnderIt) {
  const Ran ran =
      run("gate --cases 40 --properties oracle_agreement --subject " + plugin("strays"));
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("numerics drawn, schedule drawn"), std::string::npos) << ran.out;
  const attest::Run kept = read_run_json(folder_ / "attest-report" / "run.json");
  ASSERT_FALSE(kept.findings.empty());
  ASSERT_TRUE(kept.findings[0].setting);
  const Setting& setting = *kept.findings[0].setting;
  const std::string words =
      fmt::format(" --numerics {} --schedule {}", setting.numerics, setting.schedule);
  EXPECT_TRUE(ran.last_line().ends_with(words)) << ran.last_line();
  const std::string how =
      fmt::format("numerics {}, schedule {}, checks ", setting.numerics, setting.schedule);
  const Ran again = run(ran.last_line().substr(std::string("./attest ").size()));
  EXPECT_NE(again.out.find(how), std::string::npos) << again.out;
  const auto findings = folder_ / "attest-report" / "findings";
  std::string replays;
  for (const auto& entry : std::filesystem::directory_iterator(findings)) {
    const Ran stored = run("replay '" + entry.path().string() + "'");
    EXPECT_EQ(stored.exit_code, 1) << stored.out << stored.err;
    replays += stored.out;
  }
  EXPECT_NE(replays.find(how), std::string::npos) << replays;
  const std::string journal = text_of(folder_ / "attest-report" / "cases.log");
  const std::string last = journal.substr(journal.rfind("oracle_agreement"));
  const Ran line =
      run("replay '" + last.substr(0, last.find('\n')) + "' --subject " + plugin("strays"));
  const std::string numerics = last.substr(last.find("numerics=") + 9);
  EXPECT_NE(line.out.find("numerics " + numerics.substr(0, numerics.find(' ')) + ","),
            std::string::npos)
      << line.out;
}

TEST_F(BadPlugin, AFindingReplaysUnderWhatItWasFoundUnder) {
  const Ran ran =
      run("gate --cases 60 --properties oracle_agreement --numerics sm_90 --checks none "
          "--schedule 3 --subject " +
          plugin("misbehaves"));
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  const std::string how = "numerics sm_90, schedule 3, checks none";
  EXPECT_NE(ran.out.substr(0, ran.out.find('\n')).find(how), std::string::npos) << ran.out;
  const std::string words = " --numerics sm_90 --checks none --schedule 3";
  EXPECT_TRUE(ran.last_line().ends_with(words)) << ran.last_line();
  const auto findings = folder_ / "attest-report" / "findings";
  for (const auto& entry : std::filesystem::directory_iterator(findings)) {
    const Ran stored = run("replay '" + entry.path().string() + "'");
    EXPECT_NE(stored.out.find(how), std::string::npos) << stored.out;
    const Ran other = run("replay --schedule 4 '" + entry.path().string() + "'");
    EXPECT_NE(other.out.find("numerics sm_90, schedule 4, checks none"), std::string::npos);
  }
  for (const char* report : {"run.json", "junit.xml", "summary.md"}) {
    EXPECT_NE(text_of(folder_ / "attest-report" / report).find("sm_90"), std::string::npos);
  }
}

TEST_F(BadPlugin, FindingsJoinTheCorpusAndAreTriedFirst) {
  const std::string words =
      "fuzz --cases 20 --properties oracle_agreement --corpus kept --subject " +
      plugin("misbehaves");
  EXPECT_EQ(run(words).exit_code, 1);
  std::string kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "kept")) {
    if (entry.path().extension() == ".case") kept = text_of(entry.path());
  }
  const std::string line = kept.substr(kept.find('\n') + 1);
  ASSERT_EQ(line.find("oracle_agreement "), 0U) << kept;
  EXPECT_EQ(run(words).exit_code, 1);
  EXPECT_NE(text_of(folder_ / "attest-report" / "cases.log").find(line), std::string::npos);
}

}  // namespace
}  // namespace attest
