// How a worker's end reads in a sentence. Pure: from a wait status and a crash record to a Fault.
#pragma once
#include <cstdint>
#include <string>

#include "optimized/plugin/protocol.hpp"
#include "reference/subject.hpp"

namespace attest {

/// `status` is what waitpid gave; `crash` may hold anything a dying process left there. The text
/// continues the sentence "it ...".
Fault death(int status, const CrashRecord& crash, std::uint64_t memory_bytes);

/// Why the death is attest's own fault and not the plugin's; empty: it is the plugin's.
std::string own_fault(const CrashRecord& crash);

/// Adds what the plugin printed last, when it printed anything.
Fault with_output(Fault fault, const std::string& last_lines);

/// e.g. "SIGSEGV (invalid memory access)".
std::string name_of_signal(int signal_number);

}  // namespace attest
