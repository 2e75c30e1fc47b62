// The command line of attest-worker, written by the client and read by the program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optimized/plugin/worker.hpp"

namespace attest {

struct WorkerArguments {
  std::string plugin;
  DeviceChoice device = DeviceChoice::automatic;
  std::uint64_t memory_bytes = 0;
  std::string emulator;  // its options, as print(DeviceOptions) writes them
  std::uint64_t request_bytes = 0, reply_bytes = 0;
};

std::vector<std::string> print(const WorkerArguments& arguments);
/// Nothing when these are not the words that print() makes.
std::optional<WorkerArguments> parse_worker_arguments(int argc, const char* const* argv);

}  // namespace attest
