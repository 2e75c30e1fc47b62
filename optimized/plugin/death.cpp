// Which kind a death is: memory when an allocation was refused before it, guard when the address
// lies in the fence of a tensor, otherwise what the system says.
#include "optimized/plugin/death.hpp"

#include <sys/wait.h>

#include <cstring>

#include "optimized/plugin/fault_kinds.hpp"

namespace attest {
namespace {

Fault fault(FaultKind kind, std::string what) {
  return {std::string(name_of(kind)), std::move(what)};
}

std::string in_hexadecimal(std::uint64_t number) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + digits;
}

std::string where(const CrashRecord& crash) {
  const std::string symbol(crash.symbol, strnlen(crash.symbol, sizeof(crash.symbol)));
  return symbol.empty() ? "" : " in " + symbol;
}

Fault out_of_bounds(const CrashRecord& crash, const std::string& signal_name) {
  const std::string tensor(crash.tensor <= TensorName::scratch ? name_of(crash.tensor)
                                                               : std::string_view("a tensor"));
  // The first byte behind the end is 1 byte behind the last, as the examination counts too.
  const std::uint64_t distance = crash.distance + (crash.behind_end != 0 ? 1 : 0);
  return fault(FaultKind::guard,
               std::string(crash.is_write != 0 ? "wrote" : "read") + " a byte " +
                   std::to_string(distance) +
                   (crash.behind_end != 0 ? " behind the last of " : " before the first of ") +
                   tensor + where(crash) + ", stopped by " + signal_name);
}

}  // namespace

std::string name_of_signal(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  const char* meaning = sigdescr_np(signal_number);
  if (name == nullptr || meaning == nullptr) return "signal " + std::to_string(signal_number);
  return std::string("SIG") + name + " (" + meaning + ")";
}

Fault death(int status, const CrashRecord& crash, std::uint64_t memory_bytes) {
  const std::string limit = "after an allocation was refused (memory limit " +
                            std::to_string(memory_bytes >> 20U) + " MiB)";  // 2^20 bytes a MiB
  if (WIFEXITED(status)) {
    const std::string what =
        "ended its process with exit(" + std::to_string(WEXITSTATUS(status)) + ")";
    if (crash.memory_refused != 0) return fault(FaultKind::memory, what + " " + limit);
    return fault(FaultKind::exited, what);
  }
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : crash.signal;
  const std::string signal_name = name_of_signal(number);
  if (crash.signal != 0 && crash.in_tensor != 0) return out_of_bounds(crash, signal_name);
  std::string what = "was stopped by " + signal_name + where(crash);
  if (crash.signal != 0 && crash.memory_refused != 0) {
    return fault(FaultKind::memory, what + " " + limit);
  }
  if (crash.signal != 0 && crash.stack_overflow != 0) {
    return fault(FaultKind::crashed, what + ": its stack overflowed");
  }
  if (crash.signal != 0 && crash.address_known != 0) {
    what += std::string(crash.is_write != 0 ? ", writing" : ", reading") + " address " +
            in_hexadecimal(crash.address);
  }
  if (number == SIGKILL) what += ": killed from outside, or by the system when memory ran out";
  return fault(FaultKind::crashed, what);
}

std::string own_fault(const CrashRecord& crash) {
  if (crash.signal == 0 || crash.memory_refused != 0) return "";
  return {crash.own_fault, strnlen(crash.own_fault, sizeof(crash.own_fault))};
}

Fault with_output(Fault fault, const std::string& last_lines) {
  if (!last_lines.empty()) fault.what += "; it last printed: " + last_lines;
  return fault;
}

}  // namespace attest
