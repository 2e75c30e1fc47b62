// B1: how far a correct kernel's O and LSE may be from the truth, whatever the order in which it
// adds. Derivation, with the source of every term: reference/bound/README.md.
#pragma once
#include <vector>

#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

/// Absolute, per element, already including the rounding to the output format (o) and to f32 (lse).
/// Rows that see no key have bound 0: what they must hold is exact. Infinity: nothing is promised
/// (an intermediate may overflow), such an element is not judged.
struct Bounds {
  std::vector<double> o;    // like Truth::o
  std::vector<double> lse;  // like Truth::lse
};
Bounds order_free_bounds(const Problem& problem, const Values& values, const PrecisionPath& path);

}  // namespace attest
