// Attention in f32, one row at a time. See the header for what it is for.
#include "reference/bound/simulated_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reference/bound/flush_to_zero.hpp"
#include "reference/bound/simulated_sums.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

constexpr float kLog2e = 0x1.715476p0F;  // fl(log2 e)
constexpr float kLn2 = 0x1.62e43p-1F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Running state of one row over some keys, in the unit of its logits.
struct Partial {
  float m = -kInfinity, l = 0;
  std::vector<float> acc;
};

class RowKernel {
 public:
  RowKernel(const Problem& p, const Values& values, const Recipe& recipe, Index b, Index h, Index i)
      : p_(p), values_(values), recipe_(recipe), b_(b), h_(h), i_(i) {
    scale_ = p.scale * (recipe.mistake == Mistake::scale_one_percent ? 1.01F : 1.0F);
    plain_ = p.softcap == 0 && !values.bias && !values.slopes && !values.sinks && p.scale > 0;
    raw_ = recipe.exponential == Exponential::base_two_fma && plain_ && !recipe.scaled_query;
    two_ = recipe.exponential == Exponential::base_two;
    if (recipe.scales_outputs) {
      late_k_ = common(values.k_scales);
      late_v_ = common(values.v_scales);
      if (late_k_) scale_ *= *late_k_;
    }
    factor_ = scale_ * kLog2e;
  }

  void run(Tensor& o, Tensor& lse) {
    std::vector<Index> keys;
    for (Index j = 0; j < key_length(p_, b_); ++j) {
      if (sees(j)) keys.push_back(j);
    }
    apply_mistake(keys);
    const Partial all = recipe_.splits > 1 ? combined(keys) : attended(keys, 0);
    finish(all, keys.empty(), o, lse);
  }

 private:
  bool sees(Index j) const {
    return visible(p_, values_, b_, i_, j) &&
           !(values_.bias && std::isinf(values_.bias->at(b_, h_, i_, j)));
  }

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

  float multiply_add(float a, float b, float c) const {
    return recipe_.fma ? std::fma(a, b, c) : a * b + c;
  }

  /// The scale that all rows of the head share, if they do.
  std::optional<float> common(const std::optional<Tensor>& scales) const {
    if (!scales || scales->extent[2] != 1) return std::nullopt;
    return static_cast<float>(scale_at(scales, b_, h_ / (p_.query_heads / p_.kv_heads), 0));
  }

  float factor_of(const std::optional<Tensor>& scales, Index kv_head, Index j) const {
    return static_cast<float>(scale_at(scales, b_, kv_head, j));
  }

  float tensor_dot(Index j) const {
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    std::vector<float> q, k;
    for (Index c = 0; c < p_.depth; ++c) {
      q.push_back(static_cast<float>(values_.q.at(b_, h_, i_, c)));
      k.push_back(static_cast<float>(values_.k.at(b_, kv_head, j, c)));
    }
    return tensor_sum(0, q, k, p_.input, p_.input, recipe_.tensor_step) *
           factor_of(values_.k_scales, kv_head, j);
  }

  float dot(Index j) const {
    if (recipe_.tensor_step != 0) return tensor_dot(j);
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    const float k_scale = late_k_ ? 1.0F : factor_of(values_.k_scales, kv_head, j);
    std::vector<float> products;
    float chain = 0;
    for (Index n = 0; n < p_.depth; ++n) {
      const Index c = recipe_.reverse ? p_.depth - 1 - n : n;
      float q = static_cast<float>(values_.q.at(b_, h_, i_, c));
      auto k = static_cast<float>(values_.k.at(b_, kv_head, j, c));
      if (!recipe_.scales_weights) k *= k_scale;
      if (recipe_.scaled_query) q *= two_ && p_.softcap == 0 ? factor_ : scale_;
      chain = multiply_add(q, k, chain);
      products.push_back(q * k);
    }
    const float x = recipe_.pairwise ? sum_of(products, true) : chain;
    return recipe_.scales_weights ? x * k_scale : x;
  }

  /// In nats, in powers of two, or q.k as it is, whichever the recipe works in.
  float logit(Index j) const {
    float x = dot(j);
    if (raw_) return x;
    if (!recipe_.scaled_query) x *= two_ && p_.softcap == 0 ? factor_ : scale_;
    if (p_.softcap > 0) {
      const auto cap = static_cast<float>(p_.softcap);
      x = (two_ ? cap * kLog2e : cap) * std::tanh(recipe_.reciprocal ? x * (1.0F / cap) : x / cap);
    }
    const float unit = two_ ? kLog2e : 1.0F;
    if (values_.bias) {
      const auto bias = static_cast<float>(values_.bias->at(b_, h_, i_, j));
      x = multiply_add(bias, unit, x);
    }
    if (values_.slopes) {
      const auto slope = static_cast<float>(values_.slopes->at(h_)) * unit;
      const auto distance = static_cast<float>(std::abs(i_ + diagonal(p_, b_) - j));
      x = multiply_add(-slope, distance, x);
    }
    return x;
  }

  /// Under the reference minus `shift`, a power of two.
  float weight(float logit, float reference, Index number, float shift = 0) const {
    const auto wobble = static_cast<float>(recipe_.exp_error * (number % 2 == 0 ? 1.0 : -1.0));
    float power = 0;
    if (raw_) {
      const float shifted = reference * factor_ - shift;
      power =
          std::exp2(recipe_.fma ? std::fma(logit, factor_, -shifted) : logit * factor_ - shifted);
    } else if (two_) {
      power = std::exp2(logit - (reference - shift));
    } else if (recipe_.exponential == Exponential::natural) {
      power = std::exp(logit - (reference - shift * kLn2));
    } else {
      power = std::exp2((logit - reference) * kLog2e + shift);
    }
    return power + power * wobble;
  }

  float rescale(float before, float after) const {
    if (before == -kInfinity) return 0;
    if (before == after) return 1;
    return raw_ ? std::exp2((before - after) * factor_) : weight(before, after, 0);
  }

  /// The blocks of each stream, in the order in which they are visited. Keys of a block rise.
  std::vector<std::vector<std::vector<Index>>> dealt(const std::vector<Index>& keys,
                                                     Index first) const {
    std::map<Index, std::map<Index, std::vector<Index>>> streams;
    for (Index j : keys) {
      const Index number = (j - first) / recipe_.block;
      streams[number % recipe_.streams][number].push_back(j);
    }
    std::vector<std::vector<std::vector<Index>>> result;
    for (const auto& [stream, blocks] : streams) {
      result.emplace_back();
      for (const auto& [number, block] : blocks) result.back().push_back(block);
      if (recipe_.falling || recipe_.reverse) {
        std::reverse(result.back().begin(), result.back().end());
      }
    }
    return result;
  }

  /// All streams of a part that begins at key `first`.
  Partial attended(const std::vector<Index>& keys, Index first) const {
    std::vector<Partial> states;
    for (const auto& blocks : dealt(keys, first)) {
      Partial state;
      state.acc.assign(static_cast<std::size_t>(p_.v_depth), 0.0F);
      if (recipe_.sink_first && values_.sinks && states.empty() && !sink_joined_) {
        state.m = static_cast<float>(values_.sinks->at(h_)) * (two_ ? kLog2e : 1.0F);
        state.l = static_cast<float>(std::exp2(recipe_.p_shift));
        sink_joined_ = true;
      }
      std::vector<float> lanes(static_cast<std::size_t>(recipe_.sum_lanes), 0.0F);
      lanes[0] = state.l;
      for (const auto& block : blocks) visit(block, first, state, lanes);
      state.l = sum_of(lanes, recipe_.pairwise);
      states.push_back(state);
    }
    return states.size() == 1 ? states[0] : together(states, false);
  }

  bool rises(float before, float after) const {
    if (recipe_.lazy == 0 || before == -kInfinity) return true;
    const float bits = raw_ ? factor_ : two_ ? 1.0F : kLog2e;
    return (after - before) * bits > static_cast<float>(recipe_.lazy);
  }

  void visit(const std::vector<Index>& keys, Index first, Partial& state,
             std::vector<float>& lanes) const {
    std::vector<float> logits;
    for (Index j : keys) logits.push_back(logit(j));
    const float largest = std::max(state.m, *std::max_element(logits.begin(), logits.end()));
    const float m = rises(state.m, largest) ? largest : state.m;
    const float alpha = recipe_.mistake == Mistake::no_rescale ? 1.0F : rescale(state.m, m);
    state.m = m;
    const auto log_shift = static_cast<float>(recipe_.shifts_reference ? recipe_.p_shift : 0);
    const auto shift =
        static_cast<float>(recipe_.shifts_reference ? 1 : std::exp2(recipe_.p_shift));
    std::vector<float> cast, in_sum;
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const float p = weight(logits[n], m, keys[n], log_shift) * shift;
      const float p_scaled = joins() ? p * factor_of(values_.v_scales, kv_head, keys[n]) : p;
      cast.push_back(static_cast<float>(rounded(recipe_.p_format, static_cast<double>(p_scaled))));
      in_sum.push_back(recipe_.sums_cast
                           ? static_cast<float>(rounded(recipe_.p_format, static_cast<double>(p)))
                           : p);
    }
    if (lanes.size() == 1) {
      lanes[0] = multiply_add(lanes[0], alpha, sum_of(in_sum, recipe_.pairwise));
    } else {
      for (float& lane : lanes) lane *= alpha;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        lanes[static_cast<std::size_t>((keys[n] - first) % recipe_.sum_lanes)] += in_sum[n];
      }
    }
    const Index block_first = first + (keys[0] - first) / recipe_.block * recipe_.block;
    for (std::size_t c = 0; c < state.acc.size(); ++c) {
      state.acc[c] = add_values(keys, block_first, cast, c, state.acc[c] * alpha);
    }
  }

  bool joins() const { return recipe_.scales_weights || recipe_.tensor_step != 0; }

  /// sum + P V of one column and block.
  float add_values(const std::vector<Index>& keys, Index first, const std::vector<float>& cast,
                   std::size_t c, float sum) const {
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    std::vector<float> products, p, column;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const std::size_t at = recipe_.reverse ? keys.size() - 1 - n : n;
      auto v = static_cast<float>(values_.v.at(b_, kv_head, keys[at], static_cast<Index>(c)));
      if (!joins() && !late_v_) v *= factor_of(values_.v_scales, kv_head, keys[at]);
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
    for (std::size_t n = 0; n < p.size(); ++n) chain = multiply_add(p[n], column[n], chain);
    return recipe_.apart ? sum + chain : chain;
  }

  float reference_in_nats(float m) const {
    if (raw_) return m * scale_;
    return two_ ? m * kLn2 : m;
  }

  /// Keys of each part, and where it begins.
  std::vector<std::pair<Index, std::vector<Index>>> parts_of(const std::vector<Index>& keys) const {
    std::vector<std::pair<Index, std::vector<Index>>> parts;
    const Index even = (key_length(p_, b_) + recipe_.splits - 1) / recipe_.splits;
    Index size = recipe_.part == kEvenParts ? even : recipe_.part;
    if (recipe_.part == kPowerOfTwoParts) {
      for (size = 1; size < even;) size *= 2;
    }
    const auto count = static_cast<Index>(keys.size());
    for (Index n = 0, part = 0; n < count; ++n) {
      const Index j = keys[static_cast<std::size_t>(n)];
      while (size == 0 && n >= (part + 1) * count / recipe_.splits) ++part;
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
        for (float& acc : part.acc) acc = recipe_.reciprocal ? acc * (1.0F / part.l) : acc / part.l;
        part.m = reference_in_nats(part.m) + std::log(part.l) - shift_in_nats();
        part.l = 1;
      }
      parts.push_back(part);
    }
    in_nats_ = recipe_.combine_by_lse;
    return together(parts, in_nats_);
  }

  float shift_in_nats() const { return static_cast<float>(recipe_.p_shift) * kLn2; }

  /// Sums under their largest reference.
  Partial together(const std::vector<Partial>& parts, bool in_nats) const {
    Partial all;
    all.acc.assign(static_cast<std::size_t>(p_.v_depth), 0.0F);
    for (const Partial& part : parts) all.m = std::max(all.m, part.m);
    for (const Partial& part : parts) {
      const float share = in_nats ? std::exp(part.m - all.m) : rescale(part.m, all.m);
      all.l = multiply_add(part.l, share, all.l);
      for (std::size_t c = 0; c < all.acc.size(); ++c) {
        all.acc[c] = multiply_add(part.acc[c], share, all.acc[c]);
      }
    }
    return all;
  }

  void finish(Partial all, bool empty, Tensor& o, Tensor& lse) {
    float m = all.m;
    const auto shift = in_nats_ ? 1.0F : static_cast<float>(std::exp2(recipe_.p_shift));
    if (values_.sinks && !sink_joined_) {
      auto sink = static_cast<float>(values_.sinks->at(h_));
      if (two_ && !in_nats_) sink *= kLog2e;
      const float joint = std::max(m, sink);
      const auto power = [&](float x) {
        return two_ && !in_nats_ ? std::exp2(x - joint) : std::exp(x - joint);
      };
      const float factor = power(m);
      all.l = all.l * factor + power(sink) * shift;
      for (float& acc : all.acc) acc *= factor;
      m = joint;
    }
    for (std::size_t c = 0; c < all.acc.size(); ++c) {
      float out = recipe_.reciprocal ? all.acc[c] * (1.0F / all.l) : all.acc[c] / all.l;
      if (late_v_) out *= *late_v_;
      if (empty) out = p_.empty_row == EmptyRow::nan ? std::nanf("") : 0.0F;
      o.set(b_, h_, i_, static_cast<Index>(c), static_cast<double>(out));
    }
    float sum = all.l == 0 ? -kInfinity : (in_nats_ ? m : reference_in_nats(m)) + std::log(all.l);
    if (!in_nats_) sum -= shift_in_nats();
    if (p_.lse_base == LogBase::two) sum *= kLog2e;
    lse.set(b_, h_, i_, 0, static_cast<double>(sum));
  }

  const Problem& p_;
  const Values& values_;
  const Recipe& recipe_;
  Index b_, h_, i_;
  float scale_ = 1, factor_ = 1;
  std::optional<float> late_k_, late_v_;  // scales that are multiplied in at the end
  bool plain_ = false, raw_ = false, two_ = false;
  mutable Index last_number_ = 0;
  mutable bool in_nats_ = false, sink_joined_ = false;
};

}  // namespace

Simulated simulate(const Problem& p, const Values& values, const Recipe& recipe) {
  Simulated result{Tensor(p.output, {p.batch, p.query_heads, p.queries, p.v_depth}),
                   Tensor(Format::f32, {p.batch, p.query_heads, p.queries, 1})};
  const FlushToZero flush(recipe.flush);
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.query_heads; ++h) {
      for (Index i = 0; i < query_length(p, b); ++i) {
        RowKernel(p, values, recipe, b, h, i).run(result.o, result.lse);
      }
    }
  }
  return result;
}

}  // namespace attest
