// The letters are those of bound/README.md.
#include "reference/bound/running.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/logarithm.hpp"
#include "reference/bound/roundings.hpp"
#include "reference/bound/weighted_values.hpp"

namespace attest::bound {
namespace {

/// What flushing may lose: README, "Output".
double flushed_of(const Row& row, const Scores& scores, const Rows& v, Index c) {
  double met = 0;
  for (const Term& key : scores.keys) {
    met = std::max(met, met_by_flushed(v.row(key.j)[c], v.scale_of(key.j)));
  }
  const double visits = row.problem.num_splits > 1 ? 2 : 1;
  const double terms = 2 * static_cast<double>(scores.keys.size()) + 8;
  return 8 * kFlush * visits * terms * (1 + met) * met_in_units(row.path);
}

/// D: how far theta moves the mean of a column.
double moved_mean(const Scores& scores, const CastWeights& weights, const Rows& v, Index c,
                  double o) {
  double moved = weights.sink_drift * std::fabs(o);
  for (std::size_t n = 0; n < weights.keys.size(); ++n) {
    moved += weights.keys[n].drift * std::fabs(v.row(scores.keys[n].j)[c] - o);
  }
  return moved / weights.sum / (1 - weights.theta);
}

}  // namespace

std::optional<FollowedRow> followed_row(const Row& row, const Scores& scores, const Rows& v,
                                        bool quantised) {
  if (quantised && row.path.p_format == Format::f32) return std::nullopt;
  if (row.path.row_sum_of_rounded_p && row.path.p_format != Format::f32 &&
      (!quantised || (row.path.v_scale_in_p && row.values.v_scales))) {
    return std::nullopt;
  }
  if (row.path.tensor_step < 0 || !std::isfinite(extra_exponent(row.path))) return std::nullopt;
  const Logarithm log = logarithm_of(row, scores);
  if (!(log.swing < 2)) return std::nullopt;  // a large one is left to B1
  const std::optional<Visits> visits = visits_of(row, scores);
  if (!visits) return std::nullopt;
  // What weights are divided by before their cast is known once all keys were seen: in one block.
  const bool divided = row.path.normalize_before_cast;
  if (divided && (row.problem.num_splits > 1 || visits->parts.size() != 1 ||
                  visits->parts[0].size() != 1 || visits->parts[0][0].visits.size() != 1)) {
    return std::nullopt;
  }
  const std::optional<Joints> joints = joints_of(row, scores, *visits, log);
  if (!joints) return std::nullopt;
  const CastWeights weights = cast_weights_of(row, scores, *visits, *joints, v, quantised);
  const double kappa = weights.kappa_sum / (1 - weights.theta);
  if (!(weights.theta < 0.5 && kappa < 0.25)) return std::nullopt;
  const WeightedValues values =
      weighted_values_of(row, scores, *visits, *joints, weights, v, quantised);
  const double division = declared(row.path.division_error, kDivision);
  // 1 + phi. A share exp(lse - LSE) that is not divided has an exponential, those in that LSE
  // others.
  const double shares = joints->merges * (joints->part_lse + 2 * joints->exponential);
  const bool each =
      divided || row.problem.num_splits > 1;  // part, or share, has divisions of its own
  const double quotient = (each ? 1 : 1 + division) * std::exp(shares) / (1 - kappa);
  FollowedRow out;
  if (!quantised) {
    // S is no less than ln(1 + S) and than the mean of A: README, "LSE".
    const double sum = weights.sum * std::exp(joints->all.value - log.reference);
    out.lse = lse_radius(row, log, sum, weights.theta - std::log1p(-kappa));
  }
  for (Index c = 0; c < row.problem.head_dim_v; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const double o = values.sum[at] / weights.sum;
    double before = values.error[at] / weights.sum;
    // Cast shares hold the errors of their divisor already.
    double factor = divided ? 0 : quotient / (1 - weights.theta) - 1;
    if (!quantised) {
      before = before / (1 - weights.theta) + moved_mean(scores, weights, v, c, o);
      factor = quotient - 1;
    }
    const double radius = before + (std::fabs(o) + before) * factor + flushed_of(row, scores, v, c);
    out.centre.push_back(o);
    out.radius.push_back(promise(radius * (1 + kEvaluation)));
  }
  return out;
}

}  // namespace attest::bound
