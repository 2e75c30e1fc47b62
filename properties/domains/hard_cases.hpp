// Hard cases: for each property, the cases with which every campaign begins. They are the smallest
// inputs that show the mistakes attention kernels have really had.
#pragma once
#include <span>
#include <string_view>

namespace attest {

/// Case lines for the named property, kernels of every kind among the first; few enough that a
/// short gate tries them all.
std::span<const std::string_view> hard_cases(std::string_view property);

}  // namespace attest
