// B1, the order-free bound, evaluated in double for one row after another. The letters and steps
// (S1 ... S8) are those of bound/README.md; every constant is in constants.hpp.
#include "reference/bound/order_free.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/logarithm.hpp"
#include "reference/bound/roundings.hpp"
#include "reference/bound/scores.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

using namespace bound;

/// The softmax of a row and what can go wrong with it.
struct Weights {
  std::vector<Term> keys, sink;
  Logarithm log;
  double sum = 0;         // W, relative to the reference, at least 1
  double theta_mean = 0;  // S
  double exponent_mean = 0, exponent_max = 0;
  double kappa_sum = 0;    // of the row sum
  double kappa_value = 0;  // of P V
  double rescales = 0;     // R
  double most = 1;         // what a weight may be when it is cast, and what it is relative to
  double unit = 1;
  double cast = 0;   // relative error of a weight when it is cast
  double apart = 0;  // S7: by how much the weights of the row sum may differ from those of P V
  bool split = false;
  bool small_theta() const { return theta_mean < 0.5; }
};

/// S4: how often a key's weight can be brought to another reference.
double rescales_of(const Row& row, const Scores& scores, double merges) {
  const auto count = static_cast<Index>(scores.keys.size());
  if (count == 0) return 0;
  const Index span = scores.keys.back().j - scores.keys.front().j;
  const Index block = std::max<Index>(1, row.path.keys_per_rescale);
  const Index blocks = std::min(count - 1, span / block + (span % block == 0 ? 0 : 1));
  const Index states = std::min(std::max<Index>(1, row.path.interleaved_accumulators), count);
  return static_cast<double>(blocks + states - 1 + (scores.sink.empty() ? 0 : 1)) + merges;
}

/// By what a v is multiplied that meets what is lost of its weight, should that be subnormal in the
/// format of P: by 0 when it cannot be, by 1, or by the reciprocal of a scale that joined the
/// weight before the cast.
double subnormal_share(const Row& row, const Term& key, double factor, double theta_mean) {
  if (row.path.p_format == Format::f32) return 0;
  const double meets = row.path.normalize_before_cast
                           ? key.share / (kUnderflowRoom * (1 + theta_mean))
                           : key.weight * std::exp2(row.path.p_scale_log2);
  const double least = meets * std::exp(-key.exponent);
  const double normal = smallest_normal(row.path.p_format);
  return std::max(least < normal ? 1.0 : 0.0, least * factor < normal ? 1 / factor : 0.0);
}

/// S7, where the row sum adds cast weights: what the cast of subnormal ones may lose of it.
double lost_in_sum(const Row& row, const Weights& w) {
  double count = 0;
  for (const Term& key : w.keys) count += subnormal_share(row, key, 1, w.theta_mean);
  return kUnderflowRoom * w.log.swing * count * ulp(row.path.p_format, 0) / 2 / w.unit / w.sum;
}

/// Shares of the sum, and what the errors of all exponents do to it.
void share_out(Weights& w) {
  double apart_mean = 0, apart_max = 0;
  for (auto* terms : {&w.keys, &w.sink}) {
    for (Term& term : *terms) {
      term.share = term.weight / w.sum;
      // The second form lets a weight that underflows meet an error that overflows.
      term.theta_share = term.exponent < 1
                             ? term.share * std::expm1(term.exponent)
                             : std::exp(term.logit - w.log.reference + term.exponent) / w.sum;
      w.theta_mean += term.theta_share;
      w.exponent_mean += term.share * term.exponent;
      const double apart = std::expm1(2 * (term.exponent - term.logit_error));
      apart_mean += (term.share + term.theta_share) * apart;
      apart_max = std::max(apart_max, apart);
      w.exponent_max = std::max(w.exponent_max, term.exponent);
    }
  }
  if (w.log.terms == 1 && !w.split) return;  // the exponential of 0, twice the same
  w.apart = w.small_theta() ? std::min(apart_max, apart_mean / (1 - w.theta_mean)) : apart_max;
}

Weights weigh(const Row& row, const Scores& scores) {
  Weights w{.keys = scores.keys, .sink = scores.sink, .log = logarithm_of(row, scores)};
  w.split = row.problem.num_splits > 1;
  w.rescales = rescales_of(row, scores, w.log.merges);
  const double error = w.log.error, count = w.log.terms, extra = extra_exponent(row.path);
  w.unit = row.path.normalize_before_cast ? 1 : std::exp2(row.path.p_scale_log2);
  w.most = largest_weight(row.path);
  w.cast = row.path.p_format == Format::f32 ? 0 : unit_roundoff(row.path.p_format);

  // S4 and, for splits, S9.
  const double exponential = as_exponent(declared(row.path.exp_error, kFaithful));
  double common = (1 + w.rescales) * exponential;
  if (w.rescales > 0) {
    const double references = 2 * reference_roundings(row.path) + w.rescales;
    common += references * kU * (w.log.magnitude + error);
  }
  common += w.log.merges * w.log.merge_error;
  const auto charge = [&](Term& term, double distance) {
    const double visits = w.split ? 2 : 1;  // within its split, and when splits are combined
    term.exponent = term.logit_error + common +
                    visits * kDistanceRoundings * kU * (distance + extra + 2 * error);
    if (row.path.row_sum_of_rounded_p && term.j >= 0) term.exponent += as_exponent(w.cast);
    term.weight = std::exp(term.logit - w.log.reference);
    w.sum += term.weight;
  };
  for (Term& key : w.keys) charge(key, w.log.reference - key.logit);
  for (Term& sink : w.sink)
    charge(sink, w.keys.empty() ? 0 : std::fabs(sink.logit - w.log.key_max));
  share_out(w);
  const double parts =
      w.split ? 1 + std::min(static_cast<double>(row.problem.num_splits), count) : 0;  // S9
  if (!w.keys.empty()) {                                                               // S6
    const auto span = static_cast<double>(w.keys.back().j - w.keys.front().j + 1);
    const auto products = static_cast<double>(w.keys.size());
    const double sums =
        sum_roundings(row.path, value_operand(row.path, row.problem.input), products, span);
    const double scaled = row.values.v_scales ? kCacheScaleRoundings : 0;
    // What is divided first is never brought to another reference.
    const double rescales = row.path.normalize_before_cast ? 0 : w.rescales;
    w.kappa_value = roundings(sums + rescales + parts + scaled);
  }
  w.kappa_sum = roundings(count + w.rescales + parts);  // S7
  if (row.path.row_sum_of_rounded_p) w.kappa_sum += lost_in_sum(row, w);
  return w;
}

/// What the columns of V hold, as far as one row sees them.
struct Column {
  double o = 0, mean_magnitude = 0, largest = 0, low = kInfinity, high = -kInfinity, total = 0;
  double deviation = 0;    // sum of pi Theta |v - o|
  double stretched = 0;    // sum of pi (1 + Theta) |v|
  double subnormal_p = 0;  // sum of the |v| that meet what is lost of subnormal weights
  double aligned = 0;      // what tensor cores see of `stretched` beyond it
  double raised = 0;       // and of one |v| at most
  double met = 0;          // by how much flushing may be multiplied
  bool finite = true;
};

std::vector<Column> columns_of(const Row& row, const Scores& scores, const Weights& w,
                               const Rows& v) {
  const double exponential = declared(row.path.exp_error, kFaithful);
  std::vector<Column> columns(static_cast<std::size_t>(row.problem.head_dim_v));
  for (Index j : scores.readable) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].total += std::fabs(v.row(j)[c]);
    }
  }
  for (const Term& key : w.keys) {
    const double stretch = key.share + key.theta_share;
    const double factor = v.scale_of(key.j);
    const double subnormal_part = subnormal_share(row, key, factor, w.theta_mean);
    const bool in_range = factor >= 1 / kCacheScaleMost && factor <= kCacheScaleMost &&
                          factor * w.log.swing * w.most * (1 + exponential) <
                              facts(row.path.p_format).max_finite;  // it may join the weight
    for (std::size_t c = 0; c < columns.size(); ++c) {
      Column& column = columns[c];
      const double value = v.row(key.j)[c], size = std::fabs(value);
      if (!in_range) column.total = kInfinity;
      column.o += key.share * value;
      column.stretched += stretch * size;
      const double seen = v.sizes_of(key.j)[c];
      column.aligned += stretch * (seen - size);
      column.raised = std::max(column.raised, seen - size);
      column.largest = std::max(column.largest, size);
      column.met = std::max(column.met, met_by_flushed(value, factor));
      column.low = std::min(column.low, value);
      column.high = std::max(column.high, value);
      column.subnormal_p += subnormal_part * seen;
    }
  }
  for (const Term& key : w.keys) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].deviation += key.theta_share * std::fabs(v.row(key.j)[c] - columns[c].o);
    }
  }
  for (const Term& sink : w.sink) {  // a key whose value is 0
    for (Column& column : columns) {
      column.deviation += sink.theta_share * std::fabs(column.o);
      column.low = std::min(column.low, 0.0);
      column.high = std::max(column.high, 0.0);
    }
  }
  return columns;
}

/// S5 and S6: what the cast of a subnormal weight, and its alignment by tensor cores, may lose.
double lost_of_subnormal_p(const Row& row, const Weights& w) {
  const Format format = row.path.p_format;
  const double cast = ulp(format, 0) / 2;
  const double aligning = row.path.tensor_step == 0 ? 0 : w.kappa_value * smallest_normal(format);
  return (cast + aligning) / w.unit;
}

/// One element of O, before it is rounded to the output format and after.
struct ElementBound {
  double before = kInfinity, after = kInfinity;
};

/// S5 to S8.
ElementBound bound_of(const Row& row, const Weights& w, const Column& column) {
  const double largest_sum = std::max(column.total, w.log.terms);  // of P V, of weights; or NaN
  if (!(largest_sum * w.log.swing * w.most < kOverflow)) return {};
  if (row.path.p_format != Format::f32 && w.log.swing > 2) return {};
  const Format output = row.problem.output;
  // S5. What the row sum has as well is in Theta, unless a scale made it another rounding.
  const bool shared =
      row.path.row_sum_of_rounded_p && !(row.path.v_scale_in_p && row.values.v_scales);
  const double rounding_p = shared                          ? 0
                            : row.path.row_sum_of_rounded_p ? (1 + w.cast) / (1 - w.cast) - 1
                                                            : w.cast;
  double deviation = column.high - column.low, mean = column.largest, size = column.largest;
  double sum = 1, extra = column.raised;
  if (w.small_theta()) {
    // Not used otherwise, and then perhaps no number: inf * 0.
    deviation = std::min(deviation, column.deviation / (1 - w.theta_mean));
    mean = std::min(mean, column.stretched / (1 - w.theta_mean));
    size = std::fabs(column.o);
    sum = w.sum;
    extra = std::min(extra, column.aligned / (1 - w.theta_mean));
  }
  const double division = declared(row.path.division_error, kDivision);  // S8, of parts S9
  const bool each = w.split || row.path.normalize_before_cast;  // share has a division of its own
  const double divisions = each ? (1 + w.log.merges) * std::log1p(division) : 0;
  const double numerator =
      std::expm1(std::log1p(rounding_p) + std::log1p(w.kappa_value) + divisions) * mean +
      (1 + rounding_p) * w.kappa_value * extra +
      kUnderflowRoom * w.log.swing * column.subnormal_p * lost_of_subnormal_p(row, w) /
          (row.path.normalize_before_cast ? 1 : sum);
  if (w.kappa_sum >= 0.5) return {};
  // S8. `apart` is more than what shares that are not divided by their sum bring.
  const double quotient = (each ? 1 : 1 + division) * (1 + w.apart) / (1 - w.kappa_sum) - 1;
  const double flushed = 4 * kFlush * w.log.swing * (w.split ? 2 : 1) *
                         (static_cast<double>(w.keys.size()) + w.rescales + 4) * (1 + column.met) *
                         met_in_units(row.path);
  const double before = deviation + numerator + (size + deviation + numerator) * quotient + flushed;
  const double reach = size + before * (1 + kEvaluation);
  const double limit = facts(output).max_finite;
  if (reach >= limit + ulp(output, limit) / 2) return {};
  const double cast = std::max(unit_roundoff(output) * reach, ulp(output, 0) / 2);
  return {promise(before * (1 + kEvaluation)), promise((before + cast) * (1 + kEvaluation))};
}

double lse_bound_of(const Row& row, const Weights& w) {
  if (w.kappa_sum >= 0.5) return kInfinity;
  const double in_weights = std::max(std::log1p(w.theta_mean), w.exponent_mean);
  return lse_radius(row, w.log, w.sum, in_weights - std::log1p(-w.kappa_sum));
}

}  // namespace

namespace bound {

RowBounds order_free_row(const Row& row, const Scores& scores, const Rows& v) {
  RowBounds bounds;
  const auto width = static_cast<std::size_t>(row.problem.head_dim_v);
  bounds.before.assign(width, scores.judged && scores.keys.empty() ? 0 : kInfinity);
  bounds.after = bounds.before;
  if (!scores.judged) return bounds;
  if (scores.keys.empty()) {
    bounds.lse = scores.sink.empty() ? 0.0 : lse_bound_of(row, weigh(row, scores));
    return bounds;
  }
  const Weights w = weigh(row, scores);
  const std::vector<Column> columns = columns_of(row, scores, w, v);
  for (std::size_t c = 0; c < width; ++c) {
    const ElementBound bound = bound_of(row, w, columns[c]);
    bounds.after[c] = bound.after;
    bounds.before[c] = bound.before;
  }
  bounds.lse = lse_bound_of(row, w);
  return bounds;
}

}  // namespace bound

Bounds order_free_bounds(const Problem& p, const Values& values, const PrecisionPath& path) {
  const std::size_t rows = row_count(p);
  const auto width = static_cast<std::size_t>(p.head_dim_v);
  const std::vector<double> unknown(rows * width, kInfinity);
  Bounds bounds{unknown, unknown, std::vector<double>(rows, kInfinity)};
  for_each_row(p, values, path,
               [&](const Row& row, const Rows& q, const Rows& k, const Rows& v, std::size_t at) {
                 const RowBounds one = order_free_row(row, scores_of(row, q, k), v);
                 const auto first = static_cast<std::ptrdiff_t>(at * width);
                 std::copy(one.after.begin(), one.after.end(), bounds.o.begin() + first);
                 std::copy(one.before.begin(), one.before.end(), bounds.o_before.begin() + first);
                 bounds.lse[at] = one.lse;
               });
  return bounds;
}

}  // namespace attest
