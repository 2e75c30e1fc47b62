// A thread that redraws one line: see the header.
#include "reports/stage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "reports/formats.hpp"
#include "reports/say.hpp"

namespace attest {

Stage::Stage(std::FILE* out, std::string what, Pieces pieces)
    : out_(out), what_(std::move(what)), pieces_(std::move(pieces)) {
  if (::isatty(::fileno(out)) != 0) thread_ = std::jthread([this](std::stop_token s) { draw(s); });
}

Stage::~Stage() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Stage::draw(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  bool drawn = false;
  for (int seconds = 1;; ++seconds, drawn = true) {
    over_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    if (stop.stop_requested()) break;
    const auto columns = static_cast<std::size_t>(style_of(out_).columns - 1);
    const std::string so_far =
        pieces_.done == nullptr
            ? ""
            : fmt::format(": {} of {} {}", pieces_.done->load(), pieces_.of, pieces_.name);
    const std::string text = fmt::format("{}{} ({} s)", what_, so_far, seconds);
    say(out_, "\r\x1b[K{}", text.substr(0, columns));
    std::fflush(out_);
  }
  if (!drawn) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

}  // namespace attest
