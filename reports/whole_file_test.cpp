// Where written files end up: behind links, in pipes, on devices, in folders that may not be
// written. A link that is replaced may be the machine's own /dev/stdout.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <thread>

#include "reference/text.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class WholeFile : public testing::Test {
 protected:
  WholeFile() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~WholeFile() override { fs::remove_all(folder_); }

  /// Nothing else than `names` is in the folder: no draft was left.
  void holds_only(std::initializer_list<const char*> names) const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      ++count;
      EXPECT_TRUE(std::find(names.begin(), names.end(), entry.path().filename().string()) !=
                  names.end())
          << entry.path();
    }
    EXPECT_EQ(count, names.size());
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("attest_whole_file_" + std::to_string(::getpid()));
};

TEST_F(WholeFile, OfALinkTheTargetIsReplaced) {
  std::ofstream(folder_ / "target") << "old";
  fs::permissions(folder_ / "target", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", folder_ / "link");
  require_writable_file(folder_ / "link");
  EXPECT_EQ(text_of(folder_ / "target"), "old") << "asking changes nothing";
  write_whole(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(folder_ / "target"), "new");
  EXPECT_EQ(fs::status(folder_ / "target").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  holds_only({"target", "link"});
}

TEST_F(WholeFile, ALinkToNothingLeadsToANewFile) {
  fs::create_symlink("second", folder_ / "first");
  fs::create_symlink(folder_ / "absent", folder_ / "second");
  require_writable_file(folder_ / "first");
  write_whole(folder_ / "first", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "first"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "second"));
  EXPECT_EQ(text_of(folder_ / "absent"), "new");
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_NE(refusal([&] { write_whole(folder_ / "circle", "new"); }), "");
}

TEST_F(WholeFile, APipeIsWrittenToThroughALinkToo) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_ / "link");
  require_writable_file(folder_ / "link");  // waits for nobody
  std::string through;
  std::jthread reader([&] { through = text_of(folder_ / "pipe"); });
  write_whole(folder_ / "link", "new");
  reader.join();
  EXPECT_EQ(through, "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

// What /dev/stdout is where standard output is a pipe: a link into a name that no folder has.
TEST_F(WholeFile, ALinkIntoAnOpenPipeStays) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string open = "/proc/self/fd/" + std::to_string(ends[1]);
  fs::create_symlink(open, folder_ / "link");
  require_writable_file(folder_ / "link");
  write_whole(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  ::close(ends[1]);
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 3);
  EXPECT_STREQ(text, "new");
  ::close(ends[0]);
  holds_only({"link"});
}

TEST_F(WholeFile, AFileThatHasNoNameAnyMoreIsWrittenTo) {
  const int open = ::open((folder_ / "gone").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(open, 0);
  fs::remove(folder_ / "gone");
  write_whole("/proc/self/fd/" + std::to_string(open), "new");
  char text[8] = {};
  EXPECT_EQ(::pread(open, text, sizeof text, 0), 3);
  EXPECT_STREQ(text, "new");
  ::close(open);
  holds_only({});
}

TEST_F(WholeFile, ADeviceStaysADevice) {
  fs::create_symlink("/dev/full", folder_ / "full");
  fs::create_symlink("/dev/null", folder_ / "null");
  write_whole(folder_ / "null", "new");
  const std::string why = refusal([&] { write_whole(folder_ / "full", "new"); });
  EXPECT_NE(why.find("No space left"), std::string::npos) << why;
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  holds_only({"full", "null"});
}

TEST_F(WholeFile, WhatTakesNoFileIsRefusedBeforeTheWork) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, (folder_ / "socket").c_str(), sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  const auto refuses = [&](const fs::path& path, const char* part) {
    const std::string why = refusal([&] { require_writable_file(path); });
    EXPECT_NE(why.find(part), std::string::npos) << path << ": " << why;
  };
  refuses(folder_, "it is a folder");
  refuses(folder_ / "socket", "it is a socket");
  refuses(folder_ / "absent" / "file", "No such file");
  refuses("/proc/attest.json", "/proc/attest.json: cannot be written");
  refuses("", "empty");
  ::close(listener);
}

TEST_F(WholeFile, AFullDiskLeavesTheOldFile) {
  std::ofstream(folder_ / "report") << "old";
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit little { 1000, before.rlim_max };
  ::setrlimit(RLIMIT_FSIZE, &little);
  const std::string why = refusal([&] { write_whole(folder_ / "report", std::string(2000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(why.find("File too large"), std::string::npos) << why;
  EXPECT_EQ(text_of(folder_ / "report"), "old");
  holds_only({"report"});
}

// In a process that may not write everywhere, as root may.
TEST_F(WholeFile, AFileThatMayBeWrittenInAFolderThatMayNotIsWrittenInPlace) {
  std::ofstream(folder_ / "mine") << "something older and longer";
  fs::permissions(folder_ / "mine", fs::perms(0666));
  fs::permissions(folder_, fs::perms(0555));
  const auto as_nobody = [&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(1);
    require_writable_file(folder_ / "mine");
    write_whole(folder_ / "mine", "new");
    std::_Exit(refusal([&] { write_whole(folder_ / "other", "new"); }).empty() ? 2 : 0);
  };
  EXPECT_EXIT(as_nobody(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(text_of(folder_ / "mine"), "new");
  fs::permissions(folder_, fs::perms(0755));
}

}  // namespace
}  // namespace attest
