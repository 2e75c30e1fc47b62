// A model of a declared path: attention as a kernel computes it that rounds and orders as its
// PrecisionPath says, with every stage exact at will, with what the declaration leaves open chosen
// at will, or wrong on purpose. reference/model/README.md says which stage rounds where.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "reference/precision.hpp"
#include "reference/values.hpp"

namespace attest {

// Enumerators are spelled as they are printed.
enum class Stage : std::uint8_t { scores, exp, p_cast, row_sum, pv, output_cast };
inline constexpr std::array<std::string_view, 6> kStageNames = {"scores",  "exp", "p_cast",
                                                                "row_sum", "pv",  "output_cast"};
inline constexpr std::array<std::string_view, 6> kStageMeanings = {
    "the sum of q.k; and scale, softcap, bias and ALiBi, where logits have any of the last three",
    "the exponent and the exponential, also where a maximum rises or parts join",
    "the weight's rounding to p_format",
    "the sum of weights and what divides by it; LSE",
    "the sum of P V, its rescaling and combination",
    "the rounding of O to its format"};
using Stages = std::bitset<kStageNames.size()>;
inline Stages only(Stage stage) {
  return Stages(1ULL << static_cast<unsigned>(stage));
}
inline Stages all_stages() {
  return Stages().set();
}

/// What kernels get wrong, each by one change to the model.
enum class Defect : std::uint8_t {
  none,
  p_truncated,       // P is cast towards zero
  output_truncated,  // so is O
  scale_off,         // the scale is too large by 2^-13
  key_dropped,       // the last visible key is not looked at
  sum_misses_key,    // the middle visible key is left out of the row sum
  scores_in_bf16,    // logits are rounded to bf16
  exp_biased,        // every exponential of other than 0 is too large by 2^-12
  rescale_missing,   // O is not rescaled when the reference rises for the first time
  sum_in_f16,        // the row sum is kept in f16
  sum_from_cast,     // the row sum adds the weights as they were cast
  rows_swapped,      // the two middle visible keys have each other's V
  key_leaked,        // the first hidden key behind the last visible one is seen
};
inline constexpr std::array<std::string_view, 13> kDefectNames = {
    "none",           "p_truncated",    "output_truncated", "scale_off",       "key_dropped",
    "sum_misses_key", "scores_in_bf16", "exp_biased",       "rescale_missing", "sum_in_f16",
    "sum_from_cast",  "rows_swapped",   "key_leaked"};

/// What a declaration leaves open; any choice is that of a correct kernel.
struct Freedom {
  /// Which part of the declared error of the exponential is made at a weight, from -1 to 1, by row
  /// (of lse) and key; where it is not set, or none is declared, exponentials are rounded once.
  std::function<double(Index row, Index key)> exp_share;
  double division_share = 0;   // the same for the declared error of dividing by the row sum
  bool fused_exponent = true;  // exp2(fma(z, c, -(m c))); otherwise exp2((z - m) c)
  bool parts_by_lse = true;    // parts combined as O and LSE; otherwise as (m, l, acc)
  Index tensor_step = 0;       // of the architecture it runs on; 0: the declared one
};

struct Model {
  Stages exact = {};  // computed in double, with no rounding to f32 or to a format
  Defect defect = Defect::none;
  Freedom freedom = {};
};

/// Like Truth. With output_cast exact, o is not yet rounded to the output format.
struct Modelled {
  std::vector<double> o, lse;
};

/// Domain: any legal Problem with values of its extents, any path. What the path does not know
/// (block, part) is chosen: blocks of keys_per_rescale keys, or one block where that is 1; even
/// parts. Error: exponentials, logarithms and tanh are those of the double library, then rounded to
/// f32: correctly rounded but once in 2^28 or so. Stages that are exact err like double. Special:
/// as the oracle's. Rows behind a query length are 0.
Modelled model_attention(const Problem& problem, const Values& values, const PrecisionPath& path,
                         const Model& model = {});

}  // namespace attest
