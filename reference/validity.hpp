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

/// Puts right what follows when `before` was edited into `problem`: lengths fit the batch and its
/// extents, and a scale that was the default of its head_dim is so still.
void put_right(Problem& problem, const Problem& before);

/// All tensors of a legal Problem together have at most this many elements, so that a line that
/// asks for more is refused at once and not by an allocation that fails.
inline constexpr Index kElementsMax = Index{1} << 28;

/// Splits of the keys and rows of one chunk, at most.
inline constexpr Index kPartsMax = 65536;

}  // namespace attest
