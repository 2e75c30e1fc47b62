// posix_spawn, so that no memory of a large process is copied and threads do not matter.
// Descriptors are close-on-exec throughout: a worker must not inherit the control socket of
// another.
#include "optimized/plugin/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "optimized/plugin/death.hpp"
#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/offspring.hpp"
#include "optimized/plugin/worker_arguments.hpp"
#include "reference/text.hpp"

extern char** environ;

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastDescriptor = 16;  // above those the worker inherits, so that dup2 clobbers none
constexpr std::chrono::milliseconds kLastBreath{2000};  // from a closed socket to being dead
constexpr std::chrono::microseconds kBurialStep{200};
constexpr std::int64_t kLongestPollMs = 1'000'000;

[[noreturn]] void refuse(const std::string& what, int error) {
  throw Error("the worker process cannot be started: " + what + ": " + std::strerror(error));
}

/// Ticks of a processor that all threads of the process had so far.
std::uint64_t ticks_of(pid_t process) {
  constexpr int kFieldsBefore = 11;  // behind the name in parentheses: state ... cmajflt
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(status, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int field = 0; field < kFieldsBefore; ++field) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

std::string in_milliseconds(double seconds) {
  return std::to_string(std::lround(seconds * 1000)) + " ms";
}

int lifted(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kLeastDescriptor);
  if (high < 0) refuse("fcntl", errno);
  close(descriptor);
  return high;
}

std::filesystem::path worker_program() {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto program = self.parent_path() / "attest-worker";
  if (!std::filesystem::exists(program, ignored)) {
    throw Error("there is no " + program.string() +
                ": attest-worker must lie beside the program; build it again");
  }
  return program;
}

/// The child's side of everything, closed when spawning is over.
struct Inherited {
  int control, output;
  ~Inherited() {
    close(control);
    close(output);
  }
};

int spawn(const std::filesystem::path& program, const std::vector<std::string>& words,
          const Inherited& inherited, int request, int reply, pid_t& id) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, inherited.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, inherited.output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, inherited.control, kControlDescriptor);
  posix_spawn_file_actions_adddup2(&actions, request, kRequestDescriptor);
  posix_spawn_file_actions_adddup2(&actions, reply, kReplyDescriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A process group of its own: Ctrl-C is for attest, which finishes the case and then ends us.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(&id, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

emulator::DeviceOptions emulator_options(const WorkerOptions& options) {
  emulator::DeviceOptions emulator = options.emulator;
  emulator.counters |= options.counters;
  return emulator;
}

WorkerProcess::WorkerProcess(const WorkerOptions& options)
    : seconds_(options.case_seconds),
      memory_bytes_(options.memory_bytes),
      request_(SharedMemory::create("attest-request", sizeof(RequestHeader))),
      reply_(SharedMemory::create("attest-reply", sizeof(ReplyHeader))) {
  start(options);
  const Answer answer = wait_for_answer();
  const auto& greeting = reply_.at<const ReplyHeader>(0);
  on_gpu_ = greeting.on_gpu != 0;
  const std::string where = "plugin " + options.plugin.string() + ": ";
  if (answer == Answer::given && greeting.faulted == 0) return;
  const std::string refusal(greeting.text, strnlen(greeting.text, sizeof(greeting.text)));
  if (answer != Answer::given && answer != Answer::none) end();
  const int status = bury();
  close(control_);
  close(ended_);
  const Fault fault = describe_death(status, true);
  if (answer == Answer::given) throw Error(refusal);
  if (answer == Answer::too_late || answer == Answer::at_work) {
    throw Error(where +
                "did not finish loading within the time limit of a case; look for what "
                "waits in its static constructors or in attest_subject()");
  }
  throw Error(where + "while loading, it " + fault.what);
}

void WorkerProcess::start(const WorkerOptions& options) {
  const auto program = worker_program();
  std::array<int, 2> sockets{}, pipes{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    refuse("socketpair", errno);
  }
  control_ = sockets[0];
  if (pipe2(pipes.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    close(sockets[0]);
    close(sockets[1]);
    refuse("pipe", error);
  }
  output_.watch(pipes[0]);
  const Inherited inherited{lifted(sockets[1]), lifted(pipes[1])};
  const int request = fcntl(request_.descriptor(), F_DUPFD_CLOEXEC, kLeastDescriptor);
  const int reply = fcntl(reply_.descriptor(), F_DUPFD_CLOEXEC, kLeastDescriptor);
  const std::vector<std::string> words =
      print(WorkerArguments{.plugin = std::filesystem::absolute(options.plugin).string(),
                            .device = options.device,
                            .memory_bytes = options.memory_bytes,
                            .emulator = print(emulator_options(options)),
                            .request_bytes = request_.size(),
                            .reply_bytes = reply_.size()});
  const int error = spawn(program, words, inherited, request, reply, id_);
  close(request);
  close(reply);
  if (error != 0) {
    close(control_);
    refuse(program.string(), error);
  }
  ended_ = static_cast<int>(syscall(SYS_pidfd_open, id_, 0));
}

WorkerProcess::~WorkerProcess() {
  if (id_ > 0) {
    end();
    bury();
  }
  close(control_);
  close(ended_);
}

void WorkerProcess::end() const {
  kill_children_of(id_);
  kill(id_, SIGKILL);
}

WorkerProcess::Answer WorkerProcess::wait_for_answer() {
  const auto half =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_ / 2));
  auto deadline = Clock::now() + half;
  std::optional<std::uint64_t> ticks_at_half;
  bool output_open = true;
  while (true) {
    // An answer that is already there counts, however late we look: we may have been stopped.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    // That the process ended is asked of itself: a child of it may hold on to its socket.
    std::array<pollfd, 3> waits{{{control_, POLLIN, 0},
                                 {ended_, POLLIN, 0},
                                 {output_open ? output_.descriptor() : -1, POLLIN, 0}}};
    const int ready =
        poll(waits.data(), waits.size(),
             static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLongestPollMs)));
    if (ready < 0 && errno != EINTR) return Answer::none;
    const bool answered = ready > 0 && waits[0].revents != 0;
    const bool ended = ready > 0 && waits[1].revents != 0;
    if (answered) {
      Message message{};
      const ssize_t bytes = recv(control_, &message, sizeof(message), 0);
      output_.drain();
      if (bytes == sizeof(message)) return Answer::given;
      return bytes > 0 ? Answer::garbled : Answer::none;
    }
    if (ended) return Answer::none;
    if (left.count() <= 0) {
      const std::uint64_t ticks = ticks_of(id_);
      if (ticks_at_half) return ticks == *ticks_at_half ? Answer::too_late : Answer::at_work;
      ticks_at_half = ticks;
      deadline += half;
    }
    if (ready > 0 && waits[2].revents != 0) output_open = output_.drain();
  }
}

std::optional<Fault> WorkerProcess::ask(MessageKind kind) {
  std::memset(reply_.data(), 0, sizeof(ReplyHeader));
  output_.clear();
  const Message message{kind, request_.size(), reply_.size()};
  send(control_, &message, sizeof(message), MSG_NOSIGNAL);  // a dead worker shows in the answer
  const Answer answer = wait_for_answer();
  if (answer == Answer::given) return std::nullopt;
  if (answer != Answer::none) end();
  const int status = bury();
  const bool crashed = reply_.at<const ReplyHeader>(0).crash.signal != 0;
  // A kernel on a GPU cannot be watched, and is faster than this limit by far.
  if (answer == Answer::at_work && !crashed && !on_gpu_) {
    throw Error("the subject was still at work after " + in_milliseconds(seconds_) +
                ", and nobody can tell whether it would have ended; --case-seconds allows more");
  }
  if ((answer == Answer::too_late || answer == Answer::at_work) && !crashed) {
    return with_output(
        {std::string(name_of(FaultKind::hung)), "no answer within " + in_milliseconds(seconds_)},
        output_.last_lines());
  }
  if (answer == Answer::garbled) {
    return with_output({std::string(name_of(FaultKind::crashed)),
                        "wrote to a descriptor that is not its own (attest's control socket)"},
                       output_.last_lines());
  }
  killed_from_outside_ =
      answer == Answer::none && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return describe_death(status, true);
}

std::optional<Fault> WorkerProcess::died_idle() {
  if (id_ < 0) return Fault{};  // buried, and told
  char byte = 0;
  const ssize_t bytes = recv(control_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool silent = bytes < 0 && (errno == EAGAIN || errno == EINTR);
  pollfd ended{ended_, POLLIN, 0};
  if (silent && poll(&ended, 1, 0) <= 0) return std::nullopt;
  const int status = bury();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return Fault{};
  return describe_death(status, false);
}

int WorkerProcess::bury() {
  int status = 0;
  const auto deadline = Clock::now() + kLastBreath;
  while (id_ > 0) {
    // Until it has been waited for, its number is also that of its group, and of nobody else.
    siginfo_t info{};
    const int looked = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (looked < 0 && errno != EINTR) break;
    if (looked == 0 && info.si_pid == id_) {
      kill(-id_, SIGKILL);
      waitpid(id_, &status, 0);
      break;
    }
    if (Clock::now() > deadline) end();
    std::this_thread::sleep_for(kBurialStep);
  }
  id_ = -1;
  output_.drain();
  return status;
}

Fault WorkerProcess::describe_death(int status, bool asked) const {
  const std::string own = own_fault(reply_.at<const ReplyHeader>(0).crash);
  if (!own.empty()) {
    throw Error(own + "; please report it, with the plugin and the case that was running (" +
                name_of_signal(WIFSIGNALED(status) ? WTERMSIG(status) : 0) + ")");
  }
  Fault fault = death(status, reply_.at<const ReplyHeader>(0).crash, memory_bytes_);
  if (!asked) fault.what = "after its last call had returned, it " + fault.what;
  return with_output(std::move(fault), output_.last_lines());
}

}  // namespace attest
