// The parts of the model that its files share: rounding that can be switched off, the operands of
// one KV head, and one row of queries. Not for anybody outside of this folder.
#pragma once
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "reference/formats.hpp"
#include "reference/model/model.hpp"
#include "reference/model/tensor_core.hpp"

namespace attest::model {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLog2e = std::numbers::log2e;

/// Rounds the result of one operation, or does not.
struct Rounding {
  bool exact = false;
  Format format = Format::f32;

  /// Error: none of its own: operands are f32 numbers, and an operation on those rounded to double
  /// and then to f32 is as if rounded once (53 >= 2 * 24 + 2).
  double operator()(double number) const {
    if (exact) return number;
    return format == Format::f32 ? static_cast<double>(static_cast<float>(number))
                                 : rounded(format, number);
  }
  /// a * b + c, rounded once.
  double fused(double a, double b, double c) const;
};

/// The nearest number of the format that is not larger in magnitude.
inline double truncated(Format format, double number) {
  const double step = ulp(format, number);
  return std::isfinite(number) ? std::trunc(number / step) * step : number;
}

/// K and V of one KV head, as they enter products.
struct Head {
  Index b = 0, kv_head = 0, keys = 0;
  Operands k;  // (keys, head_dim)
  Operands v;  // (head_dim_v, keys): sums run over keys
  std::vector<double> k_scale, v_scale;
};

/// What is known of some keys: the reference m, the row sum in lanes, P V.
struct State {
  double m = -kInfinity;
  double bits = 1;   // powers of two per unit of m
  double nats = 1;   // nats per unit of m
  double shift = 0;  // l and acc carry the factor 2^shift
  std::vector<double> lanes;
  std::vector<double> acc;
  double l = 0;  // the sum of the lanes, once all keys are in
};

/// What is the same for all rows.
struct Plan {
  Plan(const Problem& problem, const Values& values, const PrecisionPath& path, const Model& model);
  bool has(Defect defect) const { return model.defect == defect; }
  bool exact(Stage stage) const { return model.exact.test(static_cast<std::size_t>(stage)); }
  Head head(Index b, Index kv_head) const;
  State no_keys() const;

  const Problem& problem;
  const Values& values;
  const PrecisionPath& path;
  const Model& model;
  Rounding scores, exponential, row_sum, pv;
  Rounding division;  // and the logarithm: f32 whatever the row sum is kept in
  Format q_format, k_format, p_format, v_format;  // as operands of products
  TensorCore score_core, value_core;
  double scale = 1;
  bool plain = false;     // logits are q.k: the scale is applied in the exponent
  bool scaled_p = false;  // a scale of V joins P
  bool scaled_o = false;  // or the one scale of a head joins O
  double bits = 1;        // powers of two per unit of a logit
  double nats = 1;        // nats per unit of a logit
};

/// Logits of one row: -infinity for what it does not see.
std::vector<double> logits_of(const Plan& plan, const Head& head, Index h, Index i);

/// The weight of logit z over reference m, times 2^p_scale_log2. `share`: see Freedom::exp_share.
double weight_of(const Plan& plan, double z, double m, double share);
/// The same without p_scale_log2, always as exp2((z - m) bits): how older references are brought to
/// a higher one.
double difference_power(const Plan& plan, double z, double m, double share);

/// One row: o (head_dim_v numbers) and its lse.
struct Row {
  std::vector<double> o;
  double lse = 0;
};
Row attend(const Plan& plan, const Head& head, Index h, Index i);

}  // namespace attest::model
