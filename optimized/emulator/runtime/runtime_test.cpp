// Real programs, built by plain nvcc in the ways people build them, run on the emulating libcudart.
// Each checks itself; here are the ways, the faults and the refusals.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Outcome {
  int status = -1;
  std::string text;  // stdout and stderr
};

Outcome run(const std::string& program, const std::string& argument = "") {
  const std::string command =
      ATTEST_PROGRAM_ENVIRONMENT " " ATTEST_PROGRAMS "/" + program + " " + argument + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

class Programs : public testing::TestWithParam<const char*> {};

TEST_P(Programs, HoldTheirOwnChecks) {
  const Outcome outcome = run(GetParam());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("all as it should be"), std::string::npos) << outcome.text;
}
INSTANTIATE_TEST_SUITE_P(Ways, Programs,
                         testing::Values("memory", "launches", "questions", "loads_code",
                                         "launches_legacy", "launches_per_thread_stream",
                                         "memory_machine_code_too"));

TEST(Refusals, NameTheFunctionThatIsMissing) {
  const std::string text = run("questions").text;
  EXPECT_NE(text.find("attest: cudaMallocArray is not emulated"), std::string::npos) << text;
  EXPECT_NE(text.find("cuTensorMapEncodeTiled is not emulated"), std::string::npos) << text;
}

TEST(Refusals, SayWhatToBuildInstead) {
  const Outcome without_ptx = run("without_ptx");
  EXPECT_EQ(without_ptx.status, 0);
  EXPECT_NE(without_ptx.text.find("cudaErrorNoKernelImageForDevice"), std::string::npos);
  EXPECT_NE(without_ptx.text.find("-arch=compute_80"), std::string::npos) << without_ptx.text;
  const Outcome relocatable = run("relocatable");
  EXPECT_NE(relocatable.text.find("cudaErrorInvalidKernelImage"), std::string::npos);
  EXPECT_NE(relocatable.text.find("-rdc=true"), std::string::npos) << relocatable.text;
}

struct Fault {
  const char* name;
  const char* error;
  const char* word;  // of the finding, on stderr
};
class Faults : public testing::TestWithParam<Fault> {};

TEST_P(Faults, AreStickyUntilReset) {
  const Outcome outcome = run("faults", GetParam().name);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(GetParam().error), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(GetParam().word), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("faults.cu:"), std::string::npos) << outcome.text;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Faults,
                         testing::Values(Fault{"beyond", "cudaErrorIllegalAddress", "memcheck"},
                                         Fault{"freed", "cudaErrorIllegalAddress", "memcheck"},
                                         Fault{"host", "cudaErrorIllegalAddress", "memcheck"},
                                         Fault{"assert", "cudaErrorAssert", "assert"},
                                         Fault{"trap", "cudaErrorLaunchFailure", "trap"}),
                         [](const testing::TestParamInfo<Fault>& each) {
                           return std::string(each.param.name);
                         });

}  // namespace
