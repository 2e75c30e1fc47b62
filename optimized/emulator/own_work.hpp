// Which thread executes attest's own code alone just now, so that a deadly signal there can be told
// from one of the program's or plugin's. Read in signal handlers: no allocation, no lock. Knows
// neither signals nor who asks.
#pragma once

namespace attest::emulator {

/// While one lives, its thread runs nothing that the program wrote and dereferences nothing that
/// the program passed. `what` and `name` make the words "it executed the kernel NAME".
class OwnWork {
 public:
  /// `addresses_checked`: no access goes where nobody looked first; without it a kernel may take
  /// the thread to any address.
  OwnWork(const char* what, const char* name, bool addresses_checked = true)
      : what_(what), name_(name), addresses_checked_(addresses_checked), before_(now_) {
    now_ = this;
  }
  /// The same, on another thread; of nothing, nothing.
  explicit OwnWork(const OwnWork* of)
      : what_(of != nullptr ? of->what_ : ""),
        name_(of != nullptr ? of->name_ : ""),
        addresses_checked_(of != nullptr && of->addresses_checked_),
        before_(now_) {
    if (of != nullptr) now_ = this;
  }
  ~OwnWork() { now_ = before_; }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

  /// What this thread is at; nullptr: the program's code may run.
  static const OwnWork* now() { return now_; }

  const char* what() const { return what_; }
  const char* name() const { return name_; }
  bool addresses_checked() const { return addresses_checked_; }

 private:
  const char* what_;
  const char* name_;
  bool addresses_checked_;
  const OwnWork* before_;
  // Reached without the loader's help, which a signal handler may not ask for.
  [[gnu::tls_model("initial-exec")]] static inline thread_local const OwnWork* now_ = nullptr;
};

}  // namespace attest::emulator
