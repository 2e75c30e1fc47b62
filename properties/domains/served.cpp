// Declines are opaque, so all that is used of them is yes and no. A first accepted Problem is
// looked for among combinations of the dimensions that kernels are most often narrow in, the
// likeliest first; from it every dimension is tried alone, then in company, then in pairs.
#include "properties/domains/served.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "properties/ask.hpp"
#include "properties/domains/dimensions.hpp"
#include "properties/domains/domain.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kQuestionsMost = 60'000;  // about a second of a worker process
constexpr std::uint64_t kDrawnMost = 4'000;       // finds one in 1,000 in 98 of 100 tries

/// What is searched together, slowest first: whatever a kernel may insist on.
constexpr std::string_view kSearched[] = {"empty_row",  "window", "cache",   "head_dim",  "formats",
                                          "page_size",  "heads",  "lse",     "empty_lse", "causal",
                                          "kv_lengths", "splits", "seqlen_q"};
// Of dimensions with many values only the first are combined; the others are tried alone later.
constexpr std::size_t kCombined[] = {1, 2, 3, 20, 5, 5, 2, 2, 2, 2, 2, 2, 2};

using Edit = std::function<void(Problem&)>;

std::string_view central_property(Operation operation) {
  const auto at = std::ranges::find(catalogue(), std::optional(operation), &Property::central_to);
  return at == catalogue().end() ? std::string_view() : at->name;
}

class Search {
 public:
  Search(const Subject& subject, Operation operation, const Bring& bring)
      : subject_(subject), operation_(operation), bring_(bring) {
    first_.seqlen_kv = 64;
    first_.seqlen_q = 1;
    first_.batch = 2;
    if (bring_) bring_(operation_, first_);
  }

  ServedOperation run() {
    // Properties put a Problem to decode by what it says; one that says so serves them all.
    led_ = operation_ == Operation::decode;
    if (!try_level(0, first_) && led_) {
      led_ = false;
      asked_ = 0;
      try_level(0, first_);
    }
    if (!found_.base) look_among_drawn();
    if (!found_.base) return {};
    widen();
    accompany();
    pair();
    return std::move(found_);
  }

 private:
  bool asked(const Problem& problem) {
    ++asked_;
    // Where there are no pages, nothing is asked to be copied.
    if (operation_ == Operation::copy_pages && problem.page_size == 0) return false;
    return accepts(subject_, operation_, problem);
  }

  bool try_level(std::size_t level, const Problem& problem) {
    if (asked_ > kQuestionsMost) return false;
    if (level == std::size(kSearched)) {
      if (led_ && attention_for(problem) != operation_) return false;
      if (!asked(problem)) return false;
      found_.base = problem;
      return true;
    }
    const Dimension& dimension = dimension_named(kSearched[level]);
    const std::size_t count = std::min(kCombined[level], dimension.values.size());
    std::vector<Problem> brought;  // which may be the same for many values
    for (std::size_t n = 0; n < count; ++n) {
      Problem tried = problem;
      dimension.values[n](tried);
      follow_edit(tried, problem);
      if (bring_) {
        bring_(operation_, tried);
        if (!invalidity(tried).empty()) continue;
        if (std::ranges::find(brought, tried) != brought.end()) continue;
        brought.push_back(tried);
      }
      if (try_level(level + 1, tried)) return true;
    }
    return false;
  }

  /// A kernel that insists on much at once is found where its cases are drawn from, and what it
  /// does not insist on is made plain.
  void look_among_drawn() {
    const std::string_view property = central_property(operation_);
    for (std::uint64_t index = 0; index < kDrawnMost && !found_.base; ++index) {
      Problem drawn = draw_case(property, 1, index).problem;
      if (bring_) bring_(operation_, drawn);
      led_ = operation_ == Operation::decode && attention_for(drawn) == operation_;
      if (asked(drawn)) found_.base = drawn;
    }
    if (!found_.base) return;
    for (const Dimension& dimension : dimensions()) {
      const auto plainer = edited(*found_.base, dimension, dimension.values.front());
      if (plainer && (!led_ || attention_for(*plainer) == operation_)) found_.base = *plainer;
    }
  }

  void widen() {
    for (const Dimension& dimension : dimensions()) {
      std::vector<Problem>& accepted = found_.accepted.emplace_back(1, *found_.base);
      declined_.emplace_back();
      for (const Edit& edit : dimension.values) {
        if (auto tried = edited(*found_.base, dimension, edit)) {
          accepted.push_back(std::move(*tried));
        } else if (!same_as_base(dimension, edit)) {
          declined_.back().push_back(&edit);
        }
      }
    }
  }

  /// What is declined alone may be accepted beside one other value: scales with a cache on pages.
  void accompany() {
    const AcceptedValues alone = found_.accepted;
    for (std::size_t n = 0; n < dimensions().size(); ++n) {
      if (!dimensions()[n].asked_by(operation_)) continue;
      for (const Edit* edit : declined_[n]) {
        if (auto found = in_company(alone, n, *edit)) {
          found_.accepted[n].push_back(std::move(*found));
        }
      }
    }
  }

  std::optional<Problem> in_company(const AcceptedValues& alone, std::size_t n, const Edit& edit) {
    for (std::size_t other = 0; other < alone.size(); ++other) {
      if (other == n || !dimensions()[other].asked_by(operation_)) continue;
      for (std::size_t i = 1; i < alone[other].size(); ++i) {
        if (asked_ > kQuestionsMost) return {};
        if (auto tried = edited(alone[other][i], dimensions()[n], edit)) return tried;
      }
    }
    return {};
  }

  void pair() {
    const Accepts asks = [this](const Problem& problem) {
      return (!led_ || attention_for(problem) == operation_) && asked(problem);
    };
    found_.pairs = pairs_of(operation_, found_.accepted, asks);
    found_.plan = plan_of(operation_, found_.pairs, found_.accepted, asks);
    name_values();
  }

  void name_values() {
    std::set<std::string> words;
    for (std::size_t n = 0; n < dimensions().size(); ++n) {
      const Dimension& dimension = dimensions()[n];
      if (!dimension.asked_by(operation_)) continue;
      for (const Problem& problem : found_.accepted[n]) {
        const std::string word = dimension.word(problem);
        const bool extent = !dimension.kind || dimension.kind(problem) != word;
        if (words.insert(word).second && extent) found_.extents.push_back({n, problem});
      }
    }
    found_.values.assign(words.begin(), words.end());
  }

  bool same_as_base(const Dimension& dimension, const Edit& edit) const {
    Problem tried = *found_.base;
    edit(tried);
    return same(dimension, tried, *found_.base);
  }

  /// Nothing: it is declined, or changes nothing.
  std::optional<Problem> edited(const Problem& from, const Dimension& dimension, const Edit& edit) {
    Problem tried = from;
    edit(tried);
    follow_edit(tried, from);
    if (same(dimension, tried, from) || !asked(tried)) return {};
    return tried;
  }

  const Subject& subject_;
  Operation operation_;
  const Bring& bring_;
  bool led_ = false;
  Problem first_;
  ServedOperation found_;
  std::vector<std::vector<const Edit*>> declined_;  // by number of the dimension, alone
  std::uint64_t asked_ = 0;                         // how often declines() was called
};

}  // namespace

bool accepts(const Subject& subject, Operation operation, const Problem& problem) {
  return invalidity(problem).empty() &&
         (!subject.declines || !subject.declines(operation, problem));
}

Served probe(const Subject& subject, const Bring& bring) {
  Served served;
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const auto operation = static_cast<Operation>(n);
    if (offers(subject, operation)) served.operations[n] = Search(subject, operation, bring).run();
  }
  return served;
}

}  // namespace attest
