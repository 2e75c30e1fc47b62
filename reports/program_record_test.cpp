// Records of processes as they are, cut off, and wrong; and what a run of a program means.
#include <signal.h>

#include "reports/program_record.hpp"

#include <gtest/gtest.h>

#include "reference/text.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

ProgramFinding finding(const std::string& kind, std::uint32_t line = 9) {
  return {.kind = kind,
          .kernel = "writes",
          .file = "some folder/faults.cu",
          .what = "kernel writes, block (0,0,1), thread (2,0,0), faults.cu:9: wrong\tby \\ one\n",
          .block = {0, 0, 1},
          .thread = {2, 0, 0},
          .line = line};
}

ProcessRecord process(std::vector<ProgramFinding> findings = {}) {
  return {.process = 12,
          .parent = 3,
          .command = "./a b",
          .options = "threads=1 schedule=4 limit=0",
          .findings = std::move(findings),
          .obstacles = {},
          .kernels = {{"writes", 2, 40}},
          .ended = true};
}

ProgramRun run_of(std::vector<ProcessRecord> processes, int exit_code = 0) {
  ProgramRun run;
  run.version = "0.1.0";
  run.command = {"./a", "b"};
  run.end = {.started = true, .exit_code = exit_code, .signal = 0};
  run.processes = std::move(processes);
  return run;
}

TEST(ProcessRecord, ReadsBackWhatWasPrinted) {
  ProcessRecord record = process({finding("memcheck"), finding("racecheck", 0)});
  record.obstacles = {{"call", "cudaMallocArray is not emulated"}};
  EXPECT_EQ(read_process_record(print(record), "r"), record);
}

TEST(ProcessRecord, OfADeadProcessIsReadUpToItsLastWholeLine) {
  const std::string whole = print(process({finding("memcheck")}));
  const std::string first = "attest-record\t1\n";
  for (std::size_t length = first.size(); length <= whole.size(); ++length) {
    const ProcessRecord record = read_process_record(whole.substr(0, length), "cut");
    EXPECT_LE(record.findings.size(), 1U);
    EXPECT_EQ(record.ended, length == whole.size());
  }
}

TEST(ProcessRecord, TheLastCountsStand) {
  const std::string text =
      "attest-record\t1\nkernel\tk\t1\t10\nkernel\tj\t1\t5\nkernel\tk\t3\t30\n";
  const ProcessRecord record = read_process_record(text, "r");
  ASSERT_EQ(record.kernels.size(), 2U);
  EXPECT_EQ(record.kernels[0], (KernelCounts{"k", 3, 30}));
}

TEST(ProcessRecord, OtherTextsAreRefusedWithFileAndLine) {
  const auto refused = [](const std::string& text, const std::string& part) {
    try {
      read_process_record(text, "some.file");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const std::string first = "attest-record\t1\n";
  refused("", "some.file");
  refused("attest-record\t2\n", "some.file:1");
  refused(first + "nonsense\n", "some.file:2");
  refused(first + "kernel\tk\t1\n", "3 fields, not 4");
  refused(first + "kernel\tk\t-1\t2\n", "'-1' is no number");
  refused(first + "kernel\tk\t1\t99999999999999999999\n", "is no number");
  refused(first + "options\tx\\y\n", "backslash");
  refused(first + "finding\tm\tk\t0,0\t0,0,0\tf\t1\tw\n", "three numbers");
}

TEST(ProgramRun, FindingsDecideBeforeTheProgramDoes) {
  EXPECT_EQ(conclusion_of(run_of({process()})).exit_code, 0);
  EXPECT_EQ(conclusion_of(run_of({process()}, 7)).exit_code, 7);
  EXPECT_EQ(conclusion_of(run_of({process({finding("memcheck")})}, 7)).exit_code, 1);
  EXPECT_EQ(conclusion_of(run_of({process({finding("unsupported")})})).exit_code, 2);
  EXPECT_EQ(conclusion_of(run_of({process({finding("unsupported"), finding("limit")})})).exit_code,
            1);
}

TEST(ProgramRun, CannotTellWhenNothingRan) {
  EXPECT_EQ(conclusion_of(run_of({})).exit_code, 2);
  ProcessRecord idle = process();
  idle.kernels.clear();
  EXPECT_EQ(conclusion_of(run_of({idle}, 3)).exit_code, 2);
  ProcessRecord unloaded = process();
  unloaded.obstacles = {{"load", "there is no PTX"}};
  EXPECT_EQ(conclusion_of(run_of({unloaded})).exit_code, 2);
}

TEST(ProgramRun, WhoDiedHasNoFindingsOnlyUpToThen) {
  ProgramRun killed = run_of({process()}, 128 + SIGSEGV);
  killed.end.signal = SIGSEGV;
  ProcessRecord dead = process();
  dead.died = SIGABRT;
  for (const auto& [run, code, name] : {std::tuple{killed, 128 + SIGSEGV, "SIGSEGV"},
                                        {run_of({process(), dead}), 2, "SIGABRT"},
                                        {run_of({dead}, 134), 134, "SIGABRT"}}) {
    const ProgramConclusion conclusion = conclusion_of(run);
    EXPECT_EQ(conclusion.exit_code, code);
    EXPECT_NE(conclusion.reason.find("the program died"), std::string::npos) << conclusion.reason;
    EXPECT_NE(conclusion.reason.find(name), std::string::npos) << conclusion.reason;
    EXPECT_EQ(conclusion.reason.find("no findings"), std::string::npos) << conclusion.reason;
  }
  EXPECT_EQ(conclusion_of(run_of({process({finding("memcheck")}), dead})).exit_code, 1);
}

TEST(ProgramRun, AFaultOfAttestIsNotTheProgramsAndAsksForAReport) {
  ProcessRecord crashed = process();
  crashed.obstacles = {{"crash", "this is a fault of attest itself: SIGSEGV"}};
  crashed.died = SIGSEGV;
  ProgramRun run = run_of({crashed}, 128 + SIGSEGV);
  run.end.signal = SIGSEGV;
  const ProgramConclusion conclusion = conclusion_of(run);
  EXPECT_EQ(conclusion.exit_code, 2);
  EXPECT_NE(conclusion.reason.find("please report it"), std::string::npos) << conclusion.reason;
}

TEST(ProgramRun, AMissingFunctionMattersToAProgramThatFails) {
  ProcessRecord missing = process();
  missing.obstacles = {{"call", "cudaMallocArray is not emulated"}};
  EXPECT_EQ(conclusion_of(run_of({missing})).exit_code, 0);
  EXPECT_EQ(conclusion_of(run_of({missing}, 1)).exit_code, 2);
}

TEST(ProgramRun, TellsAFindingOnceAndSumsCounts) {
  const ProgramRun run = run_of({process({finding("memcheck")}), process({finding("memcheck")})});
  EXPECT_EQ(findings_of(run).size(), 1U);
  ASSERT_EQ(kernels_of(run).size(), 1U);
  EXPECT_EQ(kernels_of(run)[0], (KernelCounts{"writes", 4, 80}));
  const std::string text = text_of(run);
  EXPECT_NE(text.find("attest: memcheck: kernel writes"), std::string::npos) << text;
  EXPECT_EQ(text.find('\t'), std::string::npos) << text;
  const auto json = parse_strictly(json_of(run), "program.json");
  EXPECT_EQ(json["findings"][0]["block"][2], 1);
  EXPECT_EQ(json["findings"][0]["line"], 9);
  EXPECT_EQ(json["conclusion"]["exit_code"], 1);
  EXPECT_EQ(json["kernels"][0]["warp_instructions"], 80);
}

}  // namespace
}  // namespace attest
