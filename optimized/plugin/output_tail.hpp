// What a plugin prints: passed on to attest's own stderr up to a limit, the last lines kept for the
// text of a fault. Reading never waits, and a flood is read and dropped.
#pragma once
#include <cstddef>
#include <string>

namespace attest {

class OutputTail {
 public:
  OutputTail() = default;
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;
  ~OutputTail();

  /// Takes over the reading end of a pipe and makes it non-blocking.
  void watch(int descriptor);
  int descriptor() const { return descriptor_; }

  /// Reads what is there. False when nobody can write any more.
  bool drain();

  /// The last lines printed since the last clear(), as one line, or empty.
  std::string last_lines() const;
  void clear() { tail_.clear(); }

 private:
  void pass_on(const char* text, std::size_t bytes);

  int descriptor_ = -1;
  std::string tail_;
};

}  // namespace attest
