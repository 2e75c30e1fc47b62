// How far O and LSE may move when K and V are not the ones that were meant, but others near them:
// as a cache of few bits holds them. Derivation: README.md, "Moved caches".
#pragma once
#include <vector>

#include "reference/bound/order_free.hpp"
#include "reference/values.hpp"

namespace attest {

/// By how much each element of k and v may have moved; laid out as they are.
struct CacheError {
  std::vector<double> k, v;
};

/// |O and LSE on moved k and v - O and LSE on `values`| of the exact formula, per element. No
/// rounding of any subject is in it: add the order-free bound on what the cache holds.
///
/// Domain: any legal Problem with values of its extents, errors >= 0.
/// Error: an over-estimate; evaluated in double and enlarged by bound::kEvaluation.
/// Special: NaN and infinities among visible values or errors give infinity; rows behind a query
/// length too. A row that sees no key has 0.
Bounds moved_cache_bounds(const Problem& problem, const Values& values, const CacheError& error);

}  // namespace attest
