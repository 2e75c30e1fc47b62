// The sample programs through the real `attest run`: what works on a GPU works here; each planted
// bug is found by the checker that it is meant for, with kernel, block, thread and source line; its
// correct twin is silent under many schedules; and nothing hostile brings attest down.
#include <algorithm>

#include "reports/commands/testing/ran.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

class Samples : public CommandLine {
 protected:
  Ran run_sample(const std::string& words, const std::string& options = "") const {
    return run("run " + options + " --json found.json -- " + ATTEST_PROGRAMS "/" + words);
  }
  nlohmann::json found() const {
    return parse_strictly(text_of(folder_ / "found.json"), "found.json");
  }
};

/// The lines of the source that carry the name.
std::vector<std::uint32_t> planted_lines(const std::string& name) {
  std::ifstream file(ATTEST_SAMPLES "/planted.cu");
  std::vector<std::uint32_t> lines;
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// PLANTED " + name)) lines.push_back(number);
  }
  return lines;
}

struct Bug {
  const char* name;
  const char* kind;
  std::vector<int> block, thread;  // where the default schedule meets it; -1: any
};

bool is_at(const nlohmann::json& place, const std::vector<int>& wanted) {
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    if (wanted[axis] >= 0 && place[axis] != wanted[axis]) return false;
  }
  return true;
}

class PlantedBugs : public Samples, public testing::WithParamInterface<Bug> {};

TEST_P(PlantedBugs, AreFoundWithKernelBlockThreadAndLine) {
  const Bug& bug = GetParam();
  const std::vector<std::uint32_t> lines = planted_lines(bug.name);
  ASSERT_FALSE(lines.empty()) << bug.name;
  for (const char* target : {"planted_80 ", "planted_90 "}) {
    const Ran ran = run_sample(std::string(target) + bug.name);
    ASSERT_EQ(ran.exit_code, 1) << ran.err;
    const auto findings = found()["findings"];
    ASSERT_FALSE(findings.empty()) << ran.err;
    for (const auto& finding : findings) {
      EXPECT_EQ(finding["kind"], bug.kind) << ran.err;
      EXPECT_EQ(finding["kernel"], bug.name) << ran.err;
      EXPECT_TRUE(std::string(finding["file"]).ends_with("planted.cu")) << ran.err;
      EXPECT_TRUE(std::ranges::count(lines, finding["line"].get<std::uint32_t>()) == 1) << ran.err;
    }
    EXPECT_TRUE(is_at(findings[0]["block"], bug.block)) << ran.err;
    EXPECT_TRUE(is_at(findings[0]["thread"], bug.thread)) << ran.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBugs,
                         testing::Values(Bug{"beyond", "memcheck", {0, 0, 0}, {40, 0, 0}},
                                         Bug{"freed", "memcheck", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"misaligned", "memcheck", {0, 0, 0}, {5, 0, 0}},
                                         Bug{"unset_shared", "initcheck", {0, 0, 0}, {13, 0, 0}},
                                         Bug{"unset_global", "initcheck", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"no_syncthreads", "racecheck", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"no_syncwarp", "racecheck", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"no_grid_sync", "racecheck", {1, 0, 0}, {0, 0, 0}},
                                         Bug{"no_threadfence", "racecheck", {5, 0, 0}, {0, 0, 0}},
                                         Bug{"no_wait_group", "async", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"divergent_barrier", "barrier", {0, 0, 0}, {0, 0, 0}},
                                         Bug{"lane_missing", "barrier", {0, 0, 0}, {31, 0, 0}},
                                         Bug{"lanes_gone", "initcheck", {0, 0, 0}, {4, 0, 0}},
                                         Bug{"deadlock", "deadlock", {0, 0, 0}, {0, 0, 0}}),
                         [](const testing::TestParamInfo<Bug>& each) {
                           return std::string(each.param.name);
                         });

struct HostBug {
  const char *name, *kind, *kernel, *says;
};
class PlantedHostBugs : public Samples, public testing::WithParamInterface<HostBug> {};

TEST_P(PlantedHostBugs, AreFoundWithCallAndReason) {
  const HostBug& bug = GetParam();
  const Ran ran = run_sample(std::string("planted_80 ") + bug.name);
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  const auto findings = found()["findings"];
  ASSERT_EQ(findings.size(), 1U) << ran.err;
  EXPECT_EQ(findings[0]["kind"], bug.kind) << ran.err;
  EXPECT_EQ(findings[0]["kernel"], bug.kernel) << ran.err;
  EXPECT_NE(std::string(findings[0]["what"]).find(bug.says), std::string::npos) << ran.err;
}
INSTANTIATE_TEST_SUITE_P(
    Each, PlantedHostBugs,
    testing::Values(HostBug{"too_wide", "api", "too_wide",
                            "cudaLaunchKernel: returned cudaErrorInvalidConfiguration (a grid of "
                            "(1,1,1) blocks of (2048,1,1) threads)"},
                    HostBug{"copies_too_much", "api", "",
                            "cudaMemcpy: returned cudaErrorInvalidValue"},
                    HostBug{"forgets_last", "initcheck", "",
                            "cudaMemcpy to the host: 4 of 256 bytes were never written"}),
    [](const testing::TestParamInfo<HostBug>& each) { return std::string(each.param.name); });

class Twins : public Samples, public testing::WithParamInterface<const char*> {};

TEST_P(Twins, AreSilentUnderTwoHundredSchedules) {
  const Ran ran = run_sample(std::string(GetParam()) + " correct", "--schedules 200");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.err.find("no findings in 200 schedules"), std::string::npos) << ran.err;
}
INSTANTIATE_TEST_SUITE_P(Each, Twins, testing::Values("planted_80", "planted_90"));

class RightPrograms : public Samples, public testing::WithParamInterface<const char*> {};

TEST_P(RightPrograms, RunUnchangedWithRightResults) {
  const std::string name = GetParam();
  const Ran ran = run_sample(name);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(": all as it should be"), std::string::npos) << ran.out;
  EXPECT_TRUE(found()["findings"].empty()) << ran.err;
}
INSTANTIATE_TEST_SUITE_P(Each, RightPrograms,
                         testing::Values("features_80", "features_90", "libraries_80"));

struct Hostile {
  const char* name;
  int exit_code;
  const char* says;  // on stderr
  std::size_t processes = 1;
};
class HostilePrograms : public Samples, public testing::WithParamInterface<Hostile> {};

TEST_P(HostilePrograms, EndInAFindingOrAClearMessage) {
  const Hostile& hostile = GetParam();
  const Ran ran = run_sample(std::string("hostile ") + hostile.name, "--limit 3000000");
  EXPECT_EQ(ran.exit_code, hostile.exit_code) << ran.err;
  EXPECT_NE(ran.err.find(hostile.says), std::string::npos) << ran.err;
  EXPECT_EQ(found()["processes"].size(), hostile.processes) << ran.err;
  EXPECT_LT(ran.out.size(), std::size_t{2} << 20) << "a flood is cut off where CUDA's buffer ends";
}
INSTANTIATE_TEST_SUITE_P(
    Each, HostilePrograms,
    testing::Values(Hostile{"endless", 1, "deadlock: kernel endless"},
                    Hostile{"blocks", 1, "limit: kernel nothing"},
                    Hostile{"recursion", 1, "limit: kernel recursion"},
                    Hostile{"null", 1, "memcheck: kernel writes_to"},
                    Hostile{"wild", 1, "memcheck: kernel writes_to"},
                    Hostile{"kernel_space", 1, "memcheck: kernel writes_to"},
                    Hostile{"stack", 1, "host memory, which a kernel may not touch"},
                    Hostile{"heap", 1, "host memory, which a kernel may not touch"},
                    Hostile{"flood", 0, "no findings"}, Hostile{"huge", 0, "no findings"},
                    Hostile{"abort", 1, "ended by SIGABRT"},
                    Hostile{"segfault", 128 + 11,
                            "the program died: the program was ended by SIGSEGV"},
                    Hostile{"fork", 0, "no findings", 2},
                    Hostile{"exec", 1, "memcheck: kernel writes_to", 2},
                    Hostile{"exit_in_callback", 3, "exit code is 3"},
                    Hostile{"closes_everything", 1, "memcheck: kernel writes_to"}),
    [](const testing::TestParamInfo<Hostile>& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace attest
