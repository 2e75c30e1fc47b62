// Cache rows: numbers as a cache stores them, and what an append makes of new rows, by the formula
// of reference/README.md. Serves the fills, the subjects on the host and the properties that judge
// appends. Knows no pages: a slot is where a token lies in its batch entry.
#pragma once
#include <optional>
#include <vector>

#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

/// The scale of numbers of which `largest` is the largest magnitude.
/// Domain: largest >= 0. Error: correctly rounded to f32, and at least its smallest normal number.
/// Special: 1 for largest == 0.
double scale_for(Format format, double largest);

struct CacheRows {
  Tensor numbers;
  std::optional<Tensor> scales;  // with problem.scales
};

/// `numbers`, (batch, num_heads_kv, rows, width) in any format, stored in a cache that is scaled as
/// the problem asks: to the nearest number of the cache's format after division by the scale; what
/// lies beyond becomes the largest. Error: one rounding of a double's quotient.
CacheRows stored_rows(const Problem& problem, const Tensor& numbers);

/// What stands for f32 numbers: stored ones times their scales, as doubles and exact.
double number_at(const Tensor& stored, const std::optional<Tensor>& scales, Index b, Index h,
                 Index row, Index c);

/// A turned element of a key, and the sum of the magnitudes of its terms.
struct Turned {
  double value, magnitude;
};
/// Domain: finite numbers; with rope the table has a row for `position`.
/// Error: of the value, 2^-52 of the magnitude.
std::vector<Turned> turned_row(Rope rope, const std::vector<double>& key,
                               const std::optional<Tensor>& rope_cos_sin, Index position);

/// How far a key turned in f32 may be from the turned one, where the terms have this magnitude.
double turn_error(double magnitude);

/// Between what a scale per token lies that was computed in f32 from a largest magnitude between
/// `least` and `most`; kFlush above what it should be, for a magnitude that was flushed.
struct ScaleRange {
  double low, high;
};
ScaleRange scale_range(Format format, double least, double most);

/// Rows [first, last) of every batch entry and head.
Tensor rows_between(const Tensor& tensor, Index first, Index last);
/// Arbitrary patterns, NaN included, that tell every element from its neighbours. `salt` tells
/// tensors apart.
Tensor patterned(Format format, Extent4 extent, std::uint64_t salt);
/// One row as doubles.
std::vector<double> row_at(const Tensor& tensor, Index b, Index h, Index row);

/// A table for `positions` positions, of points of the unit circle that depend on position and
/// column alone: rational ones, so that only correctly rounded operations are used.
Tensor rotation_table(Index positions, Index head_dim);

/// Which new row ends up in `slot`: of those from token `first` on, `count` of them.
std::optional<Index> row_in_slot(const Problem& problem, Index slot, Index first, Index count);

/// Whether appended bits are those that were given.
bool stores_bits(const Problem& problem);

/// The append, with every operation rounded to Number: float or double.
template <class Number>
Reply appended(const Problem& problem, const CacheUpdate& update);

}  // namespace attest
