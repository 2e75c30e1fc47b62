// The letters are those of bound/README.md.
#include "reference/bound/logarithm.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/bound/roundings.hpp"

namespace attest::bound {

Logarithm logarithm_of(const Row& row, const Scores& scores) {
  Logarithm log{.key_max = -kInfinity, .reference = -kInfinity};
  for (const auto* terms : {&scores.keys, &scores.sink}) {
    for (const Term& term : *terms) {
      log.reference = std::max(log.reference, term.logit);
      log.magnitude = std::max(log.magnitude, std::fabs(term.logit));
      log.error = std::max(log.error, term.logit_error);
    }
    if (terms == &scores.keys) log.key_max = log.reference;
  }
  const double extra = extra_exponent(row.path);
  log.terms = static_cast<double>(scores.keys.size() + scores.sink.size());
  log.most = std::log(log.terms) + extra;
  log.shift = row.problem.splits > 1 ? log.magnitude + log.error + log.most
                                     : std::fabs(log.reference) + log.error + extra;
  log.log_error =
      declared(row.path.log_error, 0) * std::max(1.0, log.most) + kLogRoundings * kU * log.most;
  log.swing = std::exp(2 * reference_roundings(row.path) * kU * (log.magnitude + log.error));
  return log;
}

double lse_radius(const Row& row, const Logarithm& log, double sum, double in_sum) {
  const double largest = std::exp2(declared(row.path.lazy, 0) + row.path.p_shift);
  if (!(log.terms * log.swing * largest < kOverflow)) return kInfinity;
  const double lse = std::fabs(log.reference + std::log(sum));
  const double shifts = kShiftRoundings + (row.path.p_shift == 0 ? 0 : kPShiftRoundings);
  double nats = in_sum + shifts * kU * log.shift + log.log_error;
  nats += kLseRoundings * kU * (lse + nats);
  nats += kFlush * log.swing * (2 * log.terms + 4) / std::min(1.0, std::exp2(row.path.p_shift));
  const double unit = row.problem.lse_base == LogBase::two ? std::numbers::log2e : 1.0;
  return promise(nats * unit * (1 + kEvaluation));
}

}  // namespace attest::bound
