// Why a Problem is impossible, and which key of its line is to blame. What the line looks like is
// not known here.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "reference/problem.hpp"

namespace attest {

struct Illegality {
  std::string_view key;  // the key of case_text.cpp that carries the offending field
  std::string reason;    // one sentence
};
std::optional<Illegality> illegality(const Problem& problem);

/// No tensor of a legal Problem has more elements than this: 2^31, so that the largest one needs
/// every bit of an unsigned 32-bit index, where kernels break, and yet fits into memory.
inline constexpr Index kElementsMax = Index{1} << 31;

}  // namespace attest
