// Turns a deadly signal in the worker into a CrashRecord, then lets it kill the process. Everything
// here may run inside a signal handler: no allocation, no lock, no exception.
#pragma once
#include <cstddef>
#include <cstdint>

#include "optimized/plugin/protocol.hpp"

namespace attest {

/// Installs the handlers, on a stack of their own so that a stack overflow is reported too.
/// `record` is where the next crash will be described; it may be moved by calling again.
void watch_for_crashes(CrashRecord* record);

/// From now on a crash may also look up the name of the function: not while a library is loading,
/// since the lookup takes the loader's lock.
void allow_symbol_lookup();

/// Asked at each deadly signal: whether the emulator is at fault itself, and how it says so. See
/// attest_emulator_own_fault.
using OwnFault = std::int32_t (*)(const void* info, const void* context, char* text,
                                  std::uint32_t room);
void ask_whose_fault(OwnFault own_fault);

/// A tensor between two inaccessible zones of `fence_bytes` each.
struct FencedRange {
  const std::byte* mapping_begin = nullptr;  // end of the lower fence
  const std::byte* mapping_end = nullptr;    // begin of the upper fence
  const std::byte* begin = nullptr;          // of the tensor
  const std::byte* end = nullptr;
  TensorName tensor{};
};
void clear_fenced_ranges();
void add_fenced_range(const FencedRange& range, std::size_t fence_bytes);

}  // namespace attest
