// Positional and complete: both sides are built together, so nothing is optional.
#include "optimized/plugin/worker_arguments.hpp"

#include <charconv>
#include <cstring>

namespace attest {
namespace {

constexpr int kWords = 7;  // the program's name and one per field

bool read(const char* word, std::uint64_t& number) {
  const char* end = word + std::strlen(word);
  const auto [stop, error] = std::from_chars(word, end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

std::vector<std::string> print(const WorkerArguments& arguments) {
  return {"attest-worker",
          arguments.plugin,
          std::to_string(static_cast<unsigned>(arguments.device)),
          std::to_string(arguments.memory_bytes),
          arguments.emulator,
          std::to_string(arguments.request_bytes),
          std::to_string(arguments.reply_bytes)};
}

std::optional<WorkerArguments> parse_worker_arguments(int argc, const char* const* argv) {
  if (argc != kWords) return std::nullopt;
  WorkerArguments arguments;
  arguments.plugin = argv[1];
  arguments.emulator = argv[4];
  std::uint64_t device = 0;
  if (!read(argv[2], device) || !read(argv[3], arguments.memory_bytes) ||
      !read(argv[5], arguments.request_bytes) || !read(argv[6], arguments.reply_bytes)) {
    return std::nullopt;
  }
  arguments.device = static_cast<DeviceChoice>(device);
  return arguments;
}

}  // namespace attest
