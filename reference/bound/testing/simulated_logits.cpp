// See the header.
#include "reference/bound/testing/simulated_logits.hpp"

#include <cmath>

#include "reference/bound/testing/simulated_sums.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {

SimulatedLogits::SimulatedLogits(const Problem& its_problem, const Values& its_values,
                                 const Recipe& its_recipe, Index batch, Index head, Index row)
    : problem(its_problem), values(its_values), recipe(its_recipe), b(batch), h(head), i(row) {
  scale = problem.softmax_scale * (recipe.mistake == Mistake::scale_one_percent ? 1.01F : 1.0F);
  const bool plain =
      problem.softcap == 0 && !values.bias && !values.alibi_slopes && !values.sinks && scale > 0;
  raw = recipe.exponential == Exponential::base_two_fma && plain && !recipe.scaled_query;
  two = recipe.exponential == Exponential::base_two;
  if (recipe.scales_outputs) {
    late_k = common(values.k_scales);
    late_v = common(values.v_scales);
    if (late_k) scale *= *late_k;
  }
  factor = scale * kLog2eF32;
  if (values.alibi_slopes && recipe.alibi_from != AlibiFrom::row && problem.causal) {
    const auto place = static_cast<float>(i + diagonal(problem, b));
    moved = static_cast<float>(values.alibi_slopes->at(h)) * (place + position(0));
  }
}

/// The scale that all rows of the head share, if they do.
std::optional<float> SimulatedLogits::common(const std::optional<Tensor>& scales) const {
  if (!scales || scales->extent[2] != 1) return std::nullopt;
  return static_cast<float>(scale_at(scales, b, kv_head(), 0));
}

float SimulatedLogits::factor_of(const std::optional<Tensor>& scales, Index head, Index j) const {
  return static_cast<float>(scale_at(scales, b, head, j));
}

float SimulatedLogits::multiply_add(float x, float y, float z) const {
  return recipe.fma ? std::fma(x, y, z) : x * y + z;
}

/// What the sum of q.k begins with. Only q may have the scale then.
float SimulatedLogits::first_term(Index j) const {
  if (!begins_with_bias()) return 0;
  return static_cast<float>(values.bias->at(b, h, i, j)) * (two ? kLog2eF32 : 1.0F);
}

float SimulatedLogits::tensor_dot(Index j) const {
  std::vector<float> q, k;
  for (Index c = 0; c < problem.head_dim; ++c) {
    q.push_back(static_cast<float>(values.q.at(b, h, i, c)));
    k.push_back(static_cast<float>(values.k.at(b, kv_head(), j, c)));
  }
  return tensor_sum(0, q, k, problem.input, problem.input, recipe.tensor_step) *
         factor_of(values.k_scales, kv_head(), j);
}

float SimulatedLogits::dot(Index j) const {
  if (recipe.tensor_step != 0) return tensor_dot(j);
  const float k_scale = late_k ? 1.0F : factor_of(values.k_scales, kv_head(), j);
  std::vector<float> products;
  float chain = first_term(j);
  for (Index n = 0; n < problem.head_dim; ++n) {
    const Index c = recipe.reverse ? problem.head_dim - 1 - n : n;
    float q = static_cast<float>(values.q.at(b, h, i, c));
    auto k = static_cast<float>(values.k.at(b, kv_head(), j, c));
    if (!recipe.scales_weights) k *= k_scale;
    if (recipe.scaled_query) q *= two && problem.softcap == 0 ? factor : scale;
    chain = multiply_add(q, k, chain);
    products.push_back(q * k);
  }
  const float x = recipe.pairwise ? sum_of(products, true) : chain;
  return recipe.scales_weights ? x * k_scale : x;
}

/// By what ALiBi multiplies its slope: never above 0, or counted from another key.
float SimulatedLogits::position(Index j) const {
  if (recipe.alibi_from == AlibiFrom::row || !problem.causal) {
    return -static_cast<float>(std::abs(i + diagonal(problem, b) - j));
  }
  const Index from = recipe.alibi_from == AlibiFrom::first_key ? 0 : key_length(problem, b);
  return static_cast<float>(j - from);
}

/// Each step rounded to the format of scores, in nats.
float SimulatedLogits::rounded_logit(Index j) const {
  const auto cut = [&](float x) {
    return static_cast<float>(rounded(recipe.scores_format, static_cast<double>(x)));
  };
  float x = cut(cut(dot(j)) * scale);
  if (problem.softcap > 0) {
    const auto cap = static_cast<float>(problem.softcap);
    x = cut(cap * cut(std::tanh(cut(x / cap))));
  }
  if (values.bias) x = cut(x + static_cast<float>(values.bias->at(b, h, i, j)));
  if (values.alibi_slopes)
    x = cut(x + cut(static_cast<float>(values.alibi_slopes->at(h)) * position(j)));
  return x;
}

/// In nats, in powers of two, or q.k as it is, whichever the recipe works in.
float SimulatedLogits::logit(Index j) const {
  if (recipe.scores_format != Format::f32) return rounded_logit(j);
  float x = dot(j);
  if (raw) return x;
  if (!recipe.scaled_query) x *= two && problem.softcap == 0 ? factor : scale;
  if (problem.softcap > 0) {
    const auto cap = static_cast<float>(problem.softcap);
    x = (two ? cap * kLog2eF32 : cap) * std::tanh(recipe.reciprocal ? x * (1.0F / cap) : x / cap);
  }
  const float unit = two ? kLog2eF32 : 1.0F;
  if (values.bias && !begins_with_bias()) {
    const auto bias = static_cast<float>(values.bias->at(b, h, i, j));
    x = multiply_add(bias, unit, x);
  }
  if (values.alibi_slopes) {
    const auto slope = static_cast<float>(values.alibi_slopes->at(h)) * unit;
    x = multiply_add(slope, position(j), x);
  }
  return x;
}

/// The sink's logit in nats, where those of the keys are.
float SimulatedLogits::sink() const {
  return static_cast<float>(values.sinks->at(h)) + moved;
}

}  // namespace attest
