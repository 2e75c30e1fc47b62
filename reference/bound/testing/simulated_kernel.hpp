// Attention as a kernel would compute it, in f32 with every rounding where a kernel has it, in the
// many orders that kernels use; right, or wrong on purpose. For the test of the bound alone.
#pragma once
#include <string>

#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest {

enum class Exponential { natural, base_two, base_two_fma, scaled_difference };
enum class AlibiFrom { row, first_key, last_key };  // but the row's own, only under a causal mask
enum class Mistake { none, drops_key, scale_one_percent, leaks_key, no_rescale };

struct Recipe {
  std::string name = {};
  Index kv_block = 1 << 20;  // keys between two rescales; large: two passes, the maximum first
  Index num_splits = 1;
  bool fma = false;
  bool reverse = false;         // last key first
  bool pairwise = false;        // sums as trees
  bool scaled_query = false;    // the scale goes into q
  bool reciprocal = false;      // multiply by 1 / l
  bool combine_by_lse = true;   // splits as normalised O and LSE; otherwise as (m, l, acc)
  bool scales_weights = false;  // a scale of v joins the weight before its cast, of k the logit
  // Scales common to all keys multiply the logits' scale, and O; others k and v.
  bool scales_outputs = false;
  bool flush = false;         // subnormals to zero, in and out
  double exp_error = 0;       // extra relative error, alternating in sign from key to key
  bool one_sign = false;      // ... or of one sign
  double log_error = 0;       // the same of a part's logarithm, as PrecisionPath, from part to part
  double division_error = 0;  // extra relative error, of parts as of exponentials
  Index tensor_step = 0;      // products per step of a tensor core; 0: f32 operations
  Exponential exponential = Exponential::natural;
  Format p_format = Format::f32;
  Index split_size = 0;  // as PrecisionPath; 0: parts of equally many visible keys, undeclared
  Index interleaved_accumulators = 1;  // the following as PrecisionPath
  bool kv_blocks_descending = false;
  bool row_sum_of_rounded_p = false;
  double rescale_threshold_log2 = 0, p_scale_log2 = 0;
  bool shifts_reference =
      false;  // p_scale_log2 is subtracted from the reference, not multiplied in
  Index partial_row_sums = 1;
  Index declared_step = 0;        // tensor_step as declared; 0: as it is
  bool sink_first = false;        // the sink is the first reference, not the last
  bool apart = false;             // a block of P V is added by itself, then to the accumulator
  bool fused_rescale = false;     // of raw scores: m' c - fl(m c) with one rounding
  bool one_by_one = false;        // states and parts meet one after another
  bool undivided_shares = false;  // of parts by LSE: exp(lse - LSE of all)
  bool bias_first = false;        // the sum of q.k begins with the bias; with scaled_query
  bool sums_first = false;        // the row sum comes from a pass of its own; no shift, no lazy
  bool normalize_before_cast = false;  // as PrecisionPath; a second visit of every block
  Format scores_format = Format::f32;
  AlibiFrom alibi_from = AlibiFrom::row;
  Mistake mistake = Mistake::none;
};

/// All that the recipe is, declared.
PrecisionPath path_of(const Recipe& recipe);

struct Simulated {
  Tensor o, lse;
};
Simulated simulate(const Problem& problem, const Values& values, const Recipe& recipe);

}  // namespace attest
