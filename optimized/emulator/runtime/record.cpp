// Lines of tab-separated fields, appended by one write each. See record.hpp and README.md.
#include "optimized/emulator/runtime/record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "optimized/emulator/runtime/failures.hpp"
#include "optimized/emulator/runtime/last_words.hpp"

namespace attest::emulator::runtime {
namespace {

constexpr int kAttempts = 1000;  // a process may replace itself by exec, keeping its number

/// A field may hold anything but what separates fields and lines.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\0') {
      out += "\\0";
    } else {
      out += c;
    }
  }
  return out;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  while (!words.empty() && words.back() == '\0') words.pop_back();
  for (char& c : words) c = c == '\0' ? ' ' : c;
  return words;
}

std::string triple(const std::array<std::uint32_t, 3>& index) {
  return fmt::format("{},{},{}", index[0], index[1], index[2]);
}

}  // namespace

Record::Record() {
  if (const char* folder = std::getenv("ATTEST_RECORD")) folder_ = folder;
  if (folder_.empty()) return;
  // What a process forks off is as much a part of the program: whoever reads the records may wait
  // for it, and learns of its death, before it has launched anything.
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] {
                   Record& record = instance();
                   if (record.process_ != 0 && record.on()) record.begin();
                   record.mutex_.unlock();
                 });
}

Record& Record::instance() {
  // Never destroyed: kernels may run in destructors of the program.
  static Record& record = *new Record;
  return record;
}

void Record::begin() {
  process_ = getpid();
  kernels_.clear();
  written_.clear();
  int file = -1;
  for (int i = 0; i < kAttempts && file < 0; ++i) {
    path_ = fmt::format("{}/{}.{}", folder_, process_, i);
    file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file < 0) {
    std::fprintf(stderr, "attest: ATTEST_RECORD: no file can be made in %s: %s\n", folder_.c_str(),
                 std::strerror(errno));
    folder_.clear();
    return;
  }
  ::close(file);
  last_words_go_to(path_, process_);
  line({"attest-record", "1"});
  line({"process", fmt::format("{}", process_), fmt::format("{}", getppid()), command_line()});
  line({"options", options_});
}

void Record::line(const std::vector<std::string>& fields) {
  if (!on()) return;
  if (process_ != getpid()) begin();
  std::string text;
  for (const std::string& field : fields) {
    if (!text.empty()) text += '\t';
    text += escaped(field);
  }
  text += '\n';
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  ::close(file);
}

void Record::options(const DeviceOptions& options) {
  const std::scoped_lock lock(mutex_);
  options_ = print(options);
  if (on()) begin();
}

void Record::finding(const CheckerFinding& finding) {
  const std::scoped_lock lock(mutex_);
  if (!on()) return;
  if (process_ != getpid()) begin();
  const std::string place = finding.line != 0 ? fmt::format("{}:{}", finding.file, finding.line)
                                              : finding.what;  // no line: tell them by their text
  if (!written_.insert(fmt::format("{}\t{}\t{}", finding.kind, finding.kernel, place)).second)
    return;
  line({"finding", finding.kind, finding.kernel, triple(finding.block), triple(finding.thread),
        finding.file, fmt::format("{}", finding.line), finding.what});
}

void Record::obstacle(std::string_view kind, std::string_view text) {
  const std::scoped_lock lock(mutex_);
  if (!on()) return;
  if (process_ != getpid()) begin();
  if (!written_.insert(fmt::format("{}\t{}", kind, text)).second) return;
  line({"obstacle", std::string(kind), std::string(text)});
}

void Record::count(const std::string& kernel) {
  const Counts& counts = kernels_[kernel];
  line({"kernel", kernel, fmt::format("{}", counts.launches),
        fmt::format("{}", counts.warp_instructions)});
}

void Record::began(const std::string& kernel) {
  const std::scoped_lock lock(mutex_);
  if (!on()) return;
  if (process_ != getpid()) begin();
  if (++kernels_[kernel].launches == 1) count(kernel);
}

void Record::ended(const std::string& kernel, std::uint64_t warp_instructions) {
  const std::scoped_lock lock(mutex_);
  if (!on() || process_ != getpid()) return;
  Counts& counts = kernels_[kernel];
  counts.warp_instructions += warp_instructions;
  // Now and then, since a process may end in ways that leave no time for a last word.
  if ((counts.launches & (counts.launches - 1)) == 0) count(kernel);
}

void Record::close() {
  const std::scoped_lock lock(mutex_);
  if (!on() || process_ != getpid()) return;
  for (const auto& [kernel, counts] : kernels_) {
    if ((counts.launches & (counts.launches - 1)) != 0) count(kernel);  // else it has been said
  }
  if (Device::instance().options().counters) {
    line({"profile", emulator::print(Device::instance().profile())});
  }
  line({"end"});
}

namespace {

/// Runs when the process ends by exit or by returning from main.
__attribute__((destructor)) void close_record() {
  tell_failures();
  Record::instance().close();
}

}  // namespace
}  // namespace attest::emulator::runtime
