// Turns: case lines in an order in which kernels of every kind are met early. Knows no property.
#pragma once
#include <span>
#include <string_view>
#include <vector>

namespace attest {

/// Every kind of line spread evenly over the whole, its first one among the first of all; lines of
/// one kind stay in their order. `sizes` are kinds of their own.
std::vector<std::string_view> by_turns(std::span<const std::string_view> lines,
                                       std::span<const std::string_view> sizes);

}  // namespace attest
