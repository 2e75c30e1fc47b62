// Replay: one case, or somebody's tensors, through one property or all of them. Nothing is drawn,
// nothing shrinks; the digests of what the subject wrote tell whether two machines saw the same.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/check.hpp"

namespace attest {

struct Replay {
  std::string property;
  Observation seen;
};

/// With an empty property: one after the other, in catalogue order. Each runs as if it were alone.
std::vector<Replay> replay(const Subject& subject, std::string_view property,
                           const Problem& problem, const Values& values, const Setting& setting);

/// 1: something is violated or faulted. 0: something holds, and nothing is wrong. 2: neither.
int exit_code_of(const std::vector<Replay>& replays);

}  // namespace attest
