// Stage: a line on a terminal that says what is being worked on, and for how long, where little can
// be said of how much is left. It knows nothing of the work, and is silent elsewhere.
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
  /// Until it goes away, and from the first second on: "what (3 s)", "what: 1 of 8 heads (3 s)".
  Stage(std::FILE* out, std::string what, Pieces pieces = {});
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  void draw(std::stop_token stop);
  std::FILE* out_;
  std::string what_;
  Pieces pieces_;
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace attest
