// The keys of a row and the states that gather them. README.md has the terms in this order.
#include "reference/statistics/row_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/formats.hpp"
#include "reference/operand_formats.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/statistics/order_of_work.hpp"
#include "reference/statistics/single_roundings.hpp"

namespace attest::statistics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void put(Lanes& lanes, std::size_t at, double number) {
  lanes.number[at] = number;
  lanes.last[at] = static_cast<float>(last_bit(number));
}

Lanes sized(std::size_t terms, std::size_t lanes, double least) {
  return {lanes, std::vector<double>(terms * lanes), std::vector<float>(terms * lanes), least};
}

struct State {
  State(std::size_t columns, std::size_t lanes) : values(columns), sums(lanes) {}

  double reference = -kInfinity;
  Chains values;             // P V
  std::vector<double> sums;  // l, in its lanes
  double sum_variance = 0;
};

class RowModel {
 public:
  RowModel(const Head& head, Place place)
      : head_(head),
        problem_(head.problem),
        path_(head.path),
        place_(place),
        width_(static_cast<std::size_t>(head.problem.head_dim_v)) {}

  bool see();  // false when there is nothing to model
  Gathered gather();

 private:
  void score();
  Key scored(Index j, double x, double mean, double variance) const;
  Key& key(Index j) { return row_.keys[number_[static_cast<std::size_t>(j)]]; }
  void meet(State& state, const Block& block);
  void raise(State& state, double reference);
  void weigh(State& state, Key& key, std::size_t lane) const;
  void add_values(State& state, const Block& block);
  Factor factor_of(const Key& key) const;
  double add_sink();
  void join(const std::vector<State>& states);
  double exponential(double distance) const;  // variance of an exponential and its argument

  const Head& head_;
  const Problem& problem_;
  const PrecisionPath& path_;
  Place place_;
  std::size_t width_;
  Gathered row_;
  std::vector<std::size_t> number_;  // of key j among those that are seen
};

bool RowModel::see() {
  const Values& values = head_.values;
  number_.assign(head_.v_scale.size(), 0);
  for (Index j = 0; j < key_length(problem_, place_.b); ++j) {
    if (!weighed(problem_, values, place_.b, place_.h, place_.i, j)) continue;
    number_[static_cast<std::size_t>(j)] = row_.keys.size();
    row_.keys.push_back({.j = j});
  }
  if (row_.keys.empty()) return false;
  score();
  double sum = 0;
  for (const Key& key : row_.keys) {
    sum += std::fabs(key.logit);
    const double* const v = head_.v_row(key.j);
    for (std::size_t c = 0; c < width_; ++c) sum += std::fabs(v[c]);
  }
  return std::isfinite(sum);
}

void RowModel::score() {
  std::vector<Key>& keys = row_.keys;
  const auto first = static_cast<std::size_t>(keys.front().j);
  const auto head_dim = static_cast<std::size_t>(problem_.head_dim);
  Chains chains(static_cast<std::size_t>(keys.back().j) + 1 - first);
  std::vector<Factor> factors;
  for (std::size_t c = 0; c < head_dim; ++c) {
    const double q = head_.values.q.at(place_.b, place_.h, place_.i, static_cast<Index>(c));
    const std::size_t at = c * head_.k.lanes + first;
    factors.push_back({q, last_bit(q), head_.k.number.data() + at, head_.k.last.data() + at});
  }
  if (!head_.scores) {
    for (const Factor& factor : factors) chains.add(factor);
  } else {
    const auto step = static_cast<std::size_t>(head_.scores->step);
    for (std::size_t c = 0; c < head_dim; c += step) {
      chains.step(std::span(factors).subspan(c, std::min(step, head_dim - c)), *head_.scores,
                  head_.q_least, head_.k.least);
    }
  }
  for (Key& key : keys) {
    const std::size_t lane = static_cast<std::size_t>(key.j) - first;
    key = scored(key.j, chains.sum[lane], chains.mean[lane], chains.variance[lane]);
  }
}

Key RowModel::scored(Index j, double x, double mean, double variance) const {
  const Values& values = head_.values;
  const double scale =
      static_cast<double>(problem_.softmax_scale) * head_.k_scale[static_cast<std::size_t>(j)];
  Key key{.j = j, .product = scale * x};
  key.logit = key.product;
  key.mean = scale * mean;
  key.variance = scale * scale * variance + rounding(key.logit);
  if (problem_.softcap > 0) {
    const double tanh = std::tanh(key.logit / problem_.softcap), slope = 1 - tanh * tanh;
    key.logit = problem_.softcap * tanh;
    key.product *= slope;
    key.mean *= slope;
    key.variance = key.variance * slope * slope + 2 * rounding(key.logit) +
                   declared_variance(path_.tanh_error) * key.logit * key.logit;
  }
  if (values.bias) {
    key.logit += values.bias->at(place_.b, place_.h, place_.i, j);
    key.variance += rounding(key.logit);
  }
  if (values.alibi_slopes) {
    const auto distance =
        static_cast<double>(std::abs(place_.i + diagonal(problem_, place_.b) - j));
    const double alibi = values.alibi_slopes->at(place_.h) * distance;
    key.logit -= alibi;
    key.variance += rounding(key.logit) + rounding(alibi);
  }
  return key;
}

double RowModel::exponential(double distance) const {
  return distance == 0 ? 0 : declared_variance(path_.exp_error) + rounding(distance);
}

void RowModel::raise(State& state, double reference) {
  const double rise = reference - state.reference;
  if (std::isfinite(rise)) {
    const double factor = std::exp(-rise);
    state.values.scale(factor);
    state.sum_variance *= factor * factor;
    double sum = 0;
    for (double& lane : state.sums) {
      lane *= factor;
      state.sum_variance += rounding(lane);
      sum += lane;
    }
    row_.shifts.push_back({reference, exponential(rise), sum, state.values.sum});
  }
  state.reference = reference;
}

/// The weight of a key in a state's reference, cast, and into a lane of the row sum.
void RowModel::weigh(State& state, Key& key, std::size_t lane) const {
  const double distance = state.reference - key.logit, weight = std::exp(-distance);
  const bool joins = path_.v_scale_in_p || head_.weighted;
  const double scale = head_.v_scale_of(key.j), shift = std::exp2(path_.p_scale_log2);
  const double shifted = weight * (joins ? scale : 1) * shift;
  const Format format = path_.p_format;
  key.variance += exponential(distance);
  key.exact = distance == 0;
  double cast = shifted;  // in f32 it already was
  if (format != Format::f32) {
    cast = rounded(format, std::min(shifted, facts(format).max_finite));
    if (cast == 0) {
      key.cast_mean = -1;
    } else if (key.exact) {  // a scale, rounded the same way in every row
      key.cast_mean = cast / shifted - 1;
    } else if (cast != shifted) {
      key.cast_variance = rounding(format, shifted) / (shifted * shifted);
    }
  }
  key.cast_in_sum = path_.row_sum_of_rounded_p && shifted == weight * shift;
  if (path_.row_sum_of_rounded_p && !key.cast_in_sum && !key.exact && format != Format::f32) {
    key.sum_cast_variance = rounding(format, weight * shift) / (weight * weight * shift * shift);
  }
  key.weight = shifted;
  key.ulp = ulp(format, shifted);
  key.cast = cast / shift * (joins ? 1 : scale);
  double& sum = state.sums[lane];
  sum += weight;
  if (sum != weight) state.sum_variance += rounding(Format::f32, sum);
}

Factor RowModel::factor_of(const Key& key) const {
  const bool whole = path_.p_format != Format::f32 || key.cast == 1;
  const std::size_t at = static_cast<std::size_t>(key.j) * width_;
  return {key.cast, whole ? last_bit(key.cast) : binade(key.cast) * 2 * bound::kU,
          head_.v.number.data() + at, head_.v.last.data() + at};
}

void RowModel::add_values(State& state, const Block& block) {
  const Index step = head_.weighted ? head_.weighted->step : 1;
  std::vector<Factor> factors;
  for (std::size_t n = 0; n < block.keys.size(); ++n) {
    factors.push_back(factor_of(key(block.keys[n])));
    const auto group = [&](std::size_t of) { return (block.keys[of] - block.first) / step; };
    if (n + 1 < block.keys.size() && group(n) == group(n + 1)) continue;
    if (head_.weighted) {
      state.values.step(factors, *head_.weighted, head_.p_least, head_.v.least);
    } else {
      state.values.add(factors[0]);
    }
    factors.clear();
  }
}

void RowModel::meet(State& state, const Block& block) {
  double top = -kInfinity;
  for (Index j : block.keys) top = std::max(top, key(j).logit);
  const bool lazily = (top - state.reference) / std::numbers::ln2 <= path_.rescale_threshold_log2;
  if (top > state.reference && !lazily) raise(state, top);
  for (Index j : block.keys) {
    weigh(state, key(j), static_cast<std::size_t>(j - block.first) % state.sums.size());
  }
  add_values(state, block);
}

Gathered RowModel::gather() {
  std::vector<Index> seen;
  for (const Key& key : row_.keys) seen.push_back(key.j);
  const auto lanes = static_cast<std::size_t>(std::max<Index>(1, path_.partial_row_sums));
  std::vector<State> states;
  for (const Blocks& blocks :
       order_of_work(path_, problem_.num_splits, key_length(problem_, place_.b), seen)) {
    State state(width_, lanes);
    for (const Block& block : blocks) meet(state, block);
    states.push_back(std::move(state));
  }
  join(states);
  for (Key& key : row_.keys) key.share = std::exp(key.logit - row_.reference) / row_.sum;
  return std::move(row_);
}

/// A key without a value; its weight.
double RowModel::add_sink() {
  if (!head_.values.sinks || head_.values.sinks->at(place_.h) == -kInfinity) return 0;
  const double logit = head_.values.sinks->at(place_.h);
  row_.reference = std::max(row_.reference, logit);
  const double weight = std::exp(logit - row_.reference);
  const double variance = rounding(logit) + exponential(row_.reference - logit);
  row_.shifts.push_back({row_.reference, variance, weight, std::vector<double>(width_)});
  return weight;
}

/// States, or one, brought to the last reference and added.
void RowModel::join(const std::vector<State>& states) {
  row_.reference = -kInfinity;
  for (const State& state : states) row_.reference = std::max(row_.reference, state.reference);
  double total = add_sink(), variance = 0;
  Chains all(width_);
  for (const State& state : states) {
    double sum = 0, sum_variance = state.sum_variance;
    for (double lane : state.sums) {
      sum += lane;
      if (sum != lane) sum_variance += rounding(sum);
    }
    double common = exponential(row_.reference - state.reference);
    if (problem_.num_splits > 1) {  // by their LSE
      const double lse = state.reference + std::log(sum);
      common += 2 * rounding(lse) + path_.log_error * path_.log_error;
    }
    if (common > 0) row_.shifts.push_back({state.reference, common, sum, state.values.sum});
    const double factor = std::exp(state.reference - row_.reference), square = factor * factor;
    for (std::size_t c = 0; c < width_; ++c) {
      all.sum[c] += factor * state.values.sum[c];
      all.mean[c] += factor * state.values.mean[c];
      all.variance[c] +=
          square * state.values.variance[c] + (states.size() > 1 ? rounding(all.sum[c]) : 0);
    }
    total += factor * sum;
    variance += square * sum_variance + (total != factor * sum ? rounding(total) : 0);
  }
  row_.sum = total;
  row_.sum_variance = variance / (total * total);
  row_.values_mean = std::move(all.mean);
  row_.values_variance = std::move(all.variance);
  for (double& mean : row_.values_mean) mean /= total;
  for (double& one : row_.values_variance) one /= total * total;
}

}  // namespace

Head::Head(const Problem& p, const Values& all, const PrecisionPath& declared, Index b,
           Index kv_head, Index tensor_step)
    : problem(p), values(all), path(declared) {
  const Format cache = cache_format(p), weights = path.p_format;
  if (path.tensor_step != 0) {
    const Index step = tensor_step != 0 ? tensor_step : path.tensor_step;
    scores = tensor_core(step, q_operand(p), k_operand(p));
    weighted = tensor_core(step, weights, cache);
  }
  q_least = smallest_normal(q_operand(p));
  p_least = smallest_normal(p_operand(p, path));
  const Index count = key_length(p, b);
  k = sized(static_cast<std::size_t>(p.head_dim), static_cast<std::size_t>(count),
            smallest_normal(k_operand(p)));
  v = sized(static_cast<std::size_t>(count), static_cast<std::size_t>(p.head_dim_v),
            smallest_normal(v_operand(p, path)));
  for (Index j = 0; j < count; ++j) {
    k_scale.push_back(scale_at(values.k_scales, b, kv_head, j));
    v_scale.push_back(scale_at(values.v_scales, b, kv_head, j));
    for (Index c = 0; c < p.head_dim; ++c) {
      put(k, static_cast<std::size_t>(c * count + j), values.k.at(b, kv_head, j, c));
    }
    for (Index c = 0; c < p.head_dim_v; ++c) {
      put(v, static_cast<std::size_t>(j * p.head_dim_v + c), values.v.at(b, kv_head, j, c));
    }
  }
}

std::optional<Gathered> gather(const Head& head, Place place) {
  RowModel row(head, place);
  if (!row.see()) return {};
  return row.gather();
}

}  // namespace attest::statistics
