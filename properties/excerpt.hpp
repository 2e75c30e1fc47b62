// Excerpt: a few query rows of one head as a Problem of their own, with the answer that was given
// to them, so that other readings of it can be tried at a small part of the cost.
#pragma once
#include <optional>

#include "properties/given.hpp"
#include "reference/values.hpp"

namespace attest {

struct Excerpt {
  Problem problem;
  Values values;
  std::optional<Tensor> o, lse;

  Given given() const { return {o ? &*o : nullptr, lse ? &*lse : nullptr}; }
};

/// Rows of a head, [first, last). Where the diagonal follows the last row (bottom_right) an excerpt
/// must end with the last row that exists, and else begin with the first.
struct RowsOfHead {
  Index b = 0, h = 0, first = 0, last = 0;
};

/// Every row of the excerpt means what it meant in the whole.
Excerpt excerpt(const Problem& problem, const Values& values, const Given& given,
                const RowsOfHead& rows);

}  // namespace attest
