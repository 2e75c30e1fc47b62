// `attest run` on programs as people build them: findings, exit codes, streams, signals, children,
// and everything that may stand where a program is wanted. What each checker finds is the samples'
// business.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "reports/commands/testing/ran.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class RunCommandLine : public CommandLine {
 protected:
  static std::string program(const std::string& name) {
    return std::string("'") + ATTEST_PROGRAMS + "/" + name + "'";
  }
  /// `attest run OPTIONS -- WORDS`
  Ran run_program(const std::string& words, const std::string& options = "") const {
    return run("run " + options + " -- " + words);
  }
  fs::path script(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(RunCommandLine, SaysHowItRunsAndLeavesTheProgramsStreamsAlone) {
  const Ran ran = run_program(program("launches"), "--numerics sm_90 --schedule 5");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "launches: all as it should be\n");
  const std::string first = ran.err.substr(0, ran.err.find('\n'));
  for (const char* part : {"attest ", "numerics sm_90", "schedule 5", "checks memcheck"}) {
    EXPECT_TRUE(has(first, part)) << first;
  }
  EXPECT_TRUE(has(ran.err, "no findings")) << ran.err;
  EXPECT_TRUE(has(ran.err, "apply<double>")) << ran.err;
}

TEST_F(RunCommandLine, AFindingIsExitCodeOneWhateverTheProgramSays) {
  const Ran ran = run_program(program("faults") + " beyond", "--json found.json --report found");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(ran.out, "cudaErrorIllegalAddress\n");
  EXPECT_TRUE(
      has(ran.err, "attest: memcheck: kernel writes, block (0,0,0), thread (0,0,0), faults.cu:"))
      << ran.err;
  const std::string text = text_of(folder_ / "found.json");
  EXPECT_EQ(text, text_of(folder_ / "found" / "program.json"));
  const auto json = parse_strictly(text, "found.json");
  ASSERT_EQ(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["kind"], "memcheck");
  EXPECT_EQ(json["findings"][0]["kernel"], "writes");
  EXPECT_TRUE(json["findings"][0]["line"].is_number());
  EXPECT_EQ(json["program"]["exit_code"], 0);
  EXPECT_EQ(json["conclusion"]["exit_code"], 1);
  EXPECT_TRUE(has(text_of(folder_ / "found" / "program.txt"), "memcheck"));
}

TEST_F(RunCommandLine, WithoutFindingsTheExitCodeIsTheProgramsOwn) {
  const std::string one = program("one_launch");
  EXPECT_EQ(run_program("sh -c \"" + one + "; exit 7\"").exit_code, 7);
  EXPECT_EQ(run_program("sh -c \"" + one + "; kill -TERM \\$\\$\"").exit_code, 128 + SIGTERM);
  EXPECT_EQ(run_program("sh -c \"" + one + "; kill -SEGV \\$\\$\"").exit_code, 128 + SIGSEGV);
}

// However a process dies, nobody is told that there were no findings.
TEST_F(RunCommandLine, AProgramThatDiedIsNotCalledRight) {
  const auto died = [&](const std::string& how, int exit_code, const std::string& part) {
    const Ran ran = run_program(program("dies") + " " + how, "--json found.json");
    EXPECT_EQ(ran.exit_code, exit_code) << how << ran.err;
    EXPECT_TRUE(has(ran.err, part)) << how << ran.err;
    EXPECT_FALSE(has(ran.err, "no findings in 1 run;")) << how << ran.err;
    EXPECT_FALSE(has(ran.err, "fault of attest")) << how << ran.err;
    const auto json = parse_strictly(text_of(folder_ / "found.json"), "found.json");
    EXPECT_EQ(json["conclusion"]["exit_code"], exit_code) << how;
  };
  died("segfault", 128 + SIGSEGV, "the program died: the program was ended by SIGSEGV");
  died("sent", 128 + SIGBUS, "ended by SIGBUS");
  died("abort", 128 + SIGABRT, "ended by SIGABRT");
  died("killed", 128 + SIGKILL, "ended by SIGKILL");
  died("copies_from_nowhere", 128 + SIGSEGV, "ended by SIGSEGV");
  died("child", 2, "was ended by SIGABRT (Aborted); the program's exit code is 0");
  died("_exit", 0, "ended without a last word");
  died("handler", 7, "ended without a last word");
  const std::string shell = "sh -c \"" + program("dies") + " segfault; true\"";
  const Ran ran = run_program(shell);
  EXPECT_EQ(ran.exit_code, 2) << ran.err;
  EXPECT_TRUE(has(ran.err, "was ended by SIGSEGV")) << ran.err;
}

TEST_F(RunCommandLine, WhatAProgramLeavesBehindIsWaitedFor) {
  const Ran ran = run_program(program("dies") + " daemon");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_TRUE(has(ran.err, "still runs: waiting")) << ran.err;
  EXPECT_TRUE(has(ran.err, "memcheck: kernel beyond")) << ran.err;
}

TEST_F(RunCommandLine, AFaultOfTheEmulatorIsNotTheProgramsAndAsksForAReport) {
  const Ran ran = run_program(program("dies") + " emulator", "--threads 2 --checks memcheck");
  EXPECT_EQ(ran.exit_code, 2) << ran.err;
  for (const char* part : {"this is a fault of attest itself: SIGSEGV", "fills",
                           "please report it, with the program", "ended by SIGSEGV"}) {
    EXPECT_TRUE(has(ran.err, part)) << ran.err;
  }
  // By itself it says so too.
  const std::string line =
      std::string("ATTEST_EMULATOR='threads=2 checks=memcheck' LD_LIBRARY_PATH=") +
      (bin() / "emulator").string() + " " + program("dies") + " emulator 2>" +
      (folder_ / "said").string();
  EXPECT_NE(std::system((std::string(ATTEST_PROGRAM_ENVIRONMENT " ") + line).c_str()), 0);
  EXPECT_TRUE(has(text_of(folder_ / "said"), "attest: this is a fault of attest itself: SIGSEGV"));
}

TEST_F(RunCommandLine, CannotTellWhenNothingWasChecked) {
  const auto could_not = [&](const std::string& words, const std::string& part) {
    const Ran ran = run_program(words);
    EXPECT_EQ(ran.exit_code, 2) << words << ran.err;
    EXPECT_TRUE(has(ran.err, part)) << ran.err;
  };
  could_not("/bin/true", "never called the CUDA runtime");
  could_not("sh -c 'exit 3'", "exit code is 3");
  could_not(program("questions"), "no kernel was launched");
  refuses("run -- " + program("without_ptx"), {"machine code only", "compute_80"});
  refuses("run -- " + program("relocatable"), {"-rdc=true"});
  refuses("run -- " + program("static_runtime"), {"-cudart shared"});
  refuses("run -- ./absent", {"./absent: no such file"});
  refuses("run -- absent_program", {"absent_program", "PATH"});
  refuses("run -- /", {"is a folder"});
  refuses("run -- " + script("text", "nothing that runs\n").string(), {"is no program"});
  std::ofstream(folder_ / "data") << "x";
  refuses("run -- ./data", {"may not be executed"});
  refuses("run", {"program"});
  refuses("run --checks memchek -- /bin/true", {"--checks", "did you mean 'memcheck'?"});
  refuses("run --numerics sm_91 -- /bin/true", {"--numerics", "did you mean 'sm_90'?"});
  refuses("run --schedules 0 -- /bin/true", {"--schedules"});
  refuses("run --schedules -3 -- /bin/true", {"'-3'"});
  refuses("run --schedules=-3 -- /bin/true", {"--schedules", "negative"});
  refuses("run --schedule 18446744073709551616 -- /bin/true", {"--schedule", "is larger than"});
  refuses("run --limit 1e9 -- /bin/true", {"--limit", "'1e9' is no count"});
  refuses("run --json - -- /bin/true", {"--json", "standard output"});
  refuses("run --json /no/where.json -- " + program("questions"), {"/no/where.json"});
}

TEST_F(RunCommandLine, ChildrenAreEmulatedTooAndEachLeavesItsRecord) {
  const std::string both = program("faults") + " assert; " + program("faults") + " trap";
  const Ran ran = run_program("sh -c \"" + both + "\"", "--json found.json");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const auto json = parse_strictly(text_of(folder_ / "found.json"), "found.json");
  EXPECT_EQ(json["processes"].size(), 2U);
  ASSERT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][0]["kind"], "assert");
  EXPECT_EQ(json["findings"][1]["kind"], "trap");
}

TEST_F(RunCommandLine, LibrariesMayComeLaterAndFromElsewhere) {
  const Ran later = run_program(program("loads_later") + " " + program("plugin.so"));
  EXPECT_EQ(later.exit_code, 0) << later.err;
  EXPECT_EQ(later.out, "cudaSuccess\n");
  const Ran alone = run_program(program("loads_later") + " " + program("plugin_static.so"));
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_TRUE(has(alone.err, "-cudart shared")) << alone.err;
  // A program that insists on where its libraries lie.
  const Ran insists = run_program(program("with_rpath"));
  EXPECT_EQ(insists.exit_code, 0) << insists.err;
}

TEST_F(RunCommandLine, SchedulesAreRunUntilSomethingIsFound) {
  const Ran calm = run_program(program("launches"), "--schedules 3 --schedule 10");
  EXPECT_EQ(calm.exit_code, 0) << calm.err;
  EXPECT_TRUE(has(calm.err, "schedule 10..12")) << calm.err;
  EXPECT_TRUE(has(calm.err, "no findings in 3 schedules")) << calm.err;
  const Ran wrong = run_program(program("faults") + " beyond", "--schedules 3 --json found.json");
  EXPECT_EQ(wrong.exit_code, 1) << wrong.err;
  EXPECT_EQ(parse_strictly(text_of(folder_ / "found.json"), "found.json")["processes"].size(), 1U);
}

TEST_F(RunCommandLine, SignalsReachTheProgram) {
  const fs::path waits =
      script("waits", "#!/bin/sh\ntrap 'echo caught; exit 5' TERM INT\n" + program("one_launch") +
                          "\ntouch ready\nwhile :; do sleep 0.05; done\n");
  for (const int number : {SIGTERM, SIGINT}) {
    fs::remove(folder_ / "ready");
    const pid_t child = fork();
    if (child == 0) {
      if (chdir(folder_.c_str()) != 0) _exit(99);
      if (freopen("out.txt", "w", stdout) == nullptr) _exit(99);
      if (freopen("err.txt", "w", stderr) == nullptr) _exit(99);
      const std::string attest = (bin() / "attest").string();
      execl(attest.c_str(), "attest", "run", "--", waits.c_str(), nullptr);
      _exit(99);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fs::exists(folder_ / "ready") && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, number);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 5) << number << text_of(folder_ / "err.txt");
    EXPECT_TRUE(has(text_of(folder_ / "out.txt"), "caught"));
  }
}

TEST_F(RunCommandLine, ABadLineOfOptionsNamesItself) {
  const std::string line = std::string("ATTEST_EMULATOR='threads=1 chekcs=all' LD_LIBRARY_PATH=") +
                           (bin() / "emulator").string() + " " + program("launches") +
                           " >/dev/null 2>" + (folder_ / "said").string();
  const int status = std::system((std::string(ATTEST_PROGRAM_ENVIRONMENT " ") + line).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_TRUE(has(text_of(folder_ / "said"), "ATTEST_EMULATOR: 'chekcs=all'"));
}

}  // namespace
}  // namespace attest
