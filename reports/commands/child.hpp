// A program started as a shell would start it, with some variables of the environment replaced, and
// waited for. Signals that reach attest reach it. Knows nothing of CUDA.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/program_record.hpp"

namespace attest {

/// Where a shell would find `word`: itself when it has a slash, else in PATH. Throws Error when
/// there is none, or when it may not be executed.
std::filesystem::path program_named(const std::string& word);

/// Runs it to its end, and to that of every process it leaves behind that has a file PID.N in
/// `records` or a libcudart; standard streams are those of this process. Throws Error when the
/// system cannot start it.
ProgramEnd run_child(const std::filesystem::path& program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment,
                     const std::filesystem::path& records);

/// The signal that was meant for attest as well as for the child, or 0.
int signal_seen();

}  // namespace attest
