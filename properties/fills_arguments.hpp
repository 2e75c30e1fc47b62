// The optional arguments of a case: bias, mask, ALiBi slopes, sinks. The same rules for all fills.
#pragma once
#include <cstdint>

#include "reference/values.hpp"

namespace attest {

/// Fills whichever optional arguments `problem` asks for. The seed chooses between the styles.
void fill_arguments(const Problem& problem, std::uint64_t seed, Values& values);

}  // namespace attest
