#include "reports/covered_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reference/text.hpp"
#include "reports/rendering.hpp"

namespace attest {

std::vector<std::string> drawn_of(const Run& run) {
  std::vector<std::string> lines;
  for (const auto& [operation, covered] : run.covered) {
    std::vector<std::string> words;
    for (const auto& [name, range] : covered.ranges) {
      words.push_back(range.least == range.most
                          ? fmt::format("{} {}", name, range.least)
                          : fmt::format("{} {} to {}", name, range.least, range.most));
    }
    if (!words.empty()) {
      lines.push_back(fmt::format("{}: {}", name_of(operation), joined(words, ", ")));
    }
  }
  return lines;
}

std::vector<std::string> pairs_drawn_of(const Run& run) {
  std::vector<std::string> words;
  for (const auto& [operation, covered] : run.covered) {
    words.push_back(fmt::format("{} {} of {}", name_of(operation),
                                covered.pairs - covered.unmet_pairs.size(), covered.pairs));
  }
  return words;
}

std::vector<std::string> undrawn_of(const Run& run, std::size_t most) {
  std::vector<std::string> lines;
  for (const auto& [operation, covered] : run.covered) {
    const std::vector<std::string>& values = covered.unmet_values;
    if (values.empty()) continue;
    const std::size_t shown = std::min(values.size(), most);
    const std::vector<std::string> first(values.begin(),
                                         values.begin() + static_cast<std::ptrdiff_t>(shown));
    lines.push_back(fmt::format("{}: {}", name_of(operation), joined(first, ", ")));
    if (shown < values.size()) lines.back() += fmt::format(" and {} more", values.size() - shown);
  }
  return lines;
}

}  // namespace attest
