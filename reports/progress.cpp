// Progress of a run while it goes on: a bar on a terminal, now and then a line elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "reports/formats.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

constexpr double kRedrawSeconds = 0.1;  // a person sees ten steps a second as movement
constexpr double kLineSeconds = 10;     // in a log
constexpr int kBarColumns = 24;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string state_of(const Run& run) {
  return fmt::format("{} cases, {:.0f} s{}", run.cases(), run.seconds,
                     run.findings.empty() ? "" : fmt::format(", {} findings", run.findings.size()));
}

}  // namespace

Progress::Progress(std::FILE* out) : out_(out), terminal_(draws_lines_again(out)) {}
Progress::~Progress() {
  clear();
}

void Progress::update(const Run& so_far, double share_done) {
  update(state_of(so_far), share_done);
}

void Progress::update(std::string_view state, double share_done) {
  const double now = now_seconds();
  if (last_seconds_ < 0 && !terminal_) last_seconds_ = now;  // no line before there is news
  if (now - last_seconds_ < (terminal_ ? kRedrawSeconds : kLineSeconds)) return;
  last_seconds_ = now;
  const double share = std::isfinite(share_done) ? std::clamp(share_done, 0.0, 1.0) : 0.0;
  const std::string line = fmt::format("{:3.0f} %  {}", 100 * share, state);
  if (terminal_) {
    const int full = static_cast<int>(share * kBarColumns);
    const std::string text =
        fmt::format("[{:#<{}}{:.<{}}] {}", "", full, "", kBarColumns - full, line);
    say(out_, "\r\x1b[K{}", text.substr(0, columns_of(out_) - 1));
    drawn_ = true;
  } else {
    say(out_, "{}\n", line);
  }
  std::fflush(out_);
}

void Progress::line(std::string_view text) {
  clear();
  say(out_, "{}\n", text);
  std::fflush(out_);
}

void Progress::finish() {
  clear();
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace attest
