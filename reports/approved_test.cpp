// Every rendering of one small Run against a text that a person has approved. After a wanted
// change: ATTEST_APPROVE=1 ./approved_test, read the difference, and commit it by itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "reports/formats.hpp"
#include "reports/testing/sample_run.hpp"

namespace attest {
namespace {

void compare(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(ATTEST_APPROVED) / name;
  if (std::getenv("ATTEST_APPROVE") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing";
  const std::string approved{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, approved) << "differs from " << path;
}

TEST(Approved, Summary) {
  compare("summary.md.txt", summary_of(sample_run()));
}
TEST(Approved, Junit) {
  compare("junit.xml", junit_of(sample_run()));
}
TEST(Approved, RunJson) {
  compare("run.json", run_json_of(sample_run()));
}
TEST(Approved, Table) {
  compare("table_100.txt", table_of(sample_run(), {.columns = 100}));
}
TEST(Approved, TableNarrow) {
  compare("table_80.txt", table_of(sample_run(), {.columns = 80}));
}
TEST(Approved, TableColoured) {
  compare("table_colour.txt", table_of(sample_run(), {.columns = 120, .colour = true}));
}

TEST(Table, NeverWiderThanAskedFor) {
  const attest::Run run = sample_run();
  for (const int columns : {80, 100, 120}) {
    const std::string table = table_of(run, {.columns = columns});
    for (std::size_t start = 0; start < table.size();) {
      const std::size_t stop = table.find('\n', start);
      EXPECT_LE(stop - start, static_cast<std::size_t>(columns))
          << table.substr(start, stop - start);
      start = stop + 1;
    }
  }
}

TEST(Junit, CountsWhatItHolds) {
  const std::string junit = junit_of(sample_run());
  EXPECT_NE(junit.find("tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"2\""), std::string::npos)
      << junit;
  EXPECT_EQ(junit.find('\x01'), std::string::npos);
  EXPECT_EQ(junit.find('\xff'), std::string::npos);
}

TEST(Progress, WritesPlainTextToAPipe) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(file);
    progress.update(sample_run(), 0.5);
    progress.line("found something");
    progress.finish();
  }
  std::rewind(file);
  char text[256] = {};
  const std::size_t count = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  EXPECT_EQ(std::string(text, count), "found something\n");
}

}  // namespace
}  // namespace attest
