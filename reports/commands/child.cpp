// The child stays in our process group, so that it may read from the terminal, and a Ctrl-C reaches
// it without us; what is sent to us alone is passed on.
#include "reports/commands/child.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include "optimized/plugin/offspring.hpp"
#include "reference/text.hpp"
#include "reports/say.hpp"

extern char** environ;

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPatience{20};
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<pid_t> child = 0;
std::atomic<int> waiting = 0;  // came before there was a child
std::atomic<int> seen = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free);

void pass_on(int number, siginfo_t* info, void*) {
  seen = number;
  if (info->si_code > 0) return;  // from the terminal, which told the whole group
  const pid_t process = child;
  if (process > 0) {
    kill(process, number);
  } else {
    waiting = number;
  }
}

class Signals {
 public:
  Signals() {
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }
  ~Signals() {
    child = 0;
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct sigaction before_[std::size(kSignals)];
};

std::vector<std::string> variables(const std::map<std::string, std::string>& replaced) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!replaced.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : replaced) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

pid_t start(const fs::path& program, const std::vector<std::string>& words,
            const std::map<std::string, std::string>& environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : kSignals) sigaddset(&ours, number);
  // Ignored here, which a program that is started would inherit.
  for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&ours, number);
  posix_spawnattr_setsigdefault(&attributes, &ours);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const std::vector<std::string> all = variables(environment);
  pid_t process = 0;
  const int error = posix_spawn(&process, program.c_str(), nullptr, &attributes,
                                pointers(words).data(), pointers(all).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw Error(fmt::format("{}: cannot be started: {}", program.string(), std::strerror(error)));
  }
  return process;
}

}  // namespace

fs::path program_named(const std::string& word) {
  std::error_code failed;
  const auto executable = [&](const fs::path& path) {
    return fs::is_regular_file(path, failed) && access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos) {
    if (executable(word)) return word;
    const char* why = fs::is_directory(word, failed) ? "is a folder"
                      : fs::exists(word, failed)     ? "may not be executed; chmod +x it"
                                                     : "no such file";
    throw Error(fmt::format("{}: {}", word, why));
  }
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty() && !word.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    const fs::path here = fs::path(folder.empty() ? "." : folder) / word;
    if (executable(here)) return here;
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
  }
  const bool here = fs::exists(word, failed);
  throw Error(fmt::format("{}: no such program in PATH{}", word,
                          here ? fmt::format("; did you mean ./{}?", word) : ""));
}

namespace {

/// Dead ones may wait for somebody to bury them.
bool is_alive(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.find_first_of("ZX", name_end) != name_end + 2;
}

/// Whether it has a libcudart. Right after a fork that is all that shows: there is no record yet.
bool has_cudart(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/maps", process));
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  return maps.find("/libcudart.so") != std::string::npos;
}

/// A process that still runs, of those whose records lie in the folder and of our offspring that
/// may yet launch kernels; 0: none. Those that have ended are buried: orphans are our children
/// (PR_SET_CHILD_SUBREAPER).
pid_t still_running(const fs::path& records) {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(records, failed)) {
    const auto process = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (process > 0 && is_alive(process)) return process;
  }
  for (const pid_t process : offspring_of(getpid())) {
    if (is_alive(process) && has_cudart(process)) return process;
  }
  return 0;
}

/// What a program leaves behind, a daemon say, may still launch kernels.
void wait_for_the_rest(const fs::path& records) {
  pid_t told = 0;
  for (pid_t process; seen == 0 && (process = still_running(records)) != 0;) {
    if (process != told) {
      say(stderr, "attest: the program has ended, but process {} of it still runs: waiting\n",
          process);
    }
    told = process;
    std::this_thread::sleep_for(kPatience);
  }
}

}  // namespace

ProgramEnd run_child(const fs::path& program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment,
                     const fs::path& records) {
  const Signals signals;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t process = start(program, words, environment);
  child = process;
  if (const int early = waiting.exchange(0); early != 0) kill(process, early);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  wait_for_the_rest(records);
  ProgramEnd end;
  end.started = true;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  constexpr int kBySignal = 128;  // as shells count
  end.exit_code = end.signal != 0 ? kBySignal + end.signal : WEXITSTATUS(status);
  return end;
}

int signal_seen() {
  return seen;
}

}  // namespace attest
