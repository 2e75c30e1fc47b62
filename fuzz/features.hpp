// Features: which of the things a Problem can ask for a case has, by name, so that a run can say
// what it tried and, by what is missing, what it did not.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

struct Feature {
  std::string_view name;
  std::string_view what;  // a phrase
  bool (*present)(const Problem&);
};
std::span<const Feature> features();

/// In a fixed order. "format:bf16" and "fill:needle" stand beside plain words such as "causal".
std::vector<std::string> features_of(const Case& test_case);

/// The plain words that features_of knows, in its order.
std::vector<std::string> feature_names();

}  // namespace attest
