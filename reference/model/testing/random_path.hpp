// Random paths that a kernel could declare on a Problem, and the freedoms it then has. For tests.
#pragma once
#include <initializer_list>
#include <random>

#include "reference/formats.hpp"
#include "reference/model/model.hpp"

namespace attest {

/// Tensor cores take products of 16- and 8-bit numbers.
inline bool takes_tensor_cores(const Problem& problem) {
  return problem.input != Format::f32 && cache_format(problem) != Format::f32;
}

template <class T>
T one_of(std::initializer_list<T> choices, std::mt19937_64& random) {
  return choices.begin()[random() % choices.size()];
}

inline PrecisionPath random_path(const Problem& problem, std::mt19937_64& random) {
  constexpr double kU = 0x1p-24;
  PrecisionPath path;
  path.p_format =
      one_of({Format::f32, Format::f16, Format::bf16, Format::bf16, Format::e4m3}, random);
  path.exp_error = one_of({0.0, 5 * kU, 0x1p-19}, random);
  path.division_error = one_of({0.0, 4 * kU, 0x1p-20}, random);
  path.kv_block = one_of<Index>({1, 2, 4, 16, 64, 1 << 20}, random);
  path.keys_per_rescale = std::min<Index>(path.kv_block, 64);
  path.in_order = true;
  path.kv_blocks_descending = random() % 3 == 0;
  path.interleaved_accumulators = one_of<Index>({1, 1, 2, 4}, random);
  path.partial_row_sums = one_of<Index>({1, 1, 2, 4, 32}, random);
  path.split_size = one_of({kEvenSplits, kPowerOfTwoSplits}, random);
  path.row_sum_of_rounded_p = random() % 4 == 0;
  path.v_scale_in_p = random() % 2 == 0;
  if (path.p_format == Format::e4m3)
    path.p_scale_log2 = one_of({0.0, 8.0}, random);
  else if (random() % 4 == 0)
    path.rescale_threshold_log2 = 8;
  if (problem.num_splits == 1 && !path.row_sum_of_rounded_p && random() % 5 == 0) {
    path.normalize_before_cast = true;
    path.rescale_threshold_log2 = path.p_scale_log2 = 0;
  }
  if (random() % 6 == 0) path.scores_format = one_of({Format::f16, Format::bf16}, random);
  if (takes_tensor_cores(problem) && random() % 2 == 0) {
    path.tensor_step = one_of<Index>({4, 8, 16}, random);
    path.v_scale_in_p = true;
    if (path.p_format == Format::f32) path.p_format = Format::f16;
  }
  return path;
}

inline Freedom random_freedom(const PrecisionPath& path, std::mt19937_64& random) {
  Freedom freedom;
  const std::uint64_t salt = random();
  freedom.exp_share = [salt](Index row, Index key) {  // one of -1, 0, 1
    const auto mixed = (static_cast<std::uint64_t>(row * 7919 + key) ^ salt) * 0x9e3779b97f4a7c15U;
    return static_cast<double>((mixed >> 40) % 3) - 1;
  };
  freedom.division_share = static_cast<double>(random() % 3) - 1;
  freedom.fused_exponent = random() % 2 == 0;
  freedom.parts_by_lse = random() % 2 == 0;
  if (path.tensor_step == 8 && random() % 2 == 0) freedom.tensor_step = 16;
  return freedom;
}

}  // namespace attest
