// What cannot be opened is an operating error that says why and what to do; never a crash, a hang
// or a fault of a case.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "optimized/plugin/testing/test_cases.hpp"
#include "optimized/plugin/worker.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::string refusal(const WorkerOptions& options) {
  try {
    open_plugin(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& test_plugin) {
  return refusal(options_for(test_plugin));
}

std::string refusal_of_file(const std::string& name, const std::string& bytes) {
  WorkerOptions options;
  options.plugin = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(options.plugin, std::ios::binary) << bytes;
  return refusal(options);
}

testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << part << "\"";
}

TEST(WorkerLoad, FilesThatAreNoLibrary) {
  EXPECT_TRUE(says(refusal("no_such_plugin"), "no such file"));
  EXPECT_TRUE(says(refusal("no_such_plugin"), "no_such_plugin.so"));
  EXPECT_NE(refusal_of_file("text.so", "this is no library\n"), "");
  EXPECT_NE(refusal_of_file("empty.so", ""), "");
  std::ifstream file(options_for("echoes").plugin, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (const std::size_t bytes : {std::size_t{20}, std::size_t{64}, whole.size() / 2}) {
    EXPECT_NE(refusal_of_file("truncated.so", whole.substr(0, bytes)), "") << bytes;
  }
  WorkerOptions folder;
  folder.plugin = testing::TempDir();
  EXPECT_NE(refusal(folder), "");
}

TEST(WorkerLoad, TablesThatCannotBeUsed) {
  EXPECT_TRUE(says(refusal("lacks_the_symbol"), "attest_subject"));
  EXPECT_TRUE(says(refusal("lacks_a_function"), "function_that_nobody_defines"));
  EXPECT_TRUE(says(refusal("other_version"), "ABI version 77"));
  EXPECT_TRUE(says(refusal("small_table"), "struct_bytes = 24"));
  EXPECT_TRUE(says(refusal("null_table"), "returned NULL"));
  EXPECT_TRUE(says(refusal("other_device"), "device_type 9"));
  EXPECT_TRUE(says(refusal("cuda_without_cudart"), "-cudart shared"));
  EXPECT_TRUE(says(refusal("no_operation"), "no operation"));
  EXPECT_TRUE(says(refusal("negative_error"), "negative"));
  EXPECT_TRUE(says(refusal("unknown_format"), "p_format 9"));
  EXPECT_TRUE(says(refusal("no_key_block"), "keys_per_rescale is 0"));
}

TEST(WorkerLoad, DeathWhileLoading) {
  EXPECT_TRUE(says(refusal("crashes_at_load"), "SIGSEGV"));
  EXPECT_TRUE(says(refusal("crashes_when_asked"), "SIGABRT"));
  EXPECT_TRUE(says(refusal("exits_at_load"), "exit(5)"));
}

TEST(WorkerLoad, HangWhileLoadingEndsWithTheTimeOfACase) {
  WorkerOptions options = options_for("hangs_at_load");
  options.case_seconds = 1;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(says(refusal(options), "time limit"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(WorkerLoad, ProgramRefusesToBeStartedByHand) {
  const std::string program = (program_folder() / "attest-worker").string();
  const int status = std::system((program + " 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

}  // namespace
}  // namespace attest
