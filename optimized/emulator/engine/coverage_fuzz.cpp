// What a fuzzer is to a kernel on the emulator: bytes go in as the kernel's input, its basic blocks
// come back as coverage. Any bytes are an answer or a finding, never a crash.
//
// With ATTEST_STOP_AT_TRAP set, reaching the trap behind five comparisons ends the process: so one
// sees after how many inputs it is found, and with ATTEST_NO_COVERAGE that it is not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/testing/coverage_program.hpp"

using namespace attest::emulator;

namespace {

constexpr std::size_t kBytes = sizeof kNestedKey;

struct Target {
  std::shared_ptr<LoadedModule> module = Device::instance().load(kNestedTrap);
  std::uint8_t* bytes = static_cast<std::uint8_t*>(Device::instance().allocate(kBytes));

  Target() {
    DeviceOptions options;
    options.counters = std::getenv("ATTEST_NO_COVERAGE") == nullptr;
    Device::instance().configure(options);
    Device::instance().mark_written(bytes, kBytes);
  }
};

/// Without a comparison that libFuzzer could read the key from.
bool is_key(const std::uint8_t* data, std::size_t size) {
  unsigned differs = size < kBytes ? 1 : 0;
  for (std::size_t i = 0; i < kBytes && i < size; ++i) differs |= unsigned(data[i] ^ kNestedKey[i]);
  return differs == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Target target;
  static const bool stops = std::getenv("ATTEST_STOP_AT_TRAP") != nullptr;
  std::fill_n(target.bytes, kBytes, std::uint8_t{0});
  std::copy_n(data, std::min(size, kBytes), target.bytes);
  void* argument = target.bytes;
  void* arguments[] = {&argument};
  const bool key = is_key(data, size);
  const auto status = Device::instance().launch(*target.module, "nested", {.arguments = arguments});
  if ((status == Device::Status::faulted) != key) __builtin_trap();
  if (key && (Device::instance().findings().size() != 1 ||
              Device::instance().findings()[0].kind != "trap")) {
    __builtin_trap();
  }
  if (key && stops) std::abort();
  Device::instance().reset_findings();
  return 0;
}
