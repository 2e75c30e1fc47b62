// Along which signs the elements of a row are added up, and what a kernel may get wrong everywhere
// by the same little. Names alone; likely_errors.hpp says what to make of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest::statistics {

/// By which signs the columns of a row are added up, so that errors in common add up too.
enum class Direction : std::uint8_t { inward, offset, scattered, sharper, others };
inline constexpr std::array<std::string_view, 5> kDirectionNames = {"inward", "offset", "scattered",
                                                                    "sharper", "others"};
inline constexpr std::array<std::string_view, 5> kDirectionMeanings = {
    "errors by the sign of O: too large or too small", "errors as they are: too high or too low",
    "errors by a seeded coin: anything that columns share",
    "errors by what a larger scale would do to O",
    "errors by what heavier weights of all keys but the largest would do to O"};
inline constexpr std::size_t kDirections = kDirectionNames.size();

/// What is tested besides.
inline constexpr std::string_view kRowTest = "row", kElementTest = "element",
                                  kChiSquareTest = "chi_square";

/// What may be off everywhere by the same little.
enum class Bias : std::uint8_t { weights, output, scale, exponential };
inline constexpr std::array<std::string_view, 4> kBiasNames = {"weights", "output", "scale",
                                                               "exponential"};
inline constexpr std::array<std::string_view, 4> kBiasMeanings = {
    "P is off by this factor where it meets V, and in the row sum it is not",
    "O is this many ulps further from zero", "the scale is off by this factor",
    "the exponential is off by this factor wherever its argument is not 0"};
inline constexpr std::size_t kBiases = kBiasNames.size();

}  // namespace attest::statistics
