// The handler records and returns: the default action is back in force by then, so the faulting
// instruction runs again, or the signal comes again, and ends the process, for the parent to see.
#include "optimized/plugin/crash_handler.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "optimized/emulator/own_work.hpp"

namespace attest {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
constexpr std::size_t kStackBytes = 64 * 1024;
// A fault this near the stack pointer, while the pointer is outside the stack, is an overflow: one
// frame of ordinary code, or a large local array, lies between the two.
constexpr std::size_t kFrameBytes = 1024 * 1024;
constexpr std::uint64_t kWriteBit = 2;  // x86 page-fault error code, bit 1: the access was a write

CrashRecord* volatile crash_record = nullptr;
volatile bool symbols_allowed = false;
OwnFault volatile own_fault = nullptr;
std::array<FencedRange, kTensorsMax + 1> fenced_ranges;  // and scratch
volatile std::size_t fenced_count = 0;
std::size_t fence_size = 0;
std::array<std::byte, kStackBytes> handler_stack;

bool lies_in_tensor(const CrashRecord& record) {
  if (record.in_tensor != 0) return true;
  const auto* address = reinterpret_cast<const std::byte*>(record.address);
  for (std::size_t i = 0; record.address_known != 0 && i < fenced_count; ++i) {
    const FencedRange& range = fenced_ranges[i];
    if (address >= range.mapping_begin && address < range.mapping_end) return true;
  }
  return false;
}

void find_tensor(CrashRecord& record, const std::byte* address) {
  for (std::size_t i = 0; i < fenced_count; ++i) {
    const FencedRange& range = fenced_ranges[i];
    const bool behind = address >= range.mapping_end && address < range.mapping_end + fence_size;
    const bool before =
        address < range.mapping_begin && address >= range.mapping_begin - fence_size;
    if (!behind && !before) continue;
    record.in_tensor = 1;
    record.behind_end = behind ? 1 : 0;
    record.tensor = range.tensor;
    record.distance =
        static_cast<std::uint64_t>(behind ? address - range.end : range.begin - address);
    return;
  }
}

/// Of the emulator's, or of this program's own code while no plugin was called. Whatever lies in a
/// tensor a plugin may have taken away.
void find_own_fault(CrashRecord& record, const siginfo_t* info, const void* context) {
  char* const text = record.own_fault;
  if (own_fault != nullptr && own_fault(info, context, text, sizeof(record.own_fault)) != 0) return;
  const emulator::OwnWork* const work = emulator::OwnWork::now();
  const bool sent = info->si_code <= 0 && info->si_pid != getpid();
  if (work == nullptr || sent || lies_in_tensor(record)) return;
  const char* const words[] = {"this is a fault of attest itself: its worker died while it ",
                               work->what(), " ", work->name()};
  for (const char* word : words) {
    const std::size_t used = strnlen(text, sizeof(record.own_fault));
    std::strncpy(text + used, word, sizeof(record.own_fault) - 1 - used);
  }
}

void find_symbol(CrashRecord& record, void* program_counter) {
  Dl_info info{};
  if (program_counter == nullptr || dladdr(program_counter, &info) == 0) return;
  const char* name = info.dli_sname != nullptr ? info.dli_sname : info.dli_fname;
  if (name != nullptr) std::strncpy(record.symbol, name, sizeof(record.symbol) - 1);
}

void handle(int signal_number, siginfo_t* info, void* context) {
  const bool memory_refused = errno == ENOMEM;
  signal(signal_number, SIG_DFL);
  if (info->si_code <= 0)
    raise(signal_number);  // sent: nothing runs again that would bring it back
  CrashRecord* record = crash_record;
  if (record == nullptr || record->signal != 0) return;
  record->signal = signal_number;
  record->memory_refused = memory_refused ? 1 : 0;
  void* program_counter = nullptr;
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  program_counter = reinterpret_cast<void*>(machine->uc_mcontext.gregs[REG_RIP]);
  record->is_write =
      (static_cast<std::uint64_t>(machine->uc_mcontext.gregs[REG_ERR]) & kWriteBit) != 0 ? 1 : 0;
  const auto* stack = reinterpret_cast<const std::byte*>(machine->uc_mcontext.gregs[REG_RSP]);
#else
  (void)context;
  const std::byte* stack = nullptr;
#endif
  if (signal_number == SIGSEGV || signal_number == SIGBUS) {
    const auto* address = static_cast<const std::byte*>(info->si_addr);
    record->address_known = 1;
    record->address = reinterpret_cast<std::uint64_t>(address);
    find_tensor(*record, address);
    const bool near_stack =
        stack != nullptr && address < stack + kFrameBytes && address + kFrameBytes > stack;
    record->stack_overflow = near_stack && record->in_tensor == 0 ? 1 : 0;
  }
  find_own_fault(*record, info, context);
  if (symbols_allowed) find_symbol(*record, program_counter);
}

}  // namespace

void watch_for_crashes(CrashRecord* record) {
  const bool installed = crash_record != nullptr;
  crash_record = record;
  if (installed) return;
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) sigaction(number, &action, nullptr);
  // A plugin may also answer a refused allocation with exit().
  std::atexit([] { crash_record->memory_refused = errno == ENOMEM ? 1 : 0; });
}

void allow_symbol_lookup() {
  symbols_allowed = true;
}

void ask_whose_fault(OwnFault function) {
  own_fault = function;
}

void clear_fenced_ranges() {
  fenced_count = 0;
}

void add_fenced_range(const FencedRange& range, std::size_t fence_bytes) {
  if (fenced_count == fenced_ranges.size()) return;
  fenced_ranges[fenced_count] = range;
  fence_size = fence_bytes;
  fenced_count = fenced_count + 1;
}

}  // namespace attest
