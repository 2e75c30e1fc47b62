// Attention in f32, one row at a time. See the header for what it is for.
#include "reference/bound/testing/simulated_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/testing/flush_to_zero.hpp"
#include "reference/bound/testing/simulated_logits.hpp"
#include "reference/bound/testing/simulated_sums.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Running state of one row over some keys, in the unit of its logits.
struct Partial {
  float m = -kInfinity, l = 0;
  std::vector<float> acc;
};

class RowKernel {
 public:
  RowKernel(const Problem& p, const Values& values, const Recipe& recipe, Index b, Index h, Index i)
      : p_(p),
        values_(values),
        recipe_(recipe),
        b_(b),
        h_(h),
        i_(i),
        z_(p, values, recipe, b, h, i) {}

  void run(Tensor& o, Tensor& lse) {
    std::vector<Index> keys;
    for (Index j = 0; j < key_length(p_, b_); ++j) {
      if (sees(j)) keys.push_back(j);
    }
    apply_mistake(keys);
    const bool divides_first = recipe_.normalize_before_cast && !keys.empty();
    const Partial all = recipe_.num_splits > 1 ? combined(keys)
                        : divides_first        ? normalized(keys)
                                               : attended(keys, 0);
    finish(all, keys.empty(), o, lse);
  }

 private:
  bool sees(Index j) const { return weighed(p_, values_, b_, h_, i_, j); }

  void apply_mistake(std::vector<Index>& keys) const {
    if (recipe_.mistake == Mistake::drops_key && keys.size() > 1) keys.pop_back();
    if (recipe_.mistake != Mistake::leaks_key) return;
    for (Index j = 0; j < key_length(p_, b_); ++j) {
      if (!sees(j)) {
        keys.push_back(j);
        return;
      }
    }
  }

  /// Under the reference minus `shift`, a power of two.
  float weight(float logit, float reference, Index number, float shift = 0) const {
    float power = 0;
    if (z_.raw) {
      const float shifted = reference * z_.factor - shift;
      power = std::exp2(recipe_.fma ? std::fma(logit, z_.factor, -shifted)
                                    : logit * z_.factor - shifted);
    } else if (z_.two) {
      power = std::exp2(logit - (reference - shift));
    } else if (recipe_.exponential == Exponential::natural) {
      power = std::exp(logit - (reference - shift * kLn2F32));
    } else {
      power = std::exp2((logit - reference) * kLog2eF32 + shift);
    }
    return wobbling(power, recipe_.exp_error, number);
  }

  /// Off by a relative error, up for even numbers and down for odd ones.
  float wobbling(float right, double error, Index number) const {
    const double sign = recipe_.one_sign || number % 2 == 0 ? 1 : -1;
    return right + right * static_cast<float>(error * sign);
  }

  float divided(float numerator, float sum, Index number = 0) const {
    const float quotient = recipe_.reciprocal ? numerator * (1.0F / sum) : numerator / sum;
    return wobbling(quotient, recipe_.division_error, number);
  }

  float logarithm(float sum, Index number) const {
    const float right = std::log(sum), size = std::max(1.0F, std::fabs(right));
    return right + (wobbling(size, recipe_.log_error, number) - size);
  }

  float rescale(float before, float after) const {
    if (before == -kInfinity) return 0;
    if (before == after) return 1;
    if (!z_.raw) return weight(before, after, 0);
    return recipe_.fused_rescale ? std::exp2(std::fma(before, z_.factor, -(after * z_.factor)))
                                 : std::exp2((before - after) * z_.factor);
  }

  /// All streams of a part that begins at key `first`.
  Partial attended(const std::vector<Index>& keys, Index first) const {
    std::vector<Partial> states;
    for (const auto& blocks : dealt(recipe_, keys, first)) {
      Partial state;
      state.acc.assign(static_cast<std::size_t>(p_.head_dim_v), 0.0F);
      if (recipe_.sink_first && values_.sinks && states.empty() && !sink_joined_) {
        state.m = z_.sink() * (z_.two ? kLog2eF32 : 1.0F);
        state.l = static_cast<float>(std::exp2(recipe_.p_scale_log2));
        sink_joined_ = true;
      }
      std::vector<float> lanes(static_cast<std::size_t>(recipe_.partial_row_sums), 0.0F);
      lanes[0] = state.l;
      for (const auto& block : blocks) visit(block, first, state, lanes);
      if (recipe_.sums_first) lanes = {summed_first(blocks)};
      state.l = sum_of(lanes, recipe_.pairwise);
      states.push_back(state);
    }
    return states.size() == 1 ? states[0] : together(states, false);
  }

  /// The row sum by itself: key by key, under a maximum of its own.
  float summed_first(const std::vector<std::vector<Index>>& blocks) const {
    float m = -kInfinity, sum = 0;
    for (const auto& block : blocks) {
      for (Index j : block) {
        const float z = z_.logit(j), larger = std::max(m, z);
        sum = sum * rescale(m, larger) + weight(z, larger, z == larger ? j : j + 1);
        m = larger;
      }
    }
    return sum;
  }

  bool rises(float before, float after) const {
    if (recipe_.rescale_threshold_log2 == 0 || before == -kInfinity) return true;
    const float bits = z_.raw ? z_.factor : z_.two ? 1.0F : kLog2eF32;
    return (after - before) * bits > static_cast<float>(recipe_.rescale_threshold_log2);
  }

  void visit(const std::vector<Index>& keys, Index first, Partial& state,
             std::vector<float>& lanes) const {
    std::vector<float> logits;
    for (Index j : keys) logits.push_back(z_.logit(j));
    const float largest = std::max(state.m, *std::max_element(logits.begin(), logits.end()));
    const float m = rises(state.m, largest) ? largest : state.m;
    const float alpha = recipe_.mistake == Mistake::no_rescale ? 1.0F : rescale(state.m, m);
    state.m = m;
    const auto log_shift = static_cast<float>(recipe_.shifts_reference ? recipe_.p_scale_log2 : 0);
    const auto shift =
        static_cast<float>(recipe_.shifts_reference ? 1 : std::exp2(recipe_.p_scale_log2));
    std::vector<float> cast, in_sum;
    const Index kv_head = h_ / (p_.num_heads_q / p_.num_heads_kv);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const float p = weight(logits[n], m, keys[n], log_shift) * shift;
      const float p_scaled = joins() ? p * z_.factor_of(values_.v_scales, kv_head, keys[n]) : p;
      cast.push_back(static_cast<float>(rounded(recipe_.p_format, static_cast<double>(p_scaled))));
      in_sum.push_back(recipe_.row_sum_of_rounded_p
                           ? static_cast<float>(rounded(recipe_.p_format, static_cast<double>(p)))
                           : p);
    }
    if (lanes.size() == 1) {
      lanes[0] = z_.multiply_add(lanes[0], alpha, sum_of(in_sum, recipe_.pairwise));
    } else {
      for (float& lane : lanes) lane *= alpha;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        lanes[static_cast<std::size_t>((keys[n] - first) % recipe_.partial_row_sums)] += in_sum[n];
      }
    }
    const Index block_first = first + (keys[0] - first) / recipe_.kv_block * recipe_.kv_block;
    for (std::size_t c = 0; c < state.acc.size(); ++c) {
      state.acc[c] = add_values(keys, block_first, cast, c, state.acc[c] * alpha);
    }
  }

  bool joins() const { return recipe_.scales_weights || recipe_.tensor_step != 0; }

  /// sum + P V of one column and block.
  float add_values(const std::vector<Index>& keys, Index first, const std::vector<float>& cast,
                   std::size_t c, float sum) const {
    const Index kv_head = h_ / (p_.num_heads_q / p_.num_heads_kv);
    std::vector<float> products, p, column;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const std::size_t at = recipe_.reverse ? keys.size() - 1 - n : n;
      auto v = static_cast<float>(values_.v.at(b_, kv_head, keys[at], static_cast<Index>(c)));
      if (!joins() && !z_.late_v) v *= z_.factor_of(values_.v_scales, kv_head, keys[at]);
      const auto place = static_cast<std::size_t>(keys[at] - first);
      if (recipe_.tensor_step != 0 && !recipe_.reverse) {  // hidden keys leave their places empty
        p.resize(place, 0.0F);
        column.resize(place, 0.0F);
      }
      p.push_back(cast[at]);
      column.push_back(v);
      products.push_back(cast[at] * v);
    }
    if (recipe_.tensor_step != 0) {
      return tensor_sum(sum, p, column, recipe_.p_format, p_.input, recipe_.tensor_step);
    }
    if (recipe_.pairwise) return sum + sum_of(products, true);
    float chain = recipe_.apart ? 0.0F : sum;
    for (std::size_t n = 0; n < p.size(); ++n) chain = z_.multiply_add(p[n], column[n], chain);
    return recipe_.apart ? sum + chain : chain;
  }

  /// The maximum and the row sum first, then P V of shares that are cast; O is not divided.
  Partial normalized(const std::vector<Index>& keys) const {
    Partial all = attended(keys, 0);
    if (values_.sinks && !sink_joined_) {
      const float sink = z_.sink() * (z_.two ? kLog2eF32 : 1.0F), joint = std::max(all.m, sink);
      all.l = all.l * rescale(all.m, joint) + weight(sink, joint, 1);
      all.m = joint;
      sink_joined_ = true;
    }
    std::vector<float> cast;
    const Index kv_head = h_ / (p_.num_heads_q / p_.num_heads_kv);
    for (Index j : keys) {
      const float share = divided(weight(z_.logit(j), all.m, j), all.l, j);
      const float p = joins() ? share * z_.factor_of(values_.v_scales, kv_head, j) : share;
      cast.push_back(static_cast<float>(rounded(recipe_.p_format, static_cast<double>(p))));
    }
    for (std::size_t c = 0; c < all.acc.size(); ++c) {
      all.acc[c] = add_values(keys, 0, cast, c, 0);
    }
    return all;
  }

  float reference_in_nats(float m) const {
    if (z_.raw) return m * z_.scale;
    return z_.two ? m * kLn2F32 : m;
  }

  /// Keys of each part, and where it begins.
  std::vector<std::pair<Index, std::vector<Index>>> parts_of(const std::vector<Index>& keys) const {
    std::vector<std::pair<Index, std::vector<Index>>> parts;
    const Index even = (key_length(p_, b_) + recipe_.num_splits - 1) / recipe_.num_splits;
    Index size = recipe_.split_size == kEvenSplits ? even : recipe_.split_size;
    if (recipe_.split_size == kPowerOfTwoSplits) {
      for (size = 1; size < even;) size *= 2;
    }
    const auto count = static_cast<Index>(keys.size());
    for (Index n = 0, part = 0; n < count; ++n) {
      const Index j = keys[static_cast<std::size_t>(n)];
      while (size == 0 && n >= (part + 1) * count / recipe_.num_splits) ++part;
      const Index number = size == 0 ? part : j / size;
      const Index first = size == 0 ? j : number * size;
      if (parts.empty() || last_number_ != number) parts.push_back({first, {}});
      parts.back().second.push_back(j);
      last_number_ = number;
    }
    return parts;
  }

  /// Splits, brought together either as (m, l, acc) or as normalised O with its LSE.
  Partial combined(const std::vector<Index>& keys) const {
    std::vector<Partial> parts;
    for (const auto& [first, mine] : parts_of(keys)) {
      Partial part = attended(mine, first);
      if (recipe_.combine_by_lse) {
        const auto number = static_cast<Index>(parts.size());
        for (float& acc : part.acc) acc = divided(acc, part.l, number);
        part.m = reference_in_nats(part.m) + logarithm(part.l, number) - shift_in_nats();
        part.l = 1;
      }
      parts.push_back(part);
    }
    in_nats_ = recipe_.combine_by_lse;
    return together(parts, in_nats_);
  }

  float shift_in_nats() const { return static_cast<float>(recipe_.p_scale_log2) * kLn2F32; }

  /// Of an LSE beside the largest.
  float share(float lse, float largest) const {
    return lse == largest ? 1.0F : wobbling(std::exp(lse - largest), recipe_.exp_error, 0);
  }

  /// Of an LSE in that of all, by another exponential than those in the latter: off the other way.
  float undivided(float lse, float all) const {
    return wobbling(std::exp(lse - all), -recipe_.exp_error, 0);
  }

  /// Two parts as normalised O with its LSE, and both as one.
  Partial merged(const Partial& one, const Partial& other) const {
    const float m = std::max(one.m, other.m);
    const float a = share(one.m, m), b = share(other.m, m);
    Partial both{.m = m + logarithm(a + b, 0), .l = 1, .acc = one.acc};
    for (std::size_t c = 0; c < both.acc.size(); ++c) {
      both.acc[c] = recipe_.undivided_shares
                        ? z_.multiply_add(one.acc[c], undivided(one.m, both.m),
                                          other.acc[c] * undivided(other.m, both.m))
                        : z_.multiply_add(one.acc[c], a, other.acc[c] * b) / (a + b);
    }
    return both;
  }

  Partial one_by_one(const std::vector<Partial>& parts, bool in_nats) const {
    Partial all = parts.at(0);
    for (std::size_t n = 1; n < parts.size(); ++n) {
      all = in_nats ? merged(all, parts[n]) : together({all, parts[n]}, false);
    }
    return all;
  }

  /// Sums under their largest reference.
  Partial together(const std::vector<Partial>& parts, bool in_nats) const {
    if (recipe_.one_by_one && (parts.size() > 2 || in_nats) && !parts.empty()) {
      return one_by_one(parts, in_nats);
    }
    Partial all;
    all.acc.assign(static_cast<std::size_t>(p_.head_dim_v), 0.0F);
    for (const Partial& part : parts) all.m = std::max(all.m, part.m);
    for (const Partial& part : parts) {
      const float factor = in_nats ? share(part.m, all.m) : rescale(part.m, all.m);
      all.l = z_.multiply_add(part.l, factor, all.l);
      for (std::size_t c = 0; c < all.acc.size(); ++c) {
        all.acc[c] = z_.multiply_add(part.acc[c], factor, all.acc[c]);
      }
    }
    if (in_nats && recipe_.undivided_shares && !parts.empty()) {
      const float lse = all.m + logarithm(all.l, 0);
      all = {.m = lse, .l = 1, .acc = std::vector<float>(all.acc.size(), 0.0F)};
      for (const Partial& part : parts) {
        const float factor = undivided(part.m, lse);
        for (std::size_t c = 0; c < all.acc.size(); ++c) {
          all.acc[c] = z_.multiply_add(part.acc[c], factor, all.acc[c]);
        }
      }
    }
    return all;
  }

  void finish(Partial all, bool empty, Tensor& o, Tensor& lse) {
    float m = all.m;
    const auto shift = in_nats_ ? 1.0F : static_cast<float>(std::exp2(recipe_.p_scale_log2));
    if (values_.sinks && !sink_joined_) {
      float sink = z_.sink();
      if (z_.two && !in_nats_) sink *= kLog2eF32;
      const float joint = std::max(m, sink);
      const auto power = [&](float x) {
        return z_.two && !in_nats_ ? std::exp2(x - joint) : std::exp(x - joint);
      };
      const float factor = m == joint ? 1.0F : wobbling(power(m), recipe_.exp_error, 0);
      all.l = all.l * factor + wobbling(power(sink), recipe_.exp_error, 1) * shift;
      for (float& acc : all.acc) acc *= factor;
      m = joint;
    }
    for (std::size_t c = 0; c < all.acc.size(); ++c) {
      const bool done = recipe_.normalize_before_cast && recipe_.num_splits == 1;
      float out = done ? all.acc[c] : divided(all.acc[c], all.l);
      if (z_.late_v) out *= *z_.late_v;
      if (empty) out = p_.empty_row == EmptyRow::nan ? std::nanf("") : 0.0F;
      o.set(b_, h_, i_, static_cast<Index>(c), static_cast<double>(out));
    }
    float sum = all.l == 0 ? static_cast<float>(lse_without_keys(p_))
                : in_nats_ ? m
                           : reference_in_nats(m);
    if (all.l != 0 && !(in_nats_ && all.l == 1)) sum += logarithm(all.l, 0);  // an LSE already
    if (!in_nats_) sum -= shift_in_nats();
    sum -= z_.moved;
    if (p_.lse_base == LogBase::two) sum *= kLog2eF32;
    lse.set(b_, h_, i_, 0, static_cast<double>(sum));
  }

  const Problem& p_;
  const Values& values_;
  const Recipe& recipe_;
  Index b_, h_, i_;
  const SimulatedLogits z_;
  mutable Index last_number_ = 0;
  mutable bool in_nats_ = false, sink_joined_ = false;
};

}  // namespace

Simulated simulate(const Problem& p, const Values& values, const Recipe& recipe) {
  Simulated result{Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}),
                   Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1})};
  const FlushToZero flush(recipe.flush);
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < query_length(p, b); ++i) {
        RowKernel(p, values, recipe, b, h, i).run(result.o, result.lse);
      }
    }
  }
  return result;
}

}  // namespace attest
