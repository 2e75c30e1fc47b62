// A Problem that is accepted is the start; from it every dimension is led to what was drawn.
#include "properties/domains/fitted.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "properties/ask.hpp"
#include "properties/counter_random.hpp"
#include "properties/property.hpp"

namespace attest {
namespace {

constexpr double kWorkMost = 3e5;  // of a fitted case, in multiplications, unless drawn with more
constexpr double kTileWorkMost = 4e7;  // the same where rows and keys are whole tiles

double work(const Problem& p) {
  return static_cast<double>(row_count(p)) * static_cast<double>(std::max<Index>(p.seqlen_kv, 1)) *
         static_cast<double>(p.head_dim + p.head_dim_v);
}

/// What a kernel does that takes whole tiles of rows and keys, for every head of every entry.
double tile_work(const Problem& p) {
  constexpr Index kTile = 64;
  const auto whole = [](Index extent) {
    return static_cast<double>((std::max<Index>(extent, 1) + kTile - 1) / kTile * kTile);
  };
  return static_cast<double>(p.batch * p.num_heads_q) * whole(p.seqlen_q) * whole(p.seqlen_kv) *
         static_cast<double>(p.head_dim + p.head_dim_v);
}

std::optional<Operation> central_operation(std::string_view property) {
  const auto at = std::ranges::find(catalogue(), property, &Property::name);
  return at == catalogue().end() ? std::nullopt : at->central_to;
}

/// Whether a property with these needs takes any features: others need scores or costs that are
/// plain.
bool takes_features(const Needs& needs) {
  return !needs.plain_scores && !needs.many_scores && !needs.whole_tiles;
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

  Case fitted() const {
    if (accepts(drawn_.problem)) return drawn_;
    auto made = led_from(*served_.base, {});
    if (!made) return drawn_;
    thin_out(made->problem);
    shorten(made->problem);
    return *made;
  }

  Case planned(std::uint64_t number) const {
    const Problem& features = served_.plan[number % served_.plan.size()];
    auto made = led_from(features, &features);
    if (!made) return drawn_;
    const ServedExtent& extent = served_.extents[number % served_.extents.size()];
    const Dimension& dimension = dimensions()[extent.dimension];
    if (!dimension.fixed(needs_)) moves(made->problem, dimension, extent.problem);
    thin_out(made->problem);
    shorten(made->problem);
    return *made;
  }

 private:
  bool accepts(const Problem& problem) const {
    if (led_ && attention_for(problem) != operation_) return false;
    return attest::accepts(subject_, operation_, problem);
  }

  /// Nothing: what the property needs is not accepted beside what `start` has. Kinds of values in
  /// which `kept` differs from what was drawn stay.
  std::optional<Case> led_from(const Problem& start, const Problem* kept) const {
    Case made = drawn_;
    made.problem = start;
    if (!accepts(made.problem)) return {};
    const auto table = dimensions();
    for (const bool fixed : {true, false}) {
      for (std::size_t n = 0; n < table.size(); ++n) {
        if (table[n].fixed(needs_) != fixed) continue;
        if (!fixed && kept != nullptr && is_other_kind(table[n], *kept)) continue;
        if (!take(made.problem, n) && fixed) return {};
      }
    }
    return made;
  }

  bool is_other_kind(const Dimension& dimension, const Problem& kept) const {
    return dimension.kind && dimension.asked_by(operation_) &&
           dimension.kind(kept) != dimension.kind(drawn_.problem);
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
      const Index group = problem.num_heads_q / problem.num_heads_kv;
      const bool entries = problem.batch > entries_least &&
                           (problem.batch <= problem.num_heads_q || problem.num_heads_q == 1);
      if (entries) {
        problem.batch = (problem.batch + 1) / 2;
      } else if (group > 1) {
        problem.num_heads_q = problem.num_heads_kv * ((group + 1) / 2);
      } else {
        problem.num_heads_q = problem.num_heads_kv = (problem.num_heads_kv + 1) / 2;
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
    while (work(problem) > most && std::max(problem.seqlen_q, problem.seqlen_kv) > 1) {
      const Problem before = problem;
      Index& longer = problem.seqlen_q > problem.seqlen_kv ? problem.seqlen_q : problem.seqlen_kv;
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

std::optional<Operation> operation_for(std::string_view property, const Problem& problem,
                                       const Served& served) {
  const auto serves = [&](Operation operation) { return served.of(operation).base.has_value(); };
  const auto only = [&](Operation operation) {
    return serves(operation) ? std::optional(operation) : std::nullopt;
  };
  if (const auto central = central_operation(property)) return only(*central);
  if (needs_of(property).prefill) return only(Operation::prefill);
  const Operation asked = attention_for(problem);
  if (serves(asked)) return asked;
  return only(asked == Operation::prefill ? Operation::decode : Operation::prefill);
}

Case fitted(const Case& drawn, std::string_view property, const Subject& subject,
            const Served& served) {
  const auto operation = operation_for(property, drawn.problem, served);
  if (!operation) return drawn;
  return Fit(drawn, property, subject, *operation, served.of(*operation)).fitted();
}

Case planned(const Case& drawn, std::string_view property, const Subject& subject,
             const Served& served, std::uint64_t number) {
  const auto operation = operation_for(property, drawn.problem, served);
  if (!operation || !takes_features(needs_of(property))) return drawn;
  const ServedOperation& there = served.of(*operation);
  if (there.plan.empty() || there.extents.empty()) return drawn;
  return Fit(drawn, property, subject, *operation, there).planned(number);
}

}  // namespace attest
