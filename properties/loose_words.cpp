// One declared error after another is taken back: see the header.
#include "properties/loose_words.hpp"

#include <algorithm>
#include <variant>

#include "properties/excerpt.hpp"
#include "reference/precision_text.hpp"

namespace attest {
namespace {

constexpr Index kRowsTried = 8;    // the fields of a path are the same for all
constexpr Index kLeastBlock = 16;  // of kernels on tensor cores: the tile of mma is no smaller

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

/// The last rows of a head, or the first ones, where there are any.
Excerpt few_rows(const Problem& problem, const Values& values) {
  Index b = 0;
  while (b + 1 < problem.batch && query_length(problem, b) == 0) ++b;
  const Index rows = query_length(problem, b), taken = std::min(rows, kRowsTried);
  const Index first = problem.alignment == Alignment::bottom_right ? rows - taken : 0;
  return excerpt(problem, values, {}, {b, 0, first, first + taken});
}

bool tells(const Excerpt& part, const PrecisionPath& path, const CanTell& can_tell) {
  return can_tell(part.problem, part.values, acceptance(part.problem, part.values, path));
}

}  // namespace

std::vector<std::string> loose_words(const Problem& problem, const Values& values,
                                     const PrecisionPath& path, const CanTell& can_tell) {
  const Excerpt part = few_rows(problem, values);
  if (part.problem.seqlen_q == 0 || tells(part, path, can_tell)) return {};
  std::vector<std::string> alone, together;
  PrecisionPath without = path;
  for (const PrecisionField& field : precision_fields()) {
    PrecisionPath other = path;
    if (!take_back(field, other)) continue;
    together.push_back(word_of(field, path));
    take_back(field, without);
    if (tells(part, other, can_tell)) alone.push_back(together.back());
  }
  if (!alone.empty()) return alone;
  if (together.empty() || !tells(part, without, can_tell)) return {};
  return together;
}

bool block_would_tell(const Problem& problem, const Values& values, const PrecisionPath& path,
                      const CanTell& can_tell) {
  if (path.kv_block > 0 || path.keys_per_rescale > 1) return false;
  const Excerpt part = few_rows(problem, values);
  PrecisionPath said = path;
  said.kv_block = said.keys_per_rescale = kLeastBlock;
  return part.problem.seqlen_q > 0 && !tells(part, path, can_tell) && tells(part, said, can_tell);
}

}  // namespace attest
