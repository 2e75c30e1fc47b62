// A thread that redraws one line: see the header.
#include "reports/stage.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "reports/formats.hpp"
#include "reports/say.hpp"

namespace attest {

Stage::Stage(std::FILE* out, std::string what, Pieces pieces, int log_seconds)
    : out_(out),
      terminal_(draws_lines_again(out)),
      log_seconds_(log_seconds),
      what_(std::move(what)),
      pieces_(std::move(pieces)),
      thread_([this](std::stop_token stop) { show(stop); }) {}

Stage::~Stage() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Stage::show(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  bool drawn = false;
  for (int seconds = 1;; ++seconds) {
    over_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    if (stop.stop_requested()) break;
    if (!terminal_ && seconds % log_seconds_ != 0) continue;
    const std::string so_far =
        pieces_.done == nullptr
            ? ""
            : fmt::format(": {} of {} {}", pieces_.done->load(), pieces_.of, pieces_.name);
    const std::string text = fmt::format("{}{} ({} s)", what_, so_far, seconds);
    if (terminal_) {
      say(out_, "\r\x1b[K{}", text.substr(0, columns_of(out_) - 1));
    } else {
      say(out_, "{}\n", text);
    }
    drawn = terminal_;
    std::fflush(out_);
  }
  if (!drawn) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

}  // namespace attest
