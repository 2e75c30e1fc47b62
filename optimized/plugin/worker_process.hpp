// A worker process as attest sees it: started, asked, timed, and buried. Knows the protocol's
// envelope (messages, headers, how a process ended) but not what a call means.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "optimized/plugin/output_tail.hpp"
#include "optimized/plugin/protocol.hpp"
#include "optimized/plugin/shared_memory.hpp"
#include "optimized/plugin/worker.hpp"
#include "reference/subject.hpp"

namespace attest {

/// What the emulator of a worker is told: options.emulator, and what follows from the others.
emulator::DeviceOptions emulator_options(const WorkerOptions& options);

class WorkerProcess {
 public:
  /// Starts it and waits until the plugin is loaded; the greeting then lies in reply(). Throws
  /// Error when it cannot be started, or dies or hangs while loading.
  explicit WorkerProcess(const WorkerOptions& options);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  // kills it

  SharedMemory& request() { return request_; }
  SharedMemory& reply() { return reply_; }
  pid_t id() const { return id_; }

  /// Clears the reply's header, sends, and waits for the answer. A fault means that the process is
  /// gone: no answer in time and nothing done meanwhile, or it died. Throws Error when it was at
  /// work to the end of its time: that slow is not wrong; the process is gone then, too.
  std::optional<Fault> ask(MessageKind kind);
  /// After a fault: somebody else ended the process, or the system did when memory ran out.
  bool killed_from_outside() const { return killed_from_outside_; }

  /// Whether it died while nothing was asked of it, and how. Being killed from outside is nobody's
  /// fault: kind is empty then.
  std::optional<Fault> died_idle();

 private:
  enum class Answer : std::uint8_t { given, too_late, at_work, garbled, none };
  void start(const WorkerOptions& options);
  Answer wait_for_answer();
  void end() const;  // with its children
  int bury();        // the wait status; kills it when it does not end by itself
  Fault describe_death(int status, bool asked) const;

  double seconds_;
  std::uint64_t memory_bytes_;
  SharedMemory request_, reply_;
  int control_ = -1;
  int ended_ = -1;  // readable once the process has ended
  pid_t id_ = -1;
  bool killed_from_outside_ = false;
  bool on_gpu_ = false;
  OutputTail output_;
};

}  // namespace attest
