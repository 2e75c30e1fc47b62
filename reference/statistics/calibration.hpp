// Where the model of errors may be believed, and why not elsewhere. README.md, "Where it is
// calibrated", has what was measured.
#pragma once
#include <optional>
#include <string>

#include "reference/statistics/likely_errors.hpp"

namespace attest::statistics {

inline constexpr Index kKeysLeast = 16;     // that a row must see
inline constexpr double kSupportLeast = 4;  // that must carry it
inline constexpr double kDistinctLeast = 0.75;

/// Ulps between rows, each normal of that deviation: the roundings of two rows then have the
/// correlation exp(-2 pi^2 2 kSpreadLeast^2) = 5e-5, the first Fourier term of a rounding error.
inline constexpr double kSpreadLeast = 0.5;

/// By how much the deviation of z may differ from 1 where the model is calibrated: the most that
/// was measured (README.md) is below. Every limit leaves room for it.
inline constexpr double kDeviationMost = 1.2;

/// Why nothing can be said of any row, or nothing.
/// Domain: a legal Problem with values of its extents.
std::optional<std::string> uncalibrated(const Problem& problem, const Values& values,
                                        const PrecisionPath& path);

/// Whether this row can be judged. `largest` is that of |O| in it.
bool calibrated(const LikelyRow& row, double largest, Format output);

}  // namespace attest::statistics
