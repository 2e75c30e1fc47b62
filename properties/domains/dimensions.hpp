// Dimensions: the parts of a Problem that a subject may accept or not, each apart. One row of a
// table each: how it is copied from one Problem to another, which of its values are worth trying,
// and what they are called.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/domains/extents.hpp"
#include "reference/subject.hpp"

namespace attest {

struct Dimension {
  std::string_view name;
  void (*take)(Problem& to, const Problem& from);
  /// Edits that give it the values that kernels dispatch on, plainest first.
  std::vector<std::function<void(Problem&)>> values;
  /// Whether a property that has these needs makes no sense with another value.
  bool (*fixed)(const Needs&);
  /// Whether the operation reads it at all.
  bool (*asked_by)(Operation) = nullptr;
  /// What a Problem has of it, as reports say it: "head_dim=64", "no mask". Never empty.
  std::function<std::string(const Problem&)> word = {};
  /// The same for all values that code treats alike: any window is a window. Kinds are drawn in
  /// pairs; where this is null, words are drawn one by one.
  std::function<std::string(const Problem&)> kind = {};
};

std::span<const Dimension> dimensions();
const Dimension& dimension_named(std::string_view name);

/// Whether the two Problems agree in it.
bool same(const Dimension& dimension, const Problem& a, const Problem& b);

/// Puts right what follows from an edit of `before`, the cache's format included.
void follow_edit(Problem& problem, const Problem& before);

}  // namespace attest
