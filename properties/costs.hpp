// Costs: what the properties about work and memory traffic need. A subject that counts nothing (on
// a GPU, in host code) cannot be asked about them and is declined.
//
// Growth is judged by its exponent. When a size doubles, cost that goes with its n-th power grows
// 2^n times; the two nearest candidates are told apart at 2^(n + 1/2), their geometric mean. Sizes
// are multiples of kWholeTile, so that a tile which is only partly used, or another tile chosen for
// the larger size, cannot be taken for growth.
#pragma once
#include <optional>

#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// A multiple of every tile side in use: 16, 32, 64 and 128 rows or keys.
inline constexpr Index kWholeTile = 128;

/// The verdict to return for a subject that counts nothing.
std::optional<Verdict> uncounted(const Subject& subject);

/// Whether the cost of the doubled size is nearer to a growth with `exponent`, or a smaller one,
/// than to the next power.
bool grows_at_most(std::int64_t doubled, std::int64_t single, int exponent);

/// Rows [0, n) and once more the same rows.
Tensor twice(const Tensor& tensor);

}  // namespace attest
