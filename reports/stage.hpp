// Stage: a line on a terminal that says what is being worked on, and for how long, where nothing
// can be said of how much is left. It knows nothing of the work, and is silent elsewhere.
#pragma once
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace attest {

class Stage {
 public:
  /// Until it goes away, and from the first second on: "what (3 s)".
  Stage(std::FILE* out, std::string what);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  void draw(std::stop_token stop);
  std::FILE* out_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace attest
