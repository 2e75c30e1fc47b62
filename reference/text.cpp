// How enumerators are spelled, which word is near which, and the default scale. The grammar of
// lines is case_text.cpp's business.
#include "reference/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reference/names.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 6> kFormats{"f32", "f16", "bf16", "e4m3", "e5m2", "i8"};
constexpr std::array<std::string_view, 2> kAlignments{"bottom_right", "top_left"};
constexpr std::array<std::string_view, 2> kEmptyRows{"zero", "nan"};
constexpr std::array<std::string_view, 3> kLogBases{"e", "two", "none"};
constexpr std::array<std::string_view, 2> kEmptyLses{"minus_inf", "plus_inf"};
constexpr std::array<std::string_view, kStridedWords> kStrided{
    "q", "k", "v", "o", "lse", "bias", "mask", "scales", "table", "fresh", "far"};
constexpr std::array<std::string_view, 2> kLayouts{"bhtd", "bthd"};
constexpr std::array<std::string_view, 4> kScales{"none", "tensor", "head", "token"};
constexpr std::array<std::string_view, 3> kRopes{"none", "halves", "pairs"};
constexpr std::array<std::string_view, 5> kOperations{"prefill", "decode", "append", "projection",
                                                      "copy_pages"};

template <class Enumeration, std::size_t kCount>
std::string_view spelled(const std::array<std::string_view, kCount>& names, Enumeration value) {
  return names.at(static_cast<std::size_t>(value));
}

// A word longer than this is noise, not a typing error; it also bounds the work on hostile input.
constexpr std::size_t kWordMax = 64;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view name_of(Format format) {
  return spelled(kFormats, format);
}
std::string_view name_of(Alignment alignment) {
  return spelled(kAlignments, alignment);
}
std::string_view name_of(EmptyRow empty_row) {
  return spelled(kEmptyRows, empty_row);
}
std::string_view name_of(LogBase lse_base) {
  return spelled(kLogBases, lse_base);
}
std::string_view name_of(EmptyLse empty_lse) {
  return spelled(kEmptyLses, empty_lse);
}
std::string_view name_of(Strided tensor) {
  return spelled(kStrided, tensor);
}
std::string_view name_of(Layout layout) {
  return spelled(kLayouts, layout);
}
std::string_view name_of(Scales scales) {
  return spelled(kScales, scales);
}
std::string_view name_of(Rope rope) {
  return spelled(kRopes, rope);
}
std::string_view name_of(Operation operation) {
  return spelled(kOperations, operation);
}

std::span<const std::string_view> format_names() {
  return kFormats;
}
std::span<const std::string_view> alignment_names() {
  return kAlignments;
}
std::span<const std::string_view> empty_row_names() {
  return kEmptyRows;
}
std::span<const std::string_view> log_base_names() {
  return kLogBases;
}
std::span<const std::string_view> empty_lse_names() {
  return kEmptyLses;
}
std::span<const std::string_view> strided_names() {
  return kStrided;
}
std::span<const std::string_view> layout_names() {
  return kLayouts;
}
std::span<const std::string_view> scales_names() {
  return kScales;
}
std::span<const std::string_view> rope_names() {
  return kRopes;
}

// Domain: head_dim >= 1. Error: correctly rounded for every head_dim up to 2^20 (text_test proves
// it by integer arithmetic); beyond that the double's own half ulp could in principle turn a tie.
// Special: none.
float default_scale(Index head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kWordMax) return {};
  std::string_view best;
  // Near means: at most a third of the word mistyped, but one letter always.
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (std::string_view name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  if (!best.empty() || word.size() < 2) return std::string(best);
  for (std::string_view name : known) {  // an abbreviation, or a name with something added
    if (name.starts_with(word) || word.starts_with(name)) return std::string(name);
  }
  return {};
}

}  // namespace attest
