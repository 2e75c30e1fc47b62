// A term that does not hold is made to hold by an edit: a number is set to a value that is asked
// for, and for words and names the edits of dimensions.hpp are tried, so that no list of what may
// be written into a Problem is kept here.
#include "fuzz/narrowing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "properties/ask.hpp"
#include "properties/counter_random.hpp"
#include "properties/domains/dimensions.hpp"
#include "properties/property.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Term = Narrowing::Term;
using Range = Narrowing::Range;
using Seed = std::optional<std::uint64_t>;

constexpr double kWorkMost = 3e5;  // of a case that was brought, unless drawn with more

bool holds(const Term& term, const Problem& problem) {
  if (term.attribute->is_word()) return term.attribute->present(problem) == term.wanted;
  const Index value = term.attribute->value(problem);
  return std::ranges::any_of(term.ranges, [value](const Range& range) {
    return range.low <= value && value <= range.high;
  });
}

/// Of a range without end, or with a far one, the nearer part: the rest is drawn without us.
Index near_end(const Range& range) {
  constexpr Index kAtLeast = 64;
  const Index far = range.low > (Index{1} << 32) ? range.low : 2 * range.low + kAtLeast;
  return std::min(range.high, far);
}

/// A multiple of the largest power of two that has one in the range: what kernels like best.
Index roundest(const Range& range) {
  const Index last = near_end(range);
  if (range.low == 0) return 0;
  Index step = 1;
  while ((last / (2 * step)) * 2 * step >= range.low && last >= 2 * step) step *= 2;
  return (range.low + step - 1) / step * step;
}

Index drawn_from(const Range& range, std::uint32_t which, std::uint32_t step_bits) {
  constexpr Index kSteps[] = {1, 1, 8, 64};  // every number, or those that kernels like
  const Index step = kSteps[step_bits % std::size(kSteps)], last = near_end(range);
  const Index first = (range.low + step - 1) / step;
  if (first > last / step) return range.low + which % (last - range.low + 1);
  return (first + which % (last / step - first + 1)) * step;
}

class Bringer {
 public:
  Bringer(const Narrowing& narrowing, Operation operation, Seed seed) : seed_(seed) {
    for (const Term& term : narrowing.terms) {
      if (term.attribute->is_asked_by(operation)) terms_.push_back(&term);
    }
  }

  void run(Problem& problem) const {
    // Twice: what one term needs may be in the way of an earlier one.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t n = 0; n < terms_.size(); ++n) {
        if (!holds(*terms_[n], problem)) satisfy(problem, n);
      }
    }
    if (!invalidity(problem).empty()) make_legal(problem);
  }

  bool inside(const Problem& problem) const {
    return std::ranges::all_of(terms_, [&](const Term* term) { return holds(*term, problem); });
  }

 private:
  std::array<std::uint32_t, 4> bits(std::size_t n) const {
    return random_bits(seed_.value_or(0), Stream::narrowing, 0, 0, 0, static_cast<Index>(n));
  }

  /// The edit must not cost a term that holds already.
  bool keeps(const Problem& tried, const Problem& problem) const {
    return std::ranges::all_of(
        terms_, [&](const Term* term) { return holds(*term, tried) || !holds(*term, problem); });
  }

  /// What one edit makes of the problem without costing a term, where `wanted` says so.
  template <class Wanted>
  std::vector<Problem> edited(const Problem& problem, const Wanted& wanted) const {
    std::vector<Problem> found;
    for (const Dimension& dimension : dimensions()) {
      for (const auto& edit : dimension.values) {
        Problem tried = problem;
        edit(tried);
        follow_edit(tried, problem);
        if (wanted(tried) && keeps(tried, problem)) found.push_back(std::move(tried));
      }
    }
    return found;
  }

  /// A ring needs a window that it holds, for one: a number that is set anew, or one edit, puts
  /// that right.
  void make_legal(Problem& problem) const {
    for (const Term* term : terms_) {
      if (term->attribute->set == nullptr) continue;
      Problem tried = problem;
      term->attribute->set(tried, term->attribute->value(problem));
      follow_edit(tried, problem);
      if (!invalidity(tried).empty() || !keeps(tried, problem)) continue;
      problem = std::move(tried);
      return;
    }
    std::vector<Problem> legal =
        edited(problem, [](const Problem& tried) { return invalidity(tried).empty(); });
    if (!legal.empty()) problem = std::move(legal.front());
  }

  void satisfy(Problem& problem, std::size_t n) const {
    const Term& term = *terms_[n];
    if (term.attribute->set != nullptr) return set_number(problem, n);
    std::vector<Problem> others =
        edited(problem, [&term](const Problem& tried) { return holds(term, tried); });
    std::vector<Problem> legal;
    std::ranges::copy_if(others, std::back_inserter(legal),
                         [](const Problem& tried) { return invalidity(tried).empty(); });
    std::vector<Problem>& found = legal.empty() ? others : legal;
    if (found.empty()) return;
    // Half of the time the plainest.
    const auto random = bits(n);
    const bool plainest = !seed_ || random[0] % 2 == 0;
    problem = std::move(found[plainest ? 0 : random[1] % found.size()]);
  }

  void set_number(Problem& problem, std::size_t n) const {
    const Term& term = *terms_[n];
    const auto random = bits(n);
    const Range& range = term.ranges[seed_ ? random[0] % term.ranges.size() : 0];
    const Index value = seed_ ? drawn_from(range, random[1], random[2]) : roundest(range);
    for (const auto set : {term.attribute->set, term.attribute->set_otherwise}) {
      Problem tried = problem;
      if (set == nullptr) return;
      set(tried, value);
      follow_edit(tried, problem);
      if (!holds(term, tried) || !keeps(tried, problem)) continue;
      problem = std::move(tried);
      return;
    }
  }

  std::vector<const Term*> terms_;
  Seed seed_;
};

/// The operation that the property will put it to.
Operation operation_of(std::string_view property, const Problem& problem) {
  const auto at = std::ranges::find(catalogue(), property, &Property::name);
  if (at != catalogue().end() && at->central_to) return *at->central_to;
  return needs_of(property).prefill ? Operation::prefill : attention_for(problem);
}

/// What makes the property mean something is as drawn; pages may be of any size.
bool suits(const Problem& made, const Problem& drawn, const Needs& needs) {
  return std::ranges::all_of(dimensions(), [&](const Dimension& dimension) {
    if (!dimension.fixed(needs) || same(dimension, made, drawn)) return true;
    return dimension.name == "page_size" && made.page_size > 0 && drawn.page_size > 0;
  });
}

double work(const Problem& p) {
  return static_cast<double>(row_count(p)) * static_cast<double>(std::max<Index>(p.seqlen_kv, 1)) *
         static_cast<double>(p.head_dim + p.head_dim_v);
}

/// Lengths and heads that nobody asks for give way, the largest first.
void lighten(Problem& problem, double most, const Bringer& bringer, const Needs& needs) {
  constexpr Index Problem::*kExtents[] = {&Problem::seqlen_q, &Problem::seqlen_kv, &Problem::batch,
                                          &Problem::num_heads_q};
  while (work(problem) > most) {
    std::vector<Problem> lighter;
    for (const auto extent : kExtents) {
      Problem tried = problem;
      tried.*extent = (problem.*extent + 1) / 2;
      if (extent == &Problem::num_heads_q) tried.num_heads_q = tried.num_heads_kv;
      follow_edit(tried, problem);
      if (work(tried) < work(problem) && bringer.inside(tried) && invalidity(tried).empty() &&
          suits(tried, problem, needs)) {
        lighter.push_back(std::move(tried));
      }
    }
    if (lighter.empty()) return;
    problem = *std::ranges::min_element(lighter, {}, [](const Problem& p) { return work(p); });
  }
}

}  // namespace

bool asks_for(const Narrowing& narrowing, Operation operation, const Problem& problem) {
  return std::ranges::all_of(narrowing.terms, [&](const Term& term) {
    return !term.attribute->is_asked_by(operation) || holds(term, problem);
  });
}

void bring(const Narrowing& narrowing, Operation operation, Problem& problem, Seed seed) {
  Bringer(narrowing, operation, seed).run(problem);
}

Bring bringing(const Narrowing& narrowing) {
  if (narrowing.terms.empty()) return {};
  return
      [narrowing](Operation operation, Problem& problem) { bring(narrowing, operation, problem); };
}

Case brought(const Case& drawn, std::string_view property, const Narrowing& narrowing) {
  const Operation operation = operation_of(property, drawn.problem);
  if (asks_for(narrowing, operation, drawn.problem)) return drawn;
  const Bringer bringer(narrowing, operation, drawn.seed);
  const Needs needs = needs_of(property);
  Case made = drawn;
  bringer.run(made.problem);
  if (!suits(made.problem, drawn.problem, needs)) return drawn;
  lighten(made.problem, std::max(kWorkMost, work(drawn.problem)), bringer, needs);
  return made;
}

Subject narrowed(Subject subject, const Narrowing& narrowing) {
  if (narrowing.terms.empty()) return subject;
  subject.declines = [narrowing, declines = std::move(subject.declines)](
                         Operation operation,
                         const Problem& problem) -> std::optional<std::string> {
    if (!asks_for(narrowing, operation, problem)) {
      return fmt::format("{} (--where '{}')", kNotAskedFor, narrowing.text);
    }
    return declines ? declines(operation, problem) : std::nullopt;
  };
  return subject;
}

void require_possible(const Narrowing& narrowing) {
  Subject anything;
  anything.offered.set();
  anything.call = [](const Request&, Poison) { return Reply{}; };
  const Served served = probe(narrowed(std::move(anything), narrowing), bringing(narrowing));
  for (const Term& term : narrowing.terms) {
    bool found = false;
    for (std::size_t n = 0; n < kOperationCount; ++n) {
      found = found ||
              (served.operations[n].base && term.attribute->is_asked_by(static_cast<Operation>(n)));
    }
    if (found) continue;
    throw Error(
        fmt::format("--where: no problem is '{}': nothing has the {} that is asked for "
                    "beside the rest (attest list where)",
                    narrowing.text, term.attribute->name));
  }
}

}  // namespace attest
