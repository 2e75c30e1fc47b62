// Along which signs the elements of a row are added up, and what a kernel may get wrong everywhere
// by the same little. Names alone; likely_errors.hpp says what to make of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest::statistics {

/// By which signs the columns of a row are added up, so that errors in common add up too.
/// inward: of O. offset: all 1. scattered: a seeded coin. sharper: of what a larger scale would do
/// to O. others: of what heavier weights of all keys but the largest would do.
enum class Direction : std::uint8_t { inward, offset, scattered, sharper, others };
inline constexpr std::array<std::string_view, 5> kDirectionNames = {"inward", "offset", "scattered",
                                                                    "sharper", "others"};
inline constexpr std::size_t kDirections = kDirectionNames.size();

/// weights: P is off by a factor where it meets V, and in the row sum it is not. output: O is that
/// many ulps further from zero. scale: off by a factor. exponential: off by a factor wherever its
/// argument is not 0.
enum class Bias : std::uint8_t { weights, output, scale, exponential };
inline constexpr std::array<std::string_view, 4> kBiasNames = {"weights", "output", "scale",
                                                               "exponential"};
inline constexpr std::size_t kBiases = kBiasNames.size();

}  // namespace attest::statistics
