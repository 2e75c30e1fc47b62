// The logits of one row as a simulated kernel computes them, in the unit in which it works. For the
// tests of the bounds alone.
#pragma once
#include <optional>

#include "reference/bound/testing/simulated_kernel.hpp"

namespace attest {

inline constexpr float kLog2eF32 = 0x1.715476p0F, kLn2F32 = 0x1.62e43p-1F;  // rounded

struct SimulatedLogits {
  const Problem& problem;
  const Values& values;
  const Recipe& recipe;
  Index b, h, i;
  float scale = 1, factor = 1;          // of q.k, for nats and for powers of two
  std::optional<float> late_k, late_v;  // scales that are multiplied in at the end
  bool raw = false, two = false;        // what a logit is: q.k itself, or in powers of two
  float moved = 0;                      // what ALiBi adds to all logits of the row, in nats

  SimulatedLogits(const Problem& problem, const Values& values, const Recipe& recipe, Index b,
                  Index h, Index i);

  float logit(Index j) const;
  float sink() const;
  float multiply_add(float a, float b, float c) const;
  float factor_of(const std::optional<Tensor>& scales, Index kv_head, Index j) const;

 private:
  std::optional<float> common(const std::optional<Tensor>& scales) const;
  bool begins_with_bias() const { return recipe.bias_first && values.bias && problem.softcap == 0; }
  float first_term(Index j) const;
  float tensor_dot(Index j) const;
  float dot(Index j) const;
  float position(Index j) const;
  float rounded_logit(Index j) const;
  Index kv_head() const { return h / (problem.num_heads_q / problem.num_heads_kv); }
};

}  // namespace attest
