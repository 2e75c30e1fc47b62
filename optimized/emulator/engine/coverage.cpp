// The section is libFuzzer's contract (compiler-rt, FuzzerExtraCountersLinux.cpp): everything in it
// is one array of counters.
#include "optimized/emulator/engine/coverage.hpp"

#include <algorithm>
#include <atomic>

namespace attest::emulator {
namespace {

// More blocks than the kernels of one fuzz target have; clearing it costs a microsecond per input.
constexpr std::uint32_t kCounters = 1 << 15;

[[gnu::section("__libfuzzer_extra_counters"), gnu::used]] std::uint8_t counters[kCounters];

std::atomic<std::uint32_t> reserved{0};

}  // namespace

std::span<std::uint8_t> coverage_counters() {
  return counters;
}

std::uint32_t reserve_coverage(std::uint32_t blocks) {
  return reserved.fetch_add(blocks) % kCounters;
}

void show_coverage(std::uint32_t begin, std::span<const std::uint64_t> executions) {
  for (std::size_t i = 0; i < executions.size(); ++i) {
    std::uint8_t& counter = counters[(begin + i) % kCounters];
    counter = std::uint8_t(std::min<std::uint64_t>(counter + executions[i], 255));
  }
}

}  // namespace attest::emulator
