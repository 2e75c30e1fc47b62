// Which basic blocks of interpreted code have run, as libFuzzer wants it: eight-bit counters that
// it reads after each input and clears before the next. So a fuzzer that feeds a kernel climbs
// through the kernel's own branches. Knows nothing of what the blocks are.
#pragma once
#include <cstdint>
#include <span>

namespace attest::emulator {

/// All counters; those of one program lie side by side. A fuzzer that is linked in finds them by
/// their section, __libfuzzer_extra_counters.
std::span<std::uint8_t> coverage_counters();

/// Where the counters of a program with so many blocks begin. When there is no room left, programs
/// share counters.
std::uint32_t reserve_coverage(std::uint32_t blocks);

/// Adds executions of the blocks of one launch; a counter stays at 255.
void show_coverage(std::uint32_t begin, std::span<const std::uint64_t> executions);

}  // namespace attest::emulator
