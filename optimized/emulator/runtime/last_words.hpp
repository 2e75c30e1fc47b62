// What a process still says when a signal ends it: which signal, and whether attest itself was at
// fault. Everything here runs inside a signal handler, or prepares for it. Knows the record's
// lines, not who reads them.
#pragma once
#include <signal.h>

#include <cstddef>
#include <string>

namespace attest::emulator {
class OwnWork;
}

namespace attest::emulator::runtime {

/// A deadly signal, as a handler was given it.
struct Deadly {
  int number = 0;
  int code = 0;                  // si_code
  bool of_this_process = false;  // sent by it, as abort() does
};

/// Whether attest is at fault, and not the program: the thread was at `work`, of attest's own. An
/// access to an address that a kernel chose unchecked, or of memory that is the host's own
/// (`hosts_memory`), is the program's.
bool is_own_fault(const Deadly& signal, const OwnWork* work, bool hosts_memory);

/// The sentence for it; empty when the fault is not attest's. Allocates nothing: `text` is cut to
/// its room. Returns its length.
std::size_t own_fault_text(const siginfo_t& info, const void* context, char* text,
                           std::size_t room);

/// Before the program's first kernel; once is enough. From now on a deadly signal is told, and then
/// taken as it would have been without us. A program that puts handlers of its own in front later
/// has the first and the last word.
void watch_for_death();

/// The file that last words go to, and the process whose it is. Empty: to stderr.
void last_words_go_to(const std::string& path, int process);

}  // namespace attest::emulator::runtime
