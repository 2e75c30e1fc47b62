// One row through its parts, states and blocks: P, the row sum, P V, and how they end.
#include "reference/model/row.hpp"

#include <algorithm>
#include <utility>

#include "reference/oracle/exact.hpp"

namespace attest::model {
namespace {

double cast(const Plan& plan, double weight) {
  const Format format = plan.path.p_format;
  if (plan.exact(Stage::p_cast) || format == Format::f32) return weight;
  if (plan.has(Defect::p_truncated)) return truncated(format, weight);
  return decode(format, encode_saturating(format, weight));
}

class RowModel {
 public:
  RowModel(const Plan& plan, const Head& head, Index h, Index i)
      : plan_(plan),
        head_(head),
        row_(static_cast<Index>(row_number(plan.problem, head.b, h, i))),
        z_(logits_of(plan, head, h, i)) {
    for (Index j = 0; j < head.keys; ++j) {
      if (z(j) != -kInfinity) seen_.push_back(j);
    }
    end_ = key_length(plan.problem, head.b);
    if (!seen_.empty()) end_ = std::max(end_, seen_.back() + 1);
    p_.resize(static_cast<std::size_t>(head.keys));
    sink_ = plan.values.sinks ? plan.values.sinks->at(h) : -kInfinity;
  }

  Row run() {
    if (seen_.empty()) return empty();
    const Index part = part_size();
    if (part >= end_) {
      State all = attended(0, end_);
      return plan_.path.normalize_before_cast ? finish_divided(std::move(all))
                                              : finish(std::move(all));
    }
    std::vector<State> parts;
    for (Index first = 0; first < end_; first += part) {
      State state = attended(first, std::min(first + part, end_));
      if (state.m != -kInfinity) parts.push_back(std::move(state));
    }
    return finish(plan_.model.freedom.parts_by_lse ? joined_by_lse(parts) : joined(parts));
  }

 private:
  double z(Index j) const { return z_[static_cast<std::size_t>(j)]; }
  double share(Index j) const {
    return plan_.model.freedom.exp_share ? plan_.model.freedom.exp_share(row_, j) : 0;
  }

  Row empty() const {
    const bool nan = plan_.problem.empty_row == EmptyRow::nan;
    const double fill = nan ? std::numeric_limits<double>::quiet_NaN() : 0;
    const double lse = plan_.values.sinks ? sink_ : lse_without_keys(plan_.problem);
    Row row{std::vector<double>(static_cast<std::size_t>(plan_.problem.head_dim_v), fill), lse};
    if (plan_.problem.lse_base == LogBase::two) row.lse = plan_.division(row.lse * kLog2e);
    return row;
  }

  Index part_size() const {
    const Index length = key_length(plan_.problem, head_.b);
    if (plan_.problem.num_splits <= 1 || length == 0) return end_;
    const Index even = (length + plan_.problem.num_splits - 1) / plan_.problem.num_splits;
    if (plan_.path.split_size > 0) return plan_.path.split_size;
    if (plan_.path.split_size != kPowerOfTwoSplits) return even;
    Index power = 1;
    while (power < even) power *= 2;
    return power;
  }

  /// A part's blocks, dealt to its states in the declared order.
  State attended(Index first, Index last) {
    const PrecisionPath& path = plan_.path;
    const Index block = path.kv_block > 0           ? path.kv_block
                        : path.keys_per_rescale > 1 ? path.keys_per_rescale
                                                    : end_;
    const Index count = (last - first + block - 1) / block;
    std::vector<State> states(
        static_cast<std::size_t>(std::max<Index>(1, path.interleaved_accumulators)));
    for (State& state : states) {
      state = plan_.no_keys();
      state.lanes.assign(static_cast<std::size_t>(std::max<Index>(1, path.partial_row_sums)), 0.0);
    }
    for (Index turn = 0; turn < count; ++turn) {
      const Index number = path.kv_blocks_descending ? count - 1 - turn : turn;
      const Index start = first + number * block;
      add_block(states[static_cast<std::size_t>(turn) % states.size()], start,
                std::min(start + block, last));
    }
    for (State& state : states) add_lanes(state);
    std::erase_if(states, [](const State& state) { return state.m == -kInfinity; });
    return states.empty() ? plan_.no_keys() : joined(states);
  }

  void add_lanes(State& state) const {
    std::vector<double>& lanes = state.lanes;
    for (std::size_t width = lanes.size(); width > 1; width = (width + 1) / 2) {
      for (std::size_t n = 0; n < width / 2; ++n) {
        lanes[n] = plan_.row_sum(lanes[n] + lanes[(width + 1) / 2 + n]);
      }
    }
    state.l = lanes[0];
  }

  void add_block(State& state, Index first, Index last) {
    const double largest = *std::max_element(z_.begin() + first, z_.begin() + last);
    if (largest == -kInfinity) return;
    const double before = state.m;
    if (rises(before, largest)) state.m = std::max(before, largest);
    if (before != -kInfinity && state.m != before) {
      rescale(state, difference_power(plan_, before, state.m, 0));
    }
    for (Index j = first; j < last; ++j) {
      if (z(j) == -kInfinity) continue;
      const double weight = weight_of(plan_, z(j), state.m, share(j));
      const double factor = plan_.scaled_p ? head_.v_scale[static_cast<std::size_t>(j)] : 1;
      const double p = cast(plan_, factor == 1 ? weight : plan_.exponential(weight * factor));
      p_.set(static_cast<std::size_t>(j), p, plan_.p_format);
      if (plan_.has(Defect::sum_misses_key) && seen_.size() > 1 && j == seen_[seen_.size() / 2]) {
        continue;
      }
      const bool row_sum_of_rounded_p =
          plan_.path.row_sum_of_rounded_p || plan_.has(Defect::sum_from_cast);
      double& lane = state.lanes[static_cast<std::size_t>(j - first) % state.lanes.size()];
      lane = plan_.row_sum(lane + (row_sum_of_rounded_p ? cast(plan_, weight) : weight));
    }
    add_values(state, first, last);
  }

  bool rises(double before, double largest) const {
    if (before == -kInfinity || plan_.path.rescale_threshold_log2 == 0) return true;
    const Rounding& f32 = plan_.exponential;
    return f32(f32(largest - before) * plan_.bits) > plan_.path.rescale_threshold_log2;
  }

  void rescale(State& state, double factor) {
    for (double& lane : state.lanes) lane = plan_.row_sum(lane * factor);
    if (plan_.has(Defect::rescale_missing) && !std::exchange(missed_, true)) return;
    for (double& acc : state.acc) acc = plan_.pv(acc * factor);
  }

  /// acc + P V over the keys of a block, in rising order.
  /// Shares, divided by the whole sum and cast, times values; O is not divided again.
  Row finish_divided(State all) {
    all = with_sink(std::move(all));
    const double inverse = inverse_of(all.l);
    for (Index j = 0; j < end_; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (z(j) == -kInfinity) continue;
      const double share = plan_.division(weight_of(plan_, z(j), all.m, this->share(j)) * inverse *
                                          std::exp2(-all.shift));
      const double factor = plan_.scaled_p ? head_.v_scale[at] : 1;
      const double p = factor == 1 ? share : plan_.exponential(share * factor);
      p_.set(at, cast(plan_, p), plan_.p_format);
    }
    std::fill(all.acc.begin(), all.acc.end(), 0.0);
    add_values(all, 0, end_);
    const double scale = plan_.scaled_o ? head_.v_scale[0] : 1;
    Row row;
    for (double acc : all.acc) row.o.push_back(output(plan_.division(acc * scale)));
    return with_lse(all, std::move(row));
  }

  void add_values(State& state, Index first, Index last) const {
    const auto start = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(last - first);
    for (std::size_t c = 0; c < state.acc.size(); ++c) {
      const std::size_t column = c * static_cast<std::size_t>(head_.keys);
      double& acc = state.acc[c];
      if (plan_.path.tensor_step != 0 && !plan_.pv.exact) {
        acc = tensor_sum(plan_.value_core, acc, p_, start, head_.v, column + start, count);
        continue;
      }
      for (Index j = first; j < last; ++j) {
        if (z(j) == -kInfinity) continue;
        const auto n = static_cast<std::size_t>(j);
        acc = plan_.pv.fused(p_.value[n], head_.v.value[column + n], acc);
      }
    }
  }

  /// States brought to their largest reference and added, in order.
  State joined(const std::vector<State>& states) const {
    if (states.size() == 1) return states[0];
    State all = plan_.no_keys();
    for (const State& state : states) all.m = std::max(all.m, state.m);
    for (const State& state : states) {
      const double factor =
          state.m == all.m ? 1 : difference_power(plan_, state.m, all.m, share(0));
      all.l = plan_.row_sum.fused(state.l, factor, all.l);
      for (std::size_t c = 0; c < all.acc.size(); ++c) {
        all.acc[c] = plan_.pv.fused(state.acc[c], factor, all.acc[c]);
      }
    }
    return all;
  }

  double log_sum(const State& state) const {
    const Rounding& f32 = plan_.division;
    const double log = f32(std::log(state.l * std::exp2(-state.shift)));
    return f32(f32(state.m * state.nats) + log);
  }

  /// Parts as O and its LSE, as they are when another kernel combines them.
  State joined_by_lse(const std::vector<State>& parts) const {
    State all = plan_.no_keys();
    all.bits = kLog2e;
    all.nats = 1;
    all.shift = 0;
    for (const State& part : parts) all.m = std::max(all.m, log_sum(part));
    for (const State& part : parts) {
      const Rounding& f32 = plan_.exponential;
      const double factor = f32(std::exp(f32(log_sum(part) - all.m)));
      const double inverse = inverse_of(part.l);
      all.l = plan_.row_sum(all.l + factor);
      for (std::size_t c = 0; c < all.acc.size(); ++c) {
        const double o = plan_.division(part.acc[c] * inverse);
        all.acc[c] = plan_.pv.fused(o, factor, all.acc[c]);
      }
    }
    return all;
  }

  double inverse_of(double l) const {
    if (plan_.row_sum.exact) return 1 / l;
    // Two more roundings, of the reciprocal and of the product, are part of what is declared.
    const double error = std::max(0.0, plan_.path.division_error - 0x1p-23);
    return static_cast<double>(
        static_cast<float>(1 / l * (1 + plan_.model.freedom.division_share * error)));
  }

  /// A sink joins the denominator here, like a key with its own logit and no value.
  State with_sink(State all) const {
    if (sink_ != -kInfinity) {
      const Rounding& f32 = plan_.exponential;
      const double joint = std::max(all.m, sink_);
      const auto toward = [&](double z) { return f32(std::exp2(f32(f32(z - joint) * all.bits))); };
      const double factor = toward(all.m);
      all.l = plan_.row_sum.fused(all.l, factor, f32(toward(sink_) * std::exp2(all.shift)));
      for (double& acc : all.acc) acc = plan_.pv(acc * factor);
      all.m = joint;
    }
    return all;
  }

  Row finish(State all) const {
    all = with_sink(std::move(all));
    Row row;
    double inverse = inverse_of(all.l);
    if (plan_.scaled_o) inverse = plan_.division(inverse * head_.v_scale[0]);
    for (double acc : all.acc) row.o.push_back(output(plan_.division(acc * inverse)));
    return with_lse(all, std::move(row));
  }

  Row with_lse(const State& all, Row row) const {
    row.lse = log_sum(all);
    if (plan_.problem.lse_base == LogBase::two) row.lse = plan_.division(row.lse * kLog2e);
    return row;
  }

  double output(double o) const {
    if (plan_.exact(Stage::output_cast)) return o;
    const Format format = plan_.problem.output;
    return plan_.has(Defect::output_truncated) ? truncated(format, o) : rounded(format, o);
  }

  const Plan& plan_;
  const Head& head_;
  Index row_;
  std::vector<double> z_;
  std::vector<Index> seen_;
  Index end_ = 0;
  Operands p_;
  double sink_ = -kInfinity;
  bool missed_ = false;  // Defect::rescale_missing has happened
};

}  // namespace

Row attend(const Plan& plan, const Head& head, Index h, Index i) {
  return RowModel(plan, head, h, i).run();
}

}  // namespace attest::model
