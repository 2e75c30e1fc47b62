// The kinds of fault that the worker and its client report, each with its meaning: the only list.
// A checker of the emulator brings kinds of its own (attest_emulator.h), which pass through as
// text.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest {

// Enumerators are spelled as they are printed.
enum class FaultKind : std::uint8_t {
  crashed,
  hung,
  exited,
  memory,
  guard,
  inputs_changed,
  unwritten,
  refused,
  cuda,
};

struct FaultMeaning {
  FaultKind kind;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array kFaultMeanings{
    FaultMeaning{FaultKind::crashed, "crashed", "the plugin was ended by a signal"},
    FaultMeaning{FaultKind::hung, "hung",
                 "no answer within the time limit of a case, and nothing done"},
    FaultMeaning{FaultKind::exited, "exited", "the plugin ended the process by itself"},
    FaultMeaning{FaultKind::memory, "memory", "an allocation was refused by the memory limit"},
    FaultMeaning{FaultKind::guard, "guard",
                 "memory that belongs to no writable element was written, or touched at all where "
                 "it is fenced off"},
    FaultMeaning{FaultKind::inputs_changed, "inputs_changed", "an element of an input was written"},
    FaultMeaning{FaultKind::unwritten, "unwritten", "an element of an output was never written"},
    FaultMeaning{FaultKind::refused, "refused",
                 "the plugin returned an error code, or asked for an impossible scratch"},
    FaultMeaning{FaultKind::cuda, "cuda", "the CUDA runtime reported an error after the call"},
};

constexpr std::string_view name_of(FaultKind kind) {
  return kFaultMeanings[static_cast<std::size_t>(kind)].name;
}

static_assert([] {
  for (std::size_t i = 0; i < kFaultMeanings.size(); ++i) {
    if (static_cast<std::size_t>(kFaultMeanings[i].kind) != i) return false;
  }
  return true;
}());

}  // namespace attest
