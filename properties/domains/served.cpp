// Declines are opaque, so all that is used of them is yes and no. A first accepted Problem is
// looked for among combinations of the dimensions that kernels are most often narrow in, the
// likeliest first; from it every dimension is tried alone.
#include "properties/domains/served.hpp"

#include <algorithm>

#include "properties/ask.hpp"
#include "properties/counter_random.hpp"
#include "properties/domains/dimensions.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kQuestionsMost = 60'000;  // about a second of a worker process
constexpr double kWorkMost = 3e5;  // of a fitted case, in multiplications, unless drawn with more
constexpr double kTileWorkMost = 4e7;  // the same where rows and keys are whole tiles

bool accepts(const Subject& subject, Operation operation, const Problem& problem) {
  return invalidity(problem).empty() &&
         (!subject.declines || !subject.declines(operation, problem));
}

/// What is searched together, slowest first: whatever a kernel may insist on.
constexpr std::string_view kSearched[] = {"empty_row",  "window", "cache",   "head_dim",  "formats",
                                          "page_size",  "heads",  "lse",     "empty_lse", "causal",
                                          "kv_lengths", "splits", "seqlen_q"};
// Of dimensions with many values only the first are combined; the others are tried alone later.
constexpr std::size_t kCombined[] = {1, 2, 3, 20, 5, 5, 2, 2, 2, 2, 2, 2, 2};

class Search {
 public:
  Search(const Subject& subject, Operation operation) : subject_(subject), operation_(operation) {
    first_.keys = 64;
    first_.queries = 1;
    first_.batch = 2;
  }

  ServedOperation run() {
    // Properties put a Problem to decode by what it says; one that says so serves them all.
    led_ = operation_ == Operation::decode;
    if (!try_level(0, first_) && led_) {
      led_ = false;
      asked_ = 0;
      try_level(0, first_);
    }
    if (found_.base) widen();
    return std::move(found_);
  }

 private:
  bool asked(const Problem& problem) {
    ++asked_;
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
    for (std::size_t n = 0; n < count; ++n) {
      Problem tried = problem;
      dimension.values[n](tried);
      follow_edit(tried, problem);
      if (try_level(level + 1, tried)) return true;
    }
    return false;
  }

  void widen() {
    for (const Dimension& dimension : dimensions()) {
      std::vector<Problem>& accepted = found_.accepted.emplace_back(1, *found_.base);
      for (const auto& edit : dimension.values) {
        Problem tried = *found_.base;
        edit(tried);
        follow_edit(tried, *found_.base);
        if (same(dimension, tried, *found_.base)) continue;
        if (asked(tried)) accepted.push_back(std::move(tried));
      }
    }
  }

  const Subject& subject_;
  Operation operation_;
  bool led_ = false;
  Problem first_;
  ServedOperation found_;
  std::uint64_t asked_ = 0;  // how often declines() was called
};

double work(const Problem& p) {
  return static_cast<double>(row_count(p)) * static_cast<double>(std::max<Index>(p.keys, 1)) *
         static_cast<double>(p.depth + p.v_depth);
}

/// What a kernel does that takes whole tiles of rows and keys, for every head of every entry.
double tile_work(const Problem& p) {
  constexpr Index kTile = 64;
  const auto whole = [](Index extent) {
    return static_cast<double>((std::max<Index>(extent, 1) + kTile - 1) / kTile * kTile);
  };
  return static_cast<double>(p.batch * p.query_heads) * whole(p.queries) * whole(p.keys) *
         static_cast<double>(p.depth + p.v_depth);
}

std::optional<Operation> central_operation(std::string_view property) {
  const auto at = std::ranges::find(catalogue(), property, &Property::name);
  return at == catalogue().end() ? std::nullopt : at->central_to;
}

/// Which operation the case is to be put to; nothing: none that is offered and served.
std::optional<Operation> operation_for(std::string_view property, const Problem& problem,
                                       const Served& served) {
  const auto serves = [&](Operation operation) {
    return served.operations[static_cast<std::size_t>(operation)].base.has_value();
  };
  const auto only = [&](Operation operation) {
    return serves(operation) ? std::optional(operation) : std::nullopt;
  };
  if (const auto central = central_operation(property)) return only(*central);
  if (needs_of(property).prefill) return only(Operation::prefill);
  const Operation asked = attention_for(problem);
  if (serves(asked)) return asked;
  return only(asked == Operation::prefill ? Operation::decode : Operation::prefill);
}

class Fit {
 public:
  Fit(const Case& drawn, std::string_view property, const Subject& subject, Operation operation,
      const ServedOperation& served)
      : drawn_(drawn),
        needs_(needs_of(property)),
        subject_(subject),
        operation_(operation),
        served_(served),
        // Whoever asks prefill or decode by what the Problem says must be led to the right one.
        led_(!central_operation(property)) {}

  Case run() {
    if (accepts(drawn_.problem)) return drawn_;
    Case made = drawn_;
    made.problem = *served_.base;
    if (!accepts(made.problem)) return drawn_;
    const auto table = dimensions();
    for (const bool fixed : {true, false}) {
      for (std::size_t n = 0; n < table.size(); ++n) {
        if (table[n].fixed(needs_) != fixed) continue;
        if (!take(made.problem, n) && fixed) return drawn_;
      }
    }
    thin_out(made.problem);
    shorten(made.problem);
    return made;
  }

 private:
  bool accepts(const Problem& problem) const {
    if (led_ && attention_for(problem) != operation_) return false;
    return attest::accepts(subject_, operation_, problem);
  }

  bool moves(Problem& problem, const Dimension& dimension, const Problem& from) const {
    Problem tried = problem;
    dimension.take(tried, from);
    follow_edit(tried, problem);
    if (!accepts(tried)) return false;
    problem = std::move(tried);
    return true;
  }

  /// Whether it is as drawn.
  bool take(Problem& problem, std::size_t n) const {
    const Dimension& dimension = dimensions()[n];
    if (same(dimension, problem, drawn_.problem)) return true;
    if (moves(problem, dimension, drawn_.problem)) return true;
    const std::vector<Problem>& others = served_.accepted[n];
    const auto bits = random_bits(drawn_.seed, Stream::fit, 0, 0, 0, static_cast<Index>(n));
    if (others.size() > 1) moves(problem, dimension, others[bits[0] % others.size()]);
    return false;
  }

  /// Widths may have grown: of many entries and many heads together the fewer give way.
  void thin_out(Problem& problem) const {
    const double most = std::max(kTileWorkMost, tile_work(drawn_.problem));
    const Index entries_least = needs_.neighbours ? 2 : 1;
    while (tile_work(problem) > most) {
      const Problem before = problem;
      const Index group = problem.query_heads / problem.kv_heads;
      const bool entries = problem.batch > entries_least &&
                           (problem.batch <= problem.query_heads || problem.query_heads == 1);
      if (entries) {
        problem.batch = (problem.batch + 1) / 2;
      } else if (group > 1) {
        problem.query_heads = problem.kv_heads * ((group + 1) / 2);
      } else {
        problem.query_heads = problem.kv_heads = (problem.kv_heads + 1) / 2;
      }
      follow_edit(problem, before);
      if (problem != before && accepts(problem)) continue;
      problem = before;
      return;
    }
  }

  /// Widths may have grown: lengths give way, where they mean nothing to the property.
  void shorten(Problem& problem) const {
    if (dimension_named("seqlen_kv").fixed(needs_)) return;
    const double most = std::max(kWorkMost, work(drawn_.problem));
    while (work(problem) > most && std::max(problem.queries, problem.keys) > 1) {
      const Problem before = problem;
      Index& longer = problem.queries > problem.keys ? problem.queries : problem.keys;
      longer = (longer + 1) / 2;
      follow_edit(problem, before);
      if (accepts(problem)) continue;
      problem = before;
      return;
    }
  }

  const Case& drawn_;
  Needs needs_;
  const Subject& subject_;
  Operation operation_;
  const ServedOperation& served_;
  bool led_;
};

}  // namespace

Served probe(const Subject& subject) {
  Served served;
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const auto operation = static_cast<Operation>(n);
    if (offers(subject, operation)) served.operations[n] = Search(subject, operation).run();
  }
  return served;
}

Case fitted(const Case& drawn, std::string_view property, const Subject& subject,
            const Served& served) {
  const auto operation = operation_for(property, drawn.problem, served);
  if (!operation) return drawn;
  return Fit(drawn, property, subject, *operation,
             served.operations[static_cast<std::size_t>(*operation)])
      .run();
}

}  // namespace attest
