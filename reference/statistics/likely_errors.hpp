// What error a correct kernel is likely to make in O: mean and variance per element, and of a few
// weighted sums of a row's elements, when every rounding falls anywhere in its interval.
// Derivation, and where it holds: README.md. It knows no output, and judges none.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "reference/statistics/directions.hpp"
#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

/// Of the error of a row's elements, added up by the signs of a direction.
struct Projected {
  double mean = 0, variance = 0;
  std::array<double, statistics::kBiases> response{};  // by how much a bias of 1 moves it
};

struct LikelyRow {
  Index keys = 0;  // that are seen; 0: nothing else of the row is set, nor of its elements
  // README.md, "Where it is calibrated": how many keys carry the row, those counted as one whose
  // weights are rounded to the same side of the same number; which share of as many would be left
  // if equal weights counted as one; and by how many ulps weights and elements differ from another
  // query's.
  double support = 0, distinct = 0, spread = 0;
  std::array<Projected, statistics::kDirections> projected;
};

struct LikelyErrors {
  std::vector<double> o;               // the truth to double, like Truth::o
  std::vector<double> mean, variance;  // of the error of each
  std::vector<std::uint8_t> negative;  // bit n: the sign of the element in direction n is -
  std::vector<LikelyRow> rows;         // like Truth::lse
};

/// Domain: a legal Problem with values of its extents. `tensor_step` is that of the architecture it
/// ran on, where it is not the declared one.
/// Error: that of the model. o is within T 2^-52 of the largest |v|, for T keys.
/// Special: rows whose logits or values are not finite have no keys.
LikelyErrors likely_errors(const Problem& problem, const Values& values, const PrecisionPath& path,
                           Index tensor_step = 0, std::uint64_t seed = 0);

}  // namespace attest
