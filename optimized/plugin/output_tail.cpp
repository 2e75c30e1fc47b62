// The limit on what is passed on holds for the whole process, over all workers: a plugin that
// prints in every case would otherwise bury the report.
#include "optimized/plugin/output_tail.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "reference/one_line.hpp"

namespace attest {
namespace {

constexpr std::size_t kPassedOnMax = 16 * 1024;
constexpr std::size_t kTailBytes = 2048;
constexpr std::size_t kTailLines = 4;
constexpr std::size_t kReadsMax = 64;  // per drain: a flood must not keep us from the clock

std::atomic<std::size_t> passed_on{0};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // nobody reads our stderr: nothing to be done
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Without what a terminal would obey. Line breaks and tabs stay, and so do bytes beyond ASCII,
/// since a read may end within a character; but for 0x80 to 0x9f behind 0xc2, which are C1.
std::string harmless(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  unsigned char before = 0;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    const bool control = (code < ' ' && letter != '\n' && letter != '\t') || code == 127 ||
                         (before == 0xC2U && code < 0xA0U);
    before = code;
    if (control) {
      out += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

OutputTail::~OutputTail() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputTail::watch(int descriptor) {
  descriptor_ = descriptor;
  fcntl(descriptor_, F_SETFL, O_NONBLOCK);
}

bool OutputTail::drain() {
  std::array<char, 4096> buffer;
  for (std::size_t reads = 0; reads < kReadsMax; ++reads) {
    const ssize_t bytes = read(descriptor_, buffer.data(), buffer.size());
    if (bytes == 0) return false;
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    const auto count = static_cast<std::size_t>(bytes);
    pass_on(buffer.data(), count);
    tail_.append(buffer.data(), count);
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  return true;
}

void OutputTail::pass_on(const char* text, std::size_t bytes) {
  const std::size_t before = passed_on.fetch_add(bytes);
  if (before >= kPassedOnMax) return;
  write_all(harmless({text, std::min(bytes, kPassedOnMax - before)}));
  if (before + bytes >= kPassedOnMax) {
    write_all("\n[attest: the plugin prints more than 16 KB; the rest is dropped]\n");
  }
}

std::string OutputTail::last_lines() const {
  std::string_view text = tail_;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kTailLines && begin > 0; ++lines) {
    const std::size_t line = text.rfind('\n', begin - 1);
    begin = line == std::string_view::npos ? 0 : line;
  }
  text.remove_prefix(begin);
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  std::string printed;
  for (bool first = true; !text.empty(); first = false) {
    const std::string_view line = text.substr(0, text.find('\n'));
    printed += (first ? "" : " | ") + one_line(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return printed;
}

}  // namespace attest
