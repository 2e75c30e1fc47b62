// Domains: which cases are drawn for a property. RapidCheck brings the randomness.
#pragma once
#include <cstdint>
#include <string_view>

#include "reference/problem.hpp"

namespace attest {

/// The case that (seed, index) stands for in the domain of the named property: the same on every
/// machine, whatever was drawn before, from any thread. Always legal (invalidity() is empty).
Case draw_case(std::string_view property, std::uint64_t seed, std::uint64_t index);

}  // namespace attest
