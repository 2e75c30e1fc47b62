// The bundle where there is nothing of this project but it, and no driver: an empty environment,
// and only the libraries it brings. What a GPU would answer is beyond this test.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "optimized/plugin/usual_calls.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

const fs::path kBundle = ATTEST_BUNDLE;
constexpr std::uintmax_t kBytesMax = 60U << 20;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The line that begins with `words`, or "".
std::string line_of(const std::string& text, const std::string& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(words)) return line;
  }
  return "";
}

/// The number `place` words behind the first `words` of a line.
double number_of(const std::string& line, const std::string& words, int place) {
  std::istringstream rest(line.substr(std::min(words.size(), line.size())));
  std::string word = "nan";
  for (int i = 0; i <= place; ++i) rest >> word;
  return std::strtod(word.c_str(), nullptr);
}

/// As one word of a shell.
std::string quoted(const fs::path& path) {
  std::string word = "'";
  word += path.string();
  return word += '\'';
}

class Bundle : public testing::Test {
 protected:
  Bundle() { fs::create_directories(folder_); }
  ~Bundle() override { fs::remove_all(folder_); }

  /// The exit code of `words` in the test's own folder, with no variable but those named.
  int run(const std::string& variables, const std::string& words) const {
    const std::string line = "cd " + quoted(folder_) + " && env -i " + variables + " " + words +
                             " >out.txt 2>err.txt </dev/null";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string launcher() const { return quoted(kBundle / "run"); }
  static std::string libraries() {
    return quoted(kBundle / "lib") + ":" + quoted(kBundle / "lib" / "gcc");
  }
  std::string said() const { return text_of(folder_ / "err.txt"); }
  std::string printed() const { return text_of(folder_ / "out.txt"); }

  const fs::path folder_ =
      fs::temp_directory_path() / ("attest_bundle_" + std::to_string(::getpid()));
};

TEST_F(Bundle, BringsEveryLibraryButGlibcAndIsSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kBundle)) {
    ASSERT_FALSE(entry.is_symlink()) << entry.path();
    if (!entry.is_regular_file()) continue;
    bytes += entry.file_size();
    if (!text_of(entry.path()).starts_with("\177ELF")) continue;
    ASSERT_EQ(
        run("PATH=/usr/bin:/bin LD_LIBRARY_PATH=" + libraries(), "ldd " + quoted(entry.path())), 0)
        << said();
    std::istringstream lines(printed());
    for (std::string line; std::getline(lines, line);) {
      bool known = has(line, kBundle.string()) || has(line, "linux-vdso");
      for (const char* glibc :
           {"ld-linux-x86-64.", "libc.", "libm.", "libdl.", "librt.", "libpthread."}) {
        known = known || has(line, glibc);
      }
      EXPECT_TRUE(known) << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(bytes, 1U << 20);
  EXPECT_LT(bytes, kBytesMax);
  EXPECT_TRUE(fs::exists(kBundle / "lib" / "libcudart.so.13"));
}

TEST_F(Bundle, SaysInOneSentenceThatThereIsNoDriver) {
  // A PATH on which no driver can be seen, whatever this machine has.
  const fs::path tools = folder_ / "tools";
  fs::create_directories(tools);
  for (const char* tool : {"bash", "dirname", "readlink", "grep"}) {
    fs::create_symlink(fs::path("/usr/bin") / tool, tools / tool);
  }
  std::ofstream(tools / "ldconfig") << "#!/bin/sh\n";
  fs::permissions(tools / "ldconfig", fs::perms::owner_all);
  const std::string path = "PATH=" + quoted(tools);
  EXPECT_EQ(run(path, launcher()), 2);
  EXPECT_TRUE(has(said(), "run: there is no NVIDIA driver")) << said();
  EXPECT_EQ(said().find('\n'), said().size() - 1) << said();
  EXPECT_EQ(printed(), "");
  EXPECT_EQ(run(path + " ATTEST_BUNDLE_DEVICE=emulatd", launcher()), 2);
  EXPECT_TRUE(has(said(), "'emulatd'; cuda and emulated are known")) << said();
}

TEST_F(Bundle, DoesWithoutItsOwnLibrariesOfGccWhereTheyDoNotFit) {
  const fs::path copy = folder_ / "copy";
  fs::copy(kBundle, copy, fs::copy_options::recursive);
  std::ofstream(copy / "lib" / "gcc" / "libstdc++.so.6") << "none that this loader takes\n";
  const std::string words = "PATH=/usr/bin:/bin ATTEST_BUNDLE_DEVICE=neither";
  EXPECT_EQ(run(words, quoted(copy / "run")), 2);
  EXPECT_TRUE(has(said(), "'neither'")) << said();  // so the programs start
  for (const auto& entry : fs::directory_iterator(copy / "lib")) {
    if (entry.is_regular_file() && entry.path().filename() != "needed") {
      std::ofstream(entry.path()) << "no library\n";
    }
  }
  EXPECT_EQ(run(words, quoted(copy / "run")), 2);
  EXPECT_TRUE(has(said(), "the programs do not start here")) << said();
  EXPECT_TRUE(has(said(), "needed: glibc ")) << said();
}

TEST_F(Bundle, RunsEveryStepOnTheEmulator) {
  EXPECT_EQ(run("PATH=/usr/bin:/bin ATTEST_BUNDLE_DEVICE=emulated", launcher() + " found"), 0)
      << printed() << said();
  const std::string summary = text_of(folder_ / "found" / "summary.txt");
  for (const char* step : {"gate", "compare", "sweep", "time"}) {
    EXPECT_TRUE(has(summary, std::string(step) + ": exit code 0")) << summary;
  }
  EXPECT_TRUE(fs::exists(folder_ / "found" / "gate" / "run.json"));
  EXPECT_TRUE(fs::exists(folder_ / "found" / "compare.json"));
  // The emulator is its own equal under its own model, and another's under plain f32.
  const std::string table = text_of(folder_ / "found" / "compare.txt");
  EXPECT_GT(number_of(line_of(table, "sm_80 "), "sm_80", 2), 0) << table;
  EXPECT_EQ(number_of(line_of(table, "sm_80 "), "sm_80", 3), 0) << table;
  EXPECT_GT(number_of(line_of(table, "f32 "), "f32", 3), 0) << table;
  // Every call is timed, and nobody is to believe it.
  const std::string times = text_of(folder_ / "found" / "time.txt");
  EXPECT_TRUE(has(times, "no time here means anything")) << times;
  std::size_t timed = 0;
  for (std::size_t at = 0; (at = times.find(" us ", at)) != std::string::npos; ++at) ++timed;
  EXPECT_EQ(timed, std::size(kUsualCalls)) << times;
  EXPECT_FALSE(has(times, "declined")) << times;
  // Its approximate instructions round correctly.
  const std::string sweep = text_of(folder_ / "found" / "sweep.txt");
  for (const std::string words : {"ex2  all", "rcp  1 .. 2", "rcp  2^-126 .. 2^127"}) {
    EXPECT_GT(number_of(line_of(sweep, words), words, 0), 0) << sweep;
    EXPECT_LE(std::abs(number_of(line_of(sweep, words), words, 1)), 0.5) << sweep;
  }
}

TEST_F(Bundle, TheSweepSeesErrorsAsLargeAsDocumented) {
  const std::string attest = quoted(kBundle / "bin" / "attest");
  const std::string sweep = quoted(kBundle / "bin" / "sweep_approximations");
  const std::string variable = "LD_LIBRARY_PATH=" + libraries();
  ASSERT_EQ(run(variable,
                attest + " run --checks none --numerics worst:3 -- " + sweep + " --stride 100003"),
            0)
      << printed() << said();
  const double ex2 = std::abs(number_of(line_of(printed(), "ex2  all"), "ex2  all", 1));
  EXPECT_GT(ex2, 2) << printed();
  EXPECT_LE(ex2, 2.5) << printed();
  const double rcp = std::abs(number_of(line_of(printed(), "rcp  1 .. 2"), "rcp  1 .. 2", 1));
  EXPECT_GT(rcp, 0.9) << printed();  // of one ulp (PTX ISA, rcp)
  EXPECT_LE(rcp, 1) << printed();
  EXPECT_EQ(run(variable, attest + " run -- " + sweep + " --stride 0"), 2);
}

TEST_F(Bundle, TimesOnlyWhatComputes) {
  const std::string on_emulator = quoted(kBundle / "bin" / "attest") + " run --checks none -- " +
                                  quoted(kBundle / "bin" / "time_kernels") + " ";
  const std::string variable = "LD_LIBRARY_PATH=" + libraries();
  const std::string idle = quoted(ATTEST_WRITES_NOTHING);
  EXPECT_EQ(run(variable, on_emulator + idle + " --repetitions 1 --batch 1"), 1);
  EXPECT_TRUE(has(said(), "an output is not finite")) << said();
  EXPECT_EQ(run(variable, on_emulator + "/no/where.so"), 2);
  EXPECT_TRUE(has(said(), "/no/where.so")) << said();
  EXPECT_EQ(run(variable, on_emulator + idle + " --repetitions many"), 2);
  EXPECT_TRUE(has(said(), "usage:")) << said();
}

}  // namespace
}  // namespace attest
