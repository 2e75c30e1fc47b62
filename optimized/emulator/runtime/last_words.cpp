// The handlers stand in front of whatever the program has, and hand on: to its own handler, or to
// the default, which ends the process with the same signal.
#include "optimized/emulator/runtime/last_words.hpp"

#include <fcntl.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/own_work.hpp"

extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));  // of this library

namespace attest::emulator::runtime {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kPathMax = 4096;

std::array<struct sigaction, kSignals.size()> before;
char file_path[kPathMax];
volatile pid_t file_process = 0;

/// Text of a fixed room, in a signal handler.
class Words {
 public:
  Words(char* text, std::size_t room) : text_(text), room_(room) { text_[0] = '\0'; }
  Words& operator<<(std::string_view more) {
    for (const char c : more) {
      if (size_ + 1 < room_) text_[size_++] = c < ' ' ? ' ' : c;  // fields are one line
    }
    text_[size_] = '\0';
    return *this;
  }
  Words& operator<<(int number) { return digits(static_cast<std::uint64_t>(number), 10); }
  Words& hexadecimal(std::uint64_t number) {
    *this << "0x";
    return digits(number, 16);
  }
  std::size_t size() const { return size_; }

 private:
  Words& digits(std::uint64_t number, std::uint64_t base) {
    std::array<char, 20> reversed{};
    std::size_t count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    while (count > 0) *this << std::string_view(&reversed[--count], 1);
    return *this;
  }
  char* text_;
  std::size_t room_, size_ = 0;
};

std::string_view name_of(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "?" : name;
}

void say(const char* line, std::size_t bytes) {
  int file = STDERR_FILENO;
  if (file_path[0] != '\0') {
    if (file_process != getpid()) return;  // a child that has not begun a file of its own
    file = open(file_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return;
  }
  if (write(file, line, bytes) < 0 || file == STDERR_FILENO) return;
  close(file);
}

void tell(const siginfo_t& info, const void* context, bool ends_the_process) {
  char text[512], line[640];
  const bool recorded = file_path[0] != '\0';
  if (own_fault_text(info, context, text, sizeof(text)) != 0) {
    Words words(line, sizeof(line) - 1);
    if (!recorded) words << "attest: ";
    std::size_t size = (words << text).size();
    if (recorded) {
      // Tabs separate fields, which Words would not write.
      constexpr std::string_view kField{"obstacle\tcrash\t"};
      size = std::min(size, sizeof(line) - 1 - kField.size());
      std::memmove(line + kField.size(), line, size);
      kField.copy(line, kField.size());
      size += kField.size();
    }
    line[size++] = '\n';
    say(line, size);
  }
  if (!recorded || !ends_the_process) return;
  constexpr std::string_view kField{"died\t"};
  kField.copy(line, kField.size());
  Words words(line + kField.size(), 16);
  words << info.si_signo;
  const std::size_t size = kField.size() + words.size();
  line[size] = '\n';
  say(line, size + 1);
}

void hand_on(const struct sigaction& to, int number, siginfo_t* info, void* context) {
  const bool by_itself = (to.sa_flags & SA_SIGINFO) == 0;
  if (by_itself && to.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (by_itself && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN)) {
    // What faulted runs again and ends the process; what was sent must be sent again.
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
    return;
  }
  if (by_itself) {
    to.sa_handler(number);
  } else {
    to.sa_sigaction(number, info, context);
  }
}

void handle(int number, siginfo_t* info, void* context) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != number) continue;
    const struct sigaction& next = before[i];
    const bool ends = (next.sa_flags & SA_SIGINFO) == 0 && next.sa_handler == SIG_DFL;
    tell(*info, context, ends);
    hand_on(next, number, info, context);
  }
}

}  // namespace

bool is_own_fault(const Deadly& signal, const OwnWork* work, bool hosts_memory) {
  if (work == nullptr) return false;
  if (signal.number == SIGABRT) return signal.of_this_process;
  if (signal.code <= 0) return false;  // sent by somebody
  const bool of_memory = signal.number == SIGSEGV || signal.number == SIGBUS;
  return !of_memory || (work->addresses_checked() && !hosts_memory);
}

std::size_t own_fault_text(const siginfo_t& info, const void* context, char* text,
                           std::size_t room) {
  const OwnWork* const work = OwnWork::now();
  if (room == 0 || work == nullptr) return 0;
  const bool sent = info.si_code <= 0;
  const Deadly signal{info.si_signo, info.si_code, sent && info.si_pid == getpid()};
  if (!is_own_fault(signal, work, !sent && Device::instance().is_the_hosts(info.si_addr))) return 0;
  Words words(text, room);
  words << "this is a fault of attest itself: SIG" << name_of(info.si_signo) << " while it "
        << work->what() << " " << work->name();
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  const auto at = static_cast<std::uint64_t>(machine->uc_mcontext.gregs[REG_RIP]);
  words << ", at ";
  words.hexadecimal(at - reinterpret_cast<std::uint64_t>(__ehdr_start)) << " of its libcudart";
#else
  (void)context;
#endif
  return words.size();
}

void watch_for_death() {
  static bool watching = false;  // the runtime's lock is held
  if (watching) return;
  watching = true;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    ours.sa_mask = before[i].sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before[i].sa_flags & (SA_NODEFER | SA_RESTART));
    sigaction(kSignals[i], &ours, nullptr);
  }
}

void last_words_go_to(const std::string& path, int process) {
  file_process = 0;
  const std::size_t bytes = path.copy(file_path, sizeof(file_path) - 1);
  file_path[bytes] = '\0';
  file_process = process;
}

}  // namespace attest::emulator::runtime
