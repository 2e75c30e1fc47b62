// Which kernel serves a line is for the subject to say. What usually decides it is known: formats,
// and whether the cache has places of its own for its tokens.
#include "properties/domains/turns.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Kind = std::array<bool, 4>;

Kind kind_of(std::string_view line, bool large) {
  const Problem p = parse_case(line).problem;
  const bool placed = p.page_size > 0 || p.ring > 0 || p.strided != 0;
  return {large, placed, bytes_of(cache_format(p)) == 1, bytes_of(p.input) == 2};
}

}  // namespace

std::vector<std::string_view> by_turns(std::span<const std::string_view> lines,
                                       std::span<const std::string_view> sizes) {
  std::map<Kind, std::vector<std::string_view>> kinds;
  for (const std::string_view line : lines) kinds[kind_of(line, false)].push_back(line);
  for (const std::string_view line : sizes) kinds[kind_of(line, true)].push_back(line);
  std::vector<std::pair<double, std::string_view>> placed;
  for (const auto& [kind, alike] : kinds) {
    const auto count = static_cast<double>(alike.size());
    for (std::size_t n = 0; n < alike.size(); ++n) {
      placed.emplace_back(static_cast<double>(n) / count, alike[n]);
    }
  }
  std::ranges::stable_sort(placed, {}, &std::pair<double, std::string_view>::first);
  std::vector<std::string_view> ordered;
  for (const auto& [place, line] : placed) ordered.push_back(line);
  return ordered;
}

}  // namespace attest
