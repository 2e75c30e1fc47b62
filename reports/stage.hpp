// Stage: a line on a terminal that says what is being worked on, and for how long, where little can
// be said of how much is left; in a log a line now and then. It knows nothing of the work.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "reference/problem.hpp"

namespace attest {

/// How many of `of` pieces are done, where that can be said.
struct Pieces {
  const std::atomic<Index>* done = nullptr;
  Index of = 0;
  std::string name;  // "heads"
};

class Stage {
 public:
  static constexpr int kLogSeconds = 10;
  /// Until it goes away, and from the first second on: "what (3 s)", "what: 1 of 8 heads (3 s)".
  /// Elsewhere than on a terminal a line each after `log_seconds`.
  Stage(std::FILE* out, std::string what, Pieces pieces = {}, int log_seconds = kLogSeconds);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  void show(std::stop_token stop);
  std::FILE* out_;
  const bool terminal_;
  const int log_seconds_;
  std::string what_;
  Pieces pieces_;
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace attest
