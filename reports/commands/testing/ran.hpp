// Runs the built program, as a shell would, in a folder of its own. Test code; no program includes
// this.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace attest {

inline std::filesystem::path bin() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Ran {
  int exit_code = -1;
  std::string out, err;

  std::string last_line() const {
    const std::size_t end = out.find_last_not_of('\n');
    const std::size_t begin = out.find_last_of('\n', end);
    return end == std::string::npos ? "" : out.substr(begin + 1, end - begin);
  }
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  /// `words` as typed behind `attest`; in the test's own folder.
  Ran run(const std::string& words) const {
    const std::string line = "cd '" + folder_.string() + "' && '" + (bin() / "attest").string() +
                             "' " + words + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder_ / "out.txt"),
            text_of(folder_ / "err.txt")};
  }

  /// Exit 2, one line on stderr that begins with "attest: " and holds each of `parts`.
  void refuses(const std::string& words, const std::vector<std::string>& parts) const {
    const Ran ran = run(words);
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_EQ(ran.err.find("attest: "), 0U) << words << ": " << ran.err;
    EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << words << ": " << ran.err;
    for (const std::string& part : parts) {
      EXPECT_NE(ran.err.find(part), std::string::npos) << words << ": " << ran.err;
    }
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("attest_run_" + std::to_string(::getpid()));
};

}  // namespace attest
