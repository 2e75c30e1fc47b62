// See the header.
#include "reference/bound/testing/simulated_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reference/formats.hpp"

namespace attest {
namespace {

float tensor_add(float sum, const std::vector<float>& x, const std::vector<float>& y,
                 std::size_t first, std::size_t last, Index step, Format x_format,
                 Format y_format) {
  const bool narrow = bytes_of(x_format) == 1;
  const int kept = narrow ? 13 : step == 4 ? 23 : step == 8 ? 24 : 25;
  const auto exponent = [](double number, Format format) {
    return std::max(std::ilogb(number), facts(format).exponent_min);
  };
  int largest = std::numeric_limits<int>::min();
  if (sum != 0) largest = exponent(static_cast<double>(sum), Format::f32);
  for (std::size_t n = first; n < last; ++n) {
    if (x[n] == 0 || y[n] == 0) continue;
    largest = std::max(largest, exponent(static_cast<double>(x[n]), x_format) +
                                    exponent(static_cast<double>(y[n]), y_format));
  }
  if (largest == std::numeric_limits<int>::min()) return 0;
  double total = std::trunc(std::ldexp(static_cast<double>(sum), kept - largest));
  for (std::size_t n = first; n < last; ++n) {
    const double product = static_cast<double>(x[n]) * static_cast<double>(y[n]);
    total += std::trunc(std::ldexp(product, kept - largest));  // exact: integers below 2^53
  }
  if (total == 0) return 0;
  const int precision = narrow ? 14 : 24;
  const int unit = std::max(std::ilogb(total) - precision + 1, 0);
  total = std::ldexp(std::trunc(std::ldexp(total, -unit)), unit);
  return static_cast<float>(std::ldexp(total, largest - kept));
}

}  // namespace

float tensor_sum(float sum, const std::vector<float>& x, const std::vector<float>& y,
                 Format x_format, Format y_format, Index step) {
  const auto products = static_cast<std::size_t>(step);
  for (std::size_t first = 0; first < x.size(); first += products) {
    const std::size_t last = std::min(x.size(), first + products);
    sum = tensor_add(sum, x, y, first, last, step, x_format, y_format);
  }
  return sum;
}

float sum_of(std::vector<float> terms, bool pairwise) {
  if (terms.empty()) return 0;
  if (!pairwise) {
    float total = 0;
    for (float term : terms) total += term;
    return total;
  }
  for (std::size_t width = terms.size(); width > 1; width = (width + 1) / 2) {
    for (std::size_t n = 0; n < width / 2; ++n) terms[n] += terms[width - 1 - n];
  }
  return terms[0];
}

std::vector<std::vector<std::vector<Index>>> dealt(const Recipe& recipe,
                                                   const std::vector<Index>& keys, Index first) {
  std::map<Index, std::map<Index, std::vector<Index>>> streams;
  for (Index j : keys) {
    const Index number = (j - first) / recipe.kv_block;
    streams[number % recipe.interleaved_accumulators][number].push_back(j);
  }
  std::vector<std::vector<std::vector<Index>>> result;
  for (const auto& [stream, blocks] : streams) {
    result.emplace_back();
    for (const auto& [number, block] : blocks) result.back().push_back(block);
    if (recipe.kv_blocks_descending || recipe.reverse) {
      std::reverse(result.back().begin(), result.back().end());
    }
  }
  return result;
}

}  // namespace attest
