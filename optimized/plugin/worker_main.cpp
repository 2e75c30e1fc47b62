// attest-worker: loads one plugin and calls it as it is told over shared memory. Started by attest;
// not for people. It may be killed at any moment and keeps nothing on disk.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "optimized/plugin/call.hpp"
#include "optimized/plugin/crash_handler.hpp"
#include "optimized/plugin/inspection.hpp"
#include "optimized/plugin/loaded_plugin.hpp"
#include "optimized/plugin/offspring.hpp"
#include "optimized/plugin/shared_memory.hpp"
#include "optimized/plugin/worker_arguments.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// The end, with whatever the plugin started: its children, and all that share its process group.
[[noreturn]] void end_with_children() {
  kill_children_of(getpid());
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(0);
}

/// Dies with attest, however attest dies. PR_SET_PDEATHSIG would also fire when the one thread of
/// attest that started this process ends, and a campaign's threads come and go.
void die_with_parent() {
  std::thread([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pollfd control{kControlDescriptor, POLLRDHUP, 0};
    while (poll(&control, 1, -1) < 0 && errno == EINTR) {
    }
    end_with_children();
  }).detach();
}

/// Bytes of private writable memory in use, as RLIMIT_DATA counts them.
std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) status >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// RLIMIT_DATA counts private writable memory only: not the fences and reservations that the
/// emulator, a CUDA driver and HostMemory make, nor the memory shared with attest.
void limit_memory(std::uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__)  // whose shadow memory alone is beyond any limit
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_DATA, &limit);
#else
  (void)bytes;
#endif
}

/// False when attest is gone.
bool receive(Message& message) {
  ssize_t bytes = 0;
  do {
    bytes = recv(kControlDescriptor, &message, sizeof(message), 0);
  } while (bytes < 0 && errno == EINTR);
  return bytes == sizeof(message);
}

class Worker {
 public:
  explicit Worker(const WorkerArguments& arguments)
      : request_(SharedMemory::open(kRequestDescriptor, arguments.request_bytes,
                                    SharedMemory::Access::read)),
        reply_(SharedMemory::open(kReplyDescriptor, arguments.reply_bytes,
                                  SharedMemory::Access::read_write)) {
    watch_for_crashes(&reply_.at<ReplyHeader>(0).crash);
    greet(arguments);
  }

  void serve() {
    Message message{};
    while (receive(message)) {
      request_.follow(message.request_bytes);
      reply_.follow(message.reply_bytes);
      auto& reply = reply_.at<ReplyHeader>(0);
      watch_for_crashes(&reply.crash);
      if (message.kind == MessageKind::declines) {
        calls_->ask_declines(request_.at<const RequestHeader>(0), reply);
      } else if (message.kind == MessageKind::profile) {
        put_text(reply.text, runtime_ ? runtime_->kernel_profile() : std::string());
      } else {
        const auto& request = request_.at<const RequestHeader>(0);
        if (request.emulator[0] != '\0') runtime_->configure(request.emulator);
        calls_->run(request_.data(), reply_.data());
      }
      std::fflush(stdout);
      send(kControlDescriptor, &message, sizeof(message), MSG_NOSIGNAL);
    }
  }

 private:
  void greet(const WorkerArguments& arguments) {
    auto& reply = reply_.at<ReplyHeader>(0);
    try {
      const emulator::Linkage linkage = inspect_plugin(arguments.plugin);
      if (linkage.cudart_major != 0) {
        runtime_.emplace(CudaRuntime::Choice{.device = arguments.device,
                                             .major = linkage.cudart_major,
                                             .emulator = arguments.emulator});
      }
      if (runtime_) ask_whose_fault(runtime_->own_fault());
      if (runtime_ && runtime_->emulated()) demand_emulable(linkage, arguments.plugin);
      // A driver takes memory of its own before the plugin asks for any.
      const bool driver = runtime_ && !runtime_->emulated();
      if (driver) runtime_->synchronize();
      limit_memory(arguments.memory_bytes + (driver ? data_bytes() : 0));
      const CudaRuntime* runtime = runtime_ ? &*runtime_ : nullptr;
      const AttestSubject& subject = load_plugin(arguments.plugin, runtime);
      describe(subject, runtime, reply);
      calls_.emplace(subject, runtime);
    } catch (const std::exception& error) {
      reply.faulted = 1;
      put_text(reply.text, error.what());
    }
    allow_symbol_lookup();
    const Message message{MessageKind::greeting, request_.size(), reply_.size()};
    send(kControlDescriptor, &message, sizeof(message), MSG_NOSIGNAL);
    if (reply.faulted != 0) _exit(0);
  }

  SharedMemory request_, reply_;
  std::optional<CudaRuntime> runtime_;
  std::optional<Calls> calls_;
};

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  const auto arguments = attest::parse_worker_arguments(argc, argv);
  if (!arguments || fcntl(attest::kControlDescriptor, F_GETFD) < 0) {
    std::fputs("attest-worker is started by attest; run `attest gate --subject PLUGIN`\n", stderr);
    return 2;
  }
  // What a program that runs by itself is told; a worker is told by attest.
  for (const char* name : {"ATTEST_EMULATOR", "ATTEST_RECORD"}) unsetenv(name);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGINT, SIG_IGN);  // whoever sends it means attest
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that its offspring can be found by their parents
  attest::die_with_parent();
  attest::Worker worker(*arguments);
  worker.serve();
  attest::end_with_children();  // without the plugin's destructors, which may hang
}
