// The letters are those of bound/README.md.
#include "reference/bound/logarithm.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/bound/roundings.hpp"

namespace attest::bound {
namespace {

double shift_roundings(const PrecisionPath& path) {
  return kShiftRoundings + (path.p_scale_log2 == 0 ? 0 : kPShiftRoundings);
}

}  // namespace

double merges_of(double parts, const Scores& scores) {
  return std::max(1.0, parts - 1) + static_cast<double>(scores.sink.size());
}

Logarithm logarithm_of(const Row& row, const Scores& scores) {
  Logarithm log{.key_max = -kInfinity, .reference = -kInfinity};
  for (const auto* terms : {&scores.keys, &scores.sink}) {
    for (const Term& term : *terms) {
      log.reference = std::max(log.reference, term.logit);
      log.magnitude = std::max(log.magnitude, std::fabs(term.logit));
      log.moved = std::max(log.moved, term.moved);
      log.error = std::max(log.error, term.logit_error);
    }
    if (terms == &scores.keys) log.key_max = log.reference;
  }
  log.magnitude += log.moved;
  const double extra = extra_exponent(row.path);
  log.terms = static_cast<double>(scores.keys.size() + scores.sink.size());
  log.most = std::log(log.terms) + extra;
  log.shift = row.problem.num_splits > 1 ? log.magnitude + log.error + log.most
                                         : std::fabs(log.reference) + log.moved + log.error + extra;
  log.log_error =
      declared(row.path.log_error, 0) * std::max(1.0, log.most) + kLogRoundings * kU * log.most;
  log.swing = std::exp(2 * reference_roundings(row.path) * kU * (log.magnitude + log.error));
  if (row.problem.num_splits > 1) {
    const auto parts = static_cast<double>(
        std::min<Index>(row.problem.num_splits, static_cast<Index>(scores.keys.size())));
    log.merges = merges_of(parts, scores);
    log.merge_error = kU * (shift_roundings(row.path) + kLseRoundings) * log.shift +
                      kDistanceRoundings * kU * log.most + log.log_error;
  }
  return log;
}

double lse_radius(const Row& row, const Logarithm& log, double sum, double in_sum) {
  const double largest = log.swing * largest_weight(row.path);
  if (!(log.terms * largest < kOverflow)) return kInfinity;
  const double cast = largest * (1 + declared(row.path.exp_error, kFaithful));
  if (row.path.row_sum_of_rounded_p && !(cast < facts(row.path.p_format).max_finite))
    return kInfinity;
  const double lse = std::fabs(log.reference + std::log(sum)) + log.moved;
  double nats = in_sum + shift_roundings(row.path) * kU * log.shift + log.log_error;
  nats += kLseRoundings * kU * (lse + nats) + alibi_error(row.path) * log.moved;
  nats += kFlush * log.swing * (2 * log.terms + 4) * met_in_units(row.path);
  const double unit = row.problem.lse_base == LogBase::two ? std::numbers::log2e : 1.0;
  return promise(nats * unit * (1 + kEvaluation));
}

}  // namespace attest::bound
