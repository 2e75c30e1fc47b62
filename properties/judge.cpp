// How comparisons become a Verdict: the margin, the worst element, and the sentence about it.
#include "properties/judge.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

bool Judge::worst(double error, double bound, const Where& where) {
  ++verdict_.compared;
  const double margin = margin_of(error, bound);
  if (verdict_.compared > 1 && !(margin > verdict_.margin)) return false;
  verdict_.margin = margin;
  verdict_.error = error;
  verdict_.bound = bound;
  verdict_.where = where;
  return true;
}

void Judge::within(double got, double truth, double bound, const Where& where,
                   std::string_view what) {
  if (bound == kInfinity) {
    ++verdict_.unbounded;
    return;
  }
  const bool special = !std::isfinite(truth);
  const bool met = std::isnan(truth) ? std::isnan(got) : got == truth;
  double error = met ? 0 : std::abs(got - truth);
  if (std::isnan(error) || (special && !met)) error = kInfinity;
  const bool is_worst = worst(error, special ? 0 : bound, where);
  // Not `error > bound`: a NaN bound must not let anything pass.
  if (met || (!special && error <= bound)) return;
  if (!violated() || is_worst) {
    verdict_.why = fmt::format("{} is {:.9g} where {:.9g} +- {:.3g} is right", what, got, truth,
                               special ? 0 : bound);
  }
  verdict_.outcome = Outcome::violated;
}

void Judge::accepted(double got, const Accepted& elements, Index flat, const Where& where,
                     std::string_view what) {
  const auto at = static_cast<std::size_t>(flat);
  if (elements.radius[at] == kInfinity) {
    ++verdict_.unbounded;
    return;
  }
  const bool met = elements.accepts(got, at);
  const double error = elements.error_of(got, at), radius = elements.radius[at];
  const bool is_worst = worst(error, std::isfinite(elements.centre[at]) ? radius : 0, where);
  if (met) return;
  if (!violated() || is_worst) {
    const double low = elements.low(at), high = elements.high(at);
    verdict_.why = low == high ? fmt::format("{} is {:.9g} where {:.9g} is right", what, got, low)
                               : fmt::format("{} is {:.9g} where {:.9g} to {:.9g} is right", what,
                                             got, low, high);
  }
  verdict_.outcome = Outcome::violated;
}

void Judge::same_bits(const Tensor& got, const Tensor& reference, const Where& where,
                      std::string_view what) {
  const Index flat = got.offset(where[0], where[1], where[2], where[3]);
  const bool same = got.bits(flat) == reference.bits(flat);
  worst(same ? 0 : kInfinity, 0, where);
  if (same) return;
  if (!violated()) {
    verdict_.why =
        fmt::format("{}: 0x{:x} ({:.9g}) became 0x{:x} ({:.9g})", what, reference.bits(flat),
                    reference.at(flat), got.bits(flat), got.at(flat));
  }
  verdict_.outcome = Outcome::violated;
}

void Judge::demand(bool so, double got, const Where& where, std::string_view what) {
  worst(so ? 0 : kInfinity, 0, where);
  if (so) return;
  if (!violated()) verdict_.why = fmt::format("{}, not {:.9g}", what, got);
  verdict_.outcome = Outcome::violated;
}

Verdict Judge::verdict(std::string_view nothing) const {
  Verdict result = verdict_;
  if (result.outcome == Outcome::violated) return result;
  if (result.compared == 0) {
    Verdict none = vacuous(std::string(nothing));
    none.unbounded = result.unbounded;
    return none;
  }
  result.outcome = Outcome::holds;
  result.why = fmt::format("{} numbers judged", result.compared);
  return result;
}

Verdict declined(std::string why) {
  Verdict verdict;
  verdict.outcome = Outcome::declined;
  verdict.why = std::move(why);
  return verdict;
}
Verdict faulted(std::string why) {
  Verdict verdict;
  verdict.outcome = Outcome::faulted;
  verdict.why = std::move(why);
  return verdict;
}
Verdict vacuous(std::string why) {
  Verdict verdict;
  verdict.why = std::move(why);
  return verdict;
}

}  // namespace attest
