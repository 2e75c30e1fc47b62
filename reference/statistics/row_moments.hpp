// What the errors of a row's weights and sums make of O. For likely_errors.cpp alone.
#pragma once
#include "reference/statistics/likely_errors.hpp"
#include "reference/statistics/row_model.hpp"

namespace attest::statistics {

/// Writes row `row` of `all` and its elements, which must still be zero.
void add_moments(const Head& head, const Gathered& gathered, std::size_t row, std::uint64_t seed,
                 LikelyErrors& all);

}  // namespace attest::statistics
