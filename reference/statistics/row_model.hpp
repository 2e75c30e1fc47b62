// One row of the model: its keys with what their weights are likely to be off by, and the states in
// which a kernel gathers them. What becomes of that in O is not its business. For
// likely_errors.cpp alone.
#pragma once
#include <limits>
#include <optional>
#include <vector>

#include "reference/statistics/chains.hpp"
#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest::statistics {

/// k and v that one KV head of a batch entry holds, as the sums of a path meet them.
struct Head {
  Head(const Problem& problem, const Values& values, const PrecisionPath& path, Index b,
       Index kv_head, Index tensor_step);
  const double* v_row(Index j) const {
    return v.number.data() + static_cast<std::size_t>(j * problem.head_dim_v);
  }
  double v_scale_of(Index j) const { return v_scale[static_cast<std::size_t>(j)]; }

  const Problem& problem;
  const Values& values;
  const PrecisionPath& path;
  std::optional<TensorCore> scores, weighted;  // what adds q.k and P V; nothing: f32 operations
  Lanes k;                                     // (head_dim, keys), as stored
  Lanes v;                                     // (keys, head_dim_v), as stored
  double q_least = 0, p_least = 0;             // see Lanes::least
  std::vector<double> k_scale, v_scale;
};

/// A key that the row sees. Errors are relative to the weight, and independent of other keys'.
struct Key {
  Index j;
  double product = 0, logit = 0;            // scale q.k, and after softcap, bias and ALiBi
  double mean = 0, variance = 0;            // of the weight, in numerator and row sum
  double cast = 0;                          // the weight as it meets V
  double cast_mean = 0, cast_variance = 0;  // of what that is off by
  bool cast_in_sum = false;                 // whether the row sum is off by the same
  double sum_cast_variance = 0;             // or by another cast, of the weight without its scale
  double weight = 0, ulp = 0;               // before that cast, and P's there
  bool exact = false;                       // the exponential was of 0: nothing was rounded
  double share = 0;                         // pi
};

/// What is off by a factor in common: `values` = sum of weight v, `sum` = sum of weight, relative
/// to `reference`.
struct Shift {
  double reference, variance, sum;
  std::vector<double> values;
};

/// A row, after all its keys.
struct Gathered {
  std::vector<Key> keys;
  std::vector<Shift> shifts;
  double reference = 0;                              // M
  double sum = 0;                                    // W, relative to it
  double sum_variance = 0;                           // of l / W
  std::vector<double> values_mean, values_variance;  // of P V / W, by its sums
};

struct Place {
  Index b, h, i;
};

/// Nothing where the row sees no key, or meets what is not finite.
std::optional<Gathered> gather(const Head& head, Place place);

}  // namespace attest::statistics
