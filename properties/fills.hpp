// Named fills: what the values of a Case look like. A value is a function of (seed, tensor,
// coordinates) alone, by a counter-based generator and exactly rounded operations, so it is the
// same on every machine and stays put while a shape shrinks.
#pragma once
#include <span>
#include <string_view>

#include "reference/problem.hpp"
#include "reference/values.hpp"

namespace attest {

struct Fill {
  std::string_view name;
  std::string_view purpose;  // which kind of bug it is there to show, one sentence
};
std::span<const Fill> fills();  // "normal" first

/// Throws Error for an unknown fill name (suggesting the nearest) or an impossible Problem.
Values make_values(const Case& test_case);

}  // namespace attest
