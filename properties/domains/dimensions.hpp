// Dimensions: the parts of a Problem that a subject may accept or not, each apart. One row of a
// table each: how it is copied from one Problem to another, which of its values are worth trying,
// and which words of a case line it is.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/domains/extents.hpp"
#include "reference/problem.hpp"

namespace attest {

struct Dimension {
  std::string_view name;
  void (*take)(Problem& to, const Problem& from);
  /// The dimension's part of a Problem, as text: what is equal reads equal.
  std::string (*value)(const Problem&);
  /// Edits that give it the values that kernels dispatch on, plainest first.
  std::vector<std::function<void(Problem&)>> values;
  /// Whether a property that has these needs makes no sense with another value.
  bool (*fixed)(const Needs&);
};

std::span<const Dimension> dimensions();
const Dimension& dimension_named(std::string_view name);

/// Puts right what follows from an edit: lengths that no longer fit, a scale that was the
/// default's. `before` is the Problem that was edited.
void put_right(Problem& problem, const Problem& before);

}  // namespace attest
