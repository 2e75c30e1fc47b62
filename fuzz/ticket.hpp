// Ticket: a number of a campaign, what it stands for, and what was seen. Passed from the thread
// that runs it to the one that counts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/check.hpp"
#include "fuzz/steering.hpp"

namespace attest {

struct Ticket {
  std::uint64_t number = 0;
  std::size_t property = 0;          // index into the campaign's properties
  bool drawn = false;                // false: from options.first
  std::uint64_t campaign_index = 0;  // of drawn ones: counted over all properties
  Case test_case;
  std::uint64_t draw_index = 0;       // by which it is drawn, for the first time
  const Aim* aim = nullptr;           // null: it is not aimed
  std::optional<std::uint64_t> pair;  // of the plan of pairs; nothing: it is made by none
  std::optional<Setting> setting;
  Observation seen;
  std::vector<std::string> declines;  // why earlier draws were declined
  enum class State : std::uint8_t { ran, passed_over, lost } state = State::passed_over;
};

}  // namespace attest
