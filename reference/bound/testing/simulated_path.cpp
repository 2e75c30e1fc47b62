// What a simulated kernel declares of itself.
#include "reference/bound/testing/simulated_kernel.hpp"

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
  path.keys_per_rescale = recipe.sums_first ? 1 : recipe.kv_block;
  path.tensor_step = recipe.declared_step != 0 ? recipe.declared_step : recipe.tensor_step;
  path.row_sum_of_rounded_p = recipe.row_sum_of_rounded_p;
  path.v_scale_in_p = recipe.scales_weights || recipe.tensor_step != 0;
  path.rescale_threshold_log2 = recipe.rescale_threshold_log2;
  path.p_scale_log2 = recipe.p_scale_log2;
  path.kv_block = recipe.sums_first ? 0 : recipe.kv_block;  // the two sums share no order
  path.interleaved_accumulators = recipe.interleaved_accumulators;
  path.kv_blocks_descending = recipe.kv_blocks_descending || recipe.reverse;
  path.split_size = recipe.split_size;
  path.in_order = !recipe.reverse && !recipe.pairwise && !recipe.apart && !recipe.bias_first;
  path.partial_row_sums = recipe.partial_row_sums;
  path.normalize_before_cast = recipe.normalize_before_cast;
  path.scores_format = recipe.scores_format;
  return path;
}

}  // namespace attest
