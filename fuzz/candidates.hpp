// Candidates: the smaller neighbours of a case, by kind of step. Deterministic; knows nothing of
// subjects or properties.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

/// One direction in which a case can become smaller. `smaller` lists neighbours, the boldest first;
/// all are legal, none is the case itself, and the list of a case that is already at its default in
/// this direction is empty. A scale that was the default stays the default of its head_dim.
struct ShrinkDirection {
  std::string_view name;
  std::function<std::vector<Case>(const Case&)> smaller;
};

/// Big leaps first, then features, extents, formats and conventions, fill and seed.
const std::vector<ShrinkDirection>& shrink_directions();

}  // namespace attest
