// Loose words: which errors that a path declares are so large that the bound can tell nothing, and
// whether saying more would help. They explain why something could not be judged; no verdict rests
// on them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "properties/given.hpp"
#include "reference/bound/acceptance.hpp"

namespace attest {

/// Whether a bound of this Problem and these values can tell what it should.
using CanTell = std::function<bool(const Problem&, const Values&, const Acceptance&)>;

/// Words of the path as they are printed ("exp_error=0.5"): each of those without which `can_tell`
/// of a few rows, or all of them where no single one will do. Empty where the path is not to blame.
/// Rows: the last ones of the first head, or the first ones where the diagonal begins with those.
std::vector<std::string> loose_words(const Problem& problem, const Values& values,
                                     const PrecisionPath& path, const CanTell& can_tell);

/// Whether it could be told of the same rows if the path said how many keys share one maximum:
/// without that a rescale, with an exponential of its own, may come with every key. Not where the
/// path says so already.
bool block_would_tell(const Problem& problem, const Values& values, const PrecisionPath& path,
                      const CanTell& can_tell);

}  // namespace attest
