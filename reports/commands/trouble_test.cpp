// Full disks, readers that leave, streams that are closed, plugins that do not load or that write
// to the terminal: the verdict, the exit code and the reports survive.
#include <nlohmann/json.hpp>

#include "reference/one_line.hpp"
#include "reports/commands/testing/ran.hpp"
#include "reports/formats.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Trouble : public CommandLine {
 protected:
  static std::string plugin(const std::string& name) {
    return "'" + (bin() / "test_plugins" / (name + ".so")).string() + "'";
  }
  static std::string attest() { return "'" + (bin() / "attest").string() + "'"; }

  /// A line of a shell in the test's folder; its exit code, as that of a job.
  int shell(const std::string& line) const {
    const int status = std::system(("cd '" + folder_.string() + "' && { " + line + "; }").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string left(const std::string& name) const { return text_of(folder_ / name); }
};

constexpr const char* kWrong = " gate --cases 60 --properties row_sums,oracle_agreement --subject ";

/// Nothing that a terminal obeys or that is no UTF-8; line breaks are ours.
void expect_clean(const std::string& text, const std::string& what) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view letter = rest.substr(0, std::max<std::size_t>(1, utf8_length(rest)));
    ASSERT_TRUE(letter == "\n" || letter == "\t" || one_line(letter) == letter)
        << what << ": " << one_line(rest.substr(0, 60));
    rest.remove_prefix(letter.size());
  }
}

TEST_F(Trouble, APluginThatCannotBeLoadedLeavesReportsThatSayWhy) {
  for (const char* name : {"lacks_the_symbol", "other_version", "crashes_at_load", "absent"}) {
    fs::remove_all(folder_ / "attest-report");
    const Ran ran = run("gate --cases 20 --subject " + plugin(name));
    EXPECT_EQ(ran.exit_code, 2) << name << ran.out << ran.err;
    const attest::Run told = read_run_json(folder_ / "attest-report" / "run.json");
    EXPECT_NE(told.error.find(name), std::string::npos) << told.error;
    EXPECT_FALSE(told.subject.empty());
    const std::string junit = left("attest-report/junit.xml");
    EXPECT_NE(junit.find("errors=\"1\""), std::string::npos) << junit;
    EXPECT_NE(junit.find("<error type=\"could_not_tell\" message=\"the testbed could not go on: "),
              std::string::npos)
        << junit;
    EXPECT_NE(left("attest-report/summary.md").find("could not tell"), std::string::npos);
  }
}

TEST_F(Trouble, WhatAPluginSaysReachesNoTerminalAndNoReportRaw) {
  const Ran ran = run("gate --cases 60 --subject " + plugin("forges"));
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("failed \\x1b[2J"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("printed \\x1b[2J"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out.find("\nthe subject is right"), std::string::npos) << ran.out;
  expect_clean(ran.out, "stdout");
  for (const char* name : {"run.json", "junit.xml", "summary.md", "cases.log"}) {
    expect_clean(left(fs::path("attest-report") / name), name);
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "attest-report" / "findings")) {
    expect_clean(text_of(entry.path() / "verdict.json"), "verdict.json");
  }
  const Ran replayed = run("replay 'q=1x1x1x1 kv=1x1x1' --subject " + plugin("forges"));
  EXPECT_EQ(replayed.exit_code, 1);
  expect_clean(replayed.out, "replay");
}

TEST_F(Trouble, AVerdictSurvivesAFullStandardOutput) {
  const std::string wrong = attest() + kWrong + plugin("misbehaves");
  EXPECT_EQ(shell(wrong + " >/dev/full 2>err.txt"), 1);
  EXPECT_NE(left("err.txt").find("standard output cannot be written"), std::string::npos);
  EXPECT_FALSE(read_run_json(folder_ / "attest-report" / "run.json").findings.empty());
  EXPECT_EQ(shell(attest() + " gate --cases 500 --subject skeleton >/dev/full 2>/dev/null"), 2);
  EXPECT_EQ(shell(attest() + " replay 'oracle_agreement q=1x1x1x2 kv=1x1x2 scale=2' --subject " +
                  plugin("misbehaves") + " >/dev/full 2>/dev/full"),
            1);
  for (const char* words : {"--help", "--version", "list", "gates"}) {
    EXPECT_EQ(shell(attest() + " " + words + " >/dev/full 2>/dev/full"), 2) << words;
  }
}

TEST_F(Trouble, AVerdictSurvivesAReaderThatLeaves) {
  EXPECT_EQ(shell("{ " + attest() + kWrong + plugin("misbehaves") +
                  " 2>err.txt; echo $? >code.txt; } | true"),
            0);
  EXPECT_EQ(left("code.txt"), "1\n") << left("err.txt");
  EXPECT_FALSE(read_run_json(folder_ / "attest-report" / "run.json").findings.empty());
  shell("{ sleep 1; " + attest() + " list 2>err.txt; echo $? >code.txt; } | true");
  EXPECT_EQ(left("code.txt"), "2\n") << "not a signal's";
}

TEST_F(Trouble, NoFileGetsTheNumberOfAClosedStream) {
  EXPECT_EQ(shell(attest() + kWrong + plugin("misbehaves") + " >&- 2>&- <&-"), 1);
  const std::string journal = left("attest-report/cases.log");
  EXPECT_EQ(journal.find("attest "), std::string::npos) << journal.substr(0, 200);
  EXPECT_EQ(shell(attest() + " gate --cases 500 --subject skeleton >&- 2>&-"), 2);
}

TEST_F(Trouble, AVerdictSurvivesAFullDisk) {
  // A file beyond the limit is a disk that is full, to whom writes to it. The limit leaves room for
  // the memory that is shared with the worker, and for some hundred lines of the journal.
  const std::string program = "ulimit -f 128; " + attest() +
                              " fuzz --corpus kept --cases 100000 --threads 1 --properties "
                              "row_sums,oracle_agreement,causality,rerun --subject ";
  EXPECT_EQ(shell(program + plugin("misbehaves") + " >out.txt 2>err.txt"), 1)
      << left("out.txt") << left("err.txt");
  EXPECT_FALSE(read_run_json(folder_ / "attest-report" / "run.json").findings.empty());
  EXPECT_EQ(shell(program + "skeleton >out.txt 2>err.txt"), 2) << left("out.txt");
  EXPECT_NE(left("out.txt").find("the testbed could not go on"), std::string::npos)
      << left("out.txt");
}

TEST_F(Trouble, AJournalThatCannotBeWrittenEndsTheRun) {
  fs::create_directory(folder_ / "attest-report");
  fs::create_symlink("/dev/full", folder_ / "attest-report" / "cases.log");
  const Ran ran = run("gate --cases 500 --subject skeleton");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.last_line().find("cases.log"), std::string::npos) << ran.out;
  EXPECT_NE(read_run_json(folder_ / "attest-report" / "run.json").error.find("cases.log"),
            std::string::npos);
}

TEST_F(Trouble, TheReportFolderIsLookedAtFirst) {
  std::ofstream(folder_ / "file") << "in the way";
  fs::create_symlink("nowhere", folder_ / "dangling");
  fs::create_directory(folder_ / "folder");
  fs::create_directory_symlink("folder", folder_ / "link");
  const std::string gate = "gate --cases 500 --subject skeleton --report ";
  refuses(gate + "file", {"file is no folder"});
  refuses(gate + "file/below", {"file is no folder"});
  refuses(gate + "dangling", {"dangling is a link to nothing"});
  refuses(gate + "''", {"--report"});
  refuses(gate + "/proc/report", {"/proc/report"});
  EXPECT_EQ(run(gate + "/proc/report").out, "");
  EXPECT_EQ(run(gate + "link").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::exists(folder_ / "folder" / "run.json"));
  refuses("run --report file -- /bin/true", {"file is no folder"});
}

TEST_F(Trouble, AHyphenIsStandardOutputForTheFileAlone) {
  const std::string measure =
      "measure --lengths 4 --widths 4 --formats f32 --fills normal --subject skeleton --json ";
  const Ran ran = run(measure + "-");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("schema"), 1);
  EXPECT_NE(ran.err.find("attest "), std::string::npos) << "the text";
  EXPECT_FALSE(fs::exists(folder_ / "-"));
  EXPECT_EQ(shell(attest() + " " + measure + "/dev/stdout | cat >through.txt"), 0);
  EXPECT_NE(left("through.txt").find("\"schema\": 1"), std::string::npos);
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  EXPECT_EQ(shell(attest() + " " + measure + "- >&- 2>err.txt"), 2);
  EXPECT_NE(left("err.txt").find("-: cannot be written"), std::string::npos) << left("err.txt");
  const Ran oracle = run("oracle 'q=1x1x1x1 kv=1x1x1' -o -");
  EXPECT_EQ(oracle.exit_code, 0) << oracle.err;
  EXPECT_NE(oracle.out.find("\"o_truth\""), std::string::npos);
}

}  // namespace
}  // namespace attest
