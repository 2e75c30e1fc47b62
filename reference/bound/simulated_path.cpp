// What a simulated kernel declares of itself.
#include "reference/bound/simulated_kernel.hpp"

namespace attest {

PrecisionPath path_of(const Recipe& recipe) {
  constexpr double kU = 0x1p-24;
  PrecisionPath path;
  path.p_format = recipe.p_format;
  // The library's own exponential is within an ulp; the wobble and its two roundings come on top.
  path.exp_error = recipe.exp_error == 0 ? 0 : recipe.exp_error + 5 * kU;
  path.log_error = recipe.log_error;
  path.division_error = recipe.division_error == 0 ? 0 : recipe.division_error + 5 * kU;
  path.tanh_error = 5 * kU;  // glibc's tanhf is within two and a half ulp
  path.key_block = recipe.sums_first ? 1 : recipe.block;
  path.tensor_step = recipe.declared_step != 0 ? recipe.declared_step : recipe.tensor_step;
  path.sums_cast = recipe.sums_cast;
  path.scales_in_p = recipe.scales_weights || recipe.tensor_step != 0;
  path.lazy = recipe.lazy;
  path.p_shift = recipe.p_shift;
  path.block = recipe.sums_first ? 0 : recipe.block;  // the two sums share no order
  path.streams = recipe.streams;
  path.falling = recipe.falling || recipe.reverse;
  path.part = recipe.part;
  path.in_order = !recipe.reverse && !recipe.pairwise && !recipe.apart && !recipe.bias_first;
  path.sum_lanes = recipe.sum_lanes;
  path.normalize_before_cast = recipe.normalize_before_cast;
  path.scores_format = recipe.scores_format;
  return path;
}

}  // namespace attest
