// Attention in f32, one row at a time. See the header for what it is for.
#include "reference/bound/simulated_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

constexpr float kLog2e = 0x1.715476p0F;  // fl(log2 e)
constexpr float kLn2 = 0x1.62e43p-1F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

#if defined(__SSE__)
constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;  // MXCSR bits FTZ and DAZ
class FlushToZero {
 public:
  explicit FlushToZero(bool on) : before_(_mm_getcsr()) {
    if (on) _mm_setcsr(before_ | kFlushAndDenormalsAreZero);
  }
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};
#else
struct FlushToZero {
  explicit FlushToZero(bool) {}
};
#endif

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
    factor_ = scale_ * kLog2e;
  }

  void run(Tensor& o, Tensor& lse) {
    std::vector<Index> keys;
    for (Index j = 0; j < key_length(p_, b_); ++j) {
      if (sees(j)) keys.push_back(j);
    }
    apply_mistake(keys);
    if (recipe_.reverse) std::reverse(keys.begin(), keys.end());
    const Partial all = recipe_.splits > 1 ? combined(keys) : attended(keys);
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

  float sum(std::vector<float> terms) const {
    if (terms.empty()) return 0;
    if (!recipe_.pairwise) {
      float total = 0;
      for (float term : terms) total += term;
      return total;
    }
    for (std::size_t width = terms.size(); width > 1; width = (width + 1) / 2) {
      for (std::size_t n = 0; n < width / 2; ++n) terms[n] += terms[width - 1 - n];
    }
    return terms[0];
  }

  /// sum + x.y over all columns or keys as tensor cores add it (reference/bound/README.md).
  float tensor_sum(float sum, const std::vector<float>& x, const std::vector<float>& y,
                   Format x_format, Format y_format) const {
    const auto step = static_cast<std::size_t>(recipe_.tensor_step);
    for (std::size_t first = 0; first < x.size(); first += step) {
      sum = tensor_add(sum, x, y, first, std::min(x.size(), first + step), x_format, y_format);
    }
    return sum;
  }

  float tensor_add(float sum, const std::vector<float>& x, const std::vector<float>& y,
                   std::size_t first, std::size_t last, Format x_format, Format y_format) const {
    const bool narrow = bytes_of(x_format) == 1;
    const int kept = narrow                     ? 13
                     : recipe_.tensor_step == 4 ? 23
                     : recipe_.tensor_step == 8 ? 24
                                                : 25;
    const auto exponent = [](double number, Format format) {
      return std::max(std::ilogb(number), facts(format).exponent_min);
    };
    int largest = std::numeric_limits<int>::min();
    if (sum != 0) largest = exponent(static_cast<double>(sum), Format::f32);
    for (std::size_t n = first; n < last; ++n) {
      if (x[n] == 0 || y[n] == 0) continue;
      largest = std::max(largest, exponent(static_cast<double>(x[n]), x_format) +
                                      exponent(static_cast<double>(y[n]), y_format));
    }
    if (largest == std::numeric_limits<int>::min()) return 0;
    double total = std::trunc(std::ldexp(static_cast<double>(sum), kept - largest));
    for (std::size_t n = first; n < last; ++n) {
      const double product = static_cast<double>(x[n]) * static_cast<double>(y[n]);
      total += std::trunc(std::ldexp(product, kept - largest));  // exact: integers below 2^53
    }
    if (total == 0) return 0;
    const int precision = narrow ? 14 : 24;
    const int unit = std::max(std::ilogb(total) - precision + 1, 0);
    total = std::ldexp(std::trunc(std::ldexp(total, -unit)), unit);
    return static_cast<float>(std::ldexp(total, largest - kept));
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
    return tensor_sum(0, q, k, p_.input, p_.input) * factor_of(values_.k_scales, kv_head, j);
  }

  float dot(Index j) const {
    if (recipe_.tensor_step != 0) return tensor_dot(j);
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    const float k_scale = factor_of(values_.k_scales, kv_head, j);
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
    const float x = recipe_.pairwise ? sum(products) : chain;
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

  float weight(float logit, float reference, Index number) const {
    const auto wobble = static_cast<float>(recipe_.exp_error * (number % 2 == 0 ? 1.0 : -1.0));
    float power = 0;
    if (raw_) {
      power = std::exp2(recipe_.fma ? std::fma(logit, factor_, -(reference * factor_))
                                    : logit * factor_ - reference * factor_);
    } else if (two_) {
      power = std::exp2(logit - reference);
    } else if (recipe_.exponential == Exponential::natural) {
      power = std::exp(logit - reference);
    } else {
      power = std::exp2((logit - reference) * kLog2e);
    }
    return power + power * wobble;
  }

  float rescale(float before, float after) const {
    if (before == -kInfinity) return 0;
    if (before == after) return 1;
    return raw_ ? std::exp2((before - after) * factor_) : weight(before, after, 0);
  }

  Partial attended(const std::vector<Index>& keys) const {
    Partial state;
    const auto width = static_cast<std::size_t>(p_.v_depth);
    state.acc.assign(width, 0.0F);
    const Index kv_head = h_ / (p_.query_heads / p_.kv_heads);
    for (std::size_t start = 0; start < keys.size();) {
      const auto stop = std::min(keys.size(), start + static_cast<std::size_t>(recipe_.block));
      std::vector<float> logits, weights;
      for (std::size_t n = start; n < stop; ++n) logits.push_back(logit(keys[n]));
      const float m = std::max(state.m, *std::max_element(logits.begin(), logits.end()));
      const float alpha = recipe_.mistake == Mistake::no_rescale ? 1.0F : rescale(state.m, m);
      state.m = m;
      for (std::size_t n = start; n < stop; ++n) {
        weights.push_back(weight(logits[n - start], m, keys[n]));
      }
      state.l = multiply_add(state.l, alpha, sum(weights));
      for (std::size_t c = 0; c < width; ++c) {
        float& acc = state.acc[c];
        acc *= alpha;
        std::vector<float> products, cast, column;
        for (std::size_t n = start; n < stop; ++n) {
          const float v_scale = factor_of(values_.v_scales, kv_head, keys[n]);
          const bool joins = recipe_.scales_weights || recipe_.tensor_step != 0;
          const float weight = joins ? weights[n - start] * v_scale : weights[n - start];
          const auto p = static_cast<float>(rounded(recipe_.p_format, static_cast<double>(weight)));
          auto v = static_cast<float>(values_.v.at(b_, kv_head, keys[n], static_cast<Index>(c)));
          if (!joins) v *= v_scale;
          cast.push_back(p);
          column.push_back(v);
          if (!recipe_.pairwise && recipe_.tensor_step == 0) acc = multiply_add(p, v, acc);
          products.push_back(p * v);
        }
        if (recipe_.tensor_step != 0) {
          acc = tensor_sum(acc, cast, column, recipe_.p_format, p_.input);
        } else if (recipe_.pairwise) {
          acc += sum(products);
        }
      }
      start = stop;
    }
    return state;
  }

  float reference_in_nats(float m) const {
    if (raw_) return m * scale_;
    return two_ ? m * kLn2 : m;
  }

  /// Splits, brought together either as (m, l, acc) or as normalised O with its LSE.
  Partial combined(const std::vector<Index>& keys) const {
    const auto count = static_cast<Index>(keys.size());
    std::vector<Partial> parts;
    std::vector<float> references;
    for (Index s = 0; s < recipe_.splits; ++s) {
      const std::vector<Index> mine(keys.begin() + s * count / recipe_.splits,
                                    keys.begin() + (s + 1) * count / recipe_.splits);
      if (mine.empty()) continue;
      Partial part = attended(mine);
      if (recipe_.combine_by_lse) {
        for (float& acc : part.acc) acc = recipe_.reciprocal ? acc * (1.0F / part.l) : acc / part.l;
        part.m = reference_in_nats(part.m) + std::log(part.l);
        part.l = 1;
      }
      parts.push_back(part);
    }
    Partial all;
    all.acc.assign(static_cast<std::size_t>(p_.v_depth), 0.0F);
    for (const Partial& part : parts) all.m = std::max(all.m, part.m);
    for (const Partial& part : parts) {
      const float share =
          recipe_.combine_by_lse ? std::exp(part.m - all.m) : rescale(part.m, all.m);
      all.l = multiply_add(part.l, share, all.l);
      for (std::size_t c = 0; c < all.acc.size(); ++c) {
        all.acc[c] = multiply_add(part.acc[c], share, all.acc[c]);
      }
    }
    in_nats_ = recipe_.combine_by_lse;
    return all;
  }

  void finish(Partial all, bool empty, Tensor& o, Tensor& lse) {
    float m = all.m;
    if (values_.sinks) {
      auto sink = static_cast<float>(values_.sinks->at(h_));
      if (two_ && !in_nats_) sink *= kLog2e;
      const float joint = std::max(m, sink);
      const auto power = [&](float x) {
        return two_ && !in_nats_ ? std::exp2(x - joint) : std::exp(x - joint);
      };
      const float factor = power(m);
      all.l = all.l * factor + power(sink);
      for (float& acc : all.acc) acc *= factor;
      m = joint;
    }
    for (std::size_t c = 0; c < all.acc.size(); ++c) {
      float out = recipe_.reciprocal ? all.acc[c] * (1.0F / all.l) : all.acc[c] / all.l;
      if (empty) out = p_.empty_row == EmptyRow::nan ? std::nanf("") : 0.0F;
      o.set(b_, h_, i_, static_cast<Index>(c), static_cast<double>(out));
    }
    float sum = all.l == 0 ? -kInfinity : (in_nats_ ? m : reference_in_nats(m)) + std::log(all.l);
    if (p_.lse_base == LogBase::two) sum *= kLog2e;
    lse.set(b_, h_, i_, 0, static_cast<double>(sum));
  }

  const Problem& p_;
  const Values& values_;
  const Recipe& recipe_;
  Index b_, h_, i_;
  float scale_ = 1, factor_ = 1;
  bool plain_ = false, raw_ = false, two_ = false;
  mutable bool in_nats_ = false;
};

}  // namespace

PrecisionPath path_of(const Recipe& recipe) {
  constexpr double kU = 0x1p-24;
  PrecisionPath path;
  path.p_format = recipe.p_format;
  // The library's own exponential is within an ulp; the wobble and its two roundings come on top.
  path.exp_error = recipe.exp_error == 0 ? 0 : recipe.exp_error + 5 * kU;
  path.tanh_error = 5 * kU;  // glibc's tanhf is within two and a half ulp
  path.key_block = recipe.block;
  path.tensor_step = recipe.tensor_step;
  return path;
}

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
