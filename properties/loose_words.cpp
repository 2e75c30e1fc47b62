// One declared error after another is taken back: see the header.
#include "properties/loose_words.hpp"

#include <algorithm>
#include <variant>

#include "properties/excerpt.hpp"
#include "reference/precision_text.hpp"

namespace attest {
namespace {

constexpr Index kRowsTried = 8;  // the fields of a path are the same for all

std::string word_of(const PrecisionField& field, const PrecisionPath& path) {
  const std::string line = print(path), start = std::string(field.name) + "=";
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t stop = std::min(line.find(' ', at), line.size());
    if (line.compare(at, start.size(), start) == 0) return line.substr(at, stop - at);
    at = stop + 1;
  }
  return std::string(field.name);
}

/// Takes back what the field declares, if it declares an error that is not the least.
bool take_back(const PrecisionField& field, PrecisionPath& path) {
  const PrecisionPath before = path, least;
  if (const auto* number = std::get_if<double PrecisionPath::*>(&field.place)) {
    path.** number = least.**number;
  } else if (const auto* format = std::get_if<Format PrecisionPath::*>(&field.place)) {
    path.** format = least.**format;
  }
  return path != before;
}

}  // namespace

std::vector<std::string> loose_words(const Problem& problem, const Values& values,
                                     const PrecisionPath& path, const CanTell& can_tell) {
  const Index rows = query_length(problem, 0), taken = std::min(rows, kRowsTried);
  const Index first = problem.alignment == Alignment::bottom_right ? rows - taken : 0;
  const Excerpt part = excerpt(problem, values, {}, {0, 0, first, first + taken});
  const auto tells = [&](const PrecisionPath& declared) {
    return can_tell(part.problem, part.values, acceptance(part.problem, part.values, declared));
  };
  if (taken == 0 || tells(path)) return {};
  std::vector<std::string> alone, together;
  PrecisionPath without = path;
  for (const PrecisionField& field : precision_fields()) {
    PrecisionPath other = path;
    if (!take_back(field, other)) continue;
    together.push_back(word_of(field, path));
    take_back(field, without);
    if (tells(other)) alone.push_back(together.back());
  }
  if (!alone.empty()) return alone;
  return !together.empty() && tells(without) ? together : std::vector<std::string>{};
}

}  // namespace attest
