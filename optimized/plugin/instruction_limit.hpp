// How much a kernel may execute before it counts as endless: not by the clock, which says more of
// the machine and its other work than of the kernel.
#pragma once
#include <cstdint>

#include "optimized/plugin/protocol.hpp"

namespace attest {

/// Warp instructions that one launch of a correct kernel never needs for this call, however it goes
/// about it.
std::uint64_t instruction_limit(const RequestHeader& request);

}  // namespace attest
