// Sums as kernels add them, one product after another or a step of a tensor core at a time, for
// many lanes at once: not what comes out, but the mean and variance of the error that comes with
// it. README.md, "Sums". It
// knows nothing of attention.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "reference/model/tensor_core.hpp"

namespace attest::statistics {

/// Numbers of `terms` rows and `lanes` columns, each with the place of its last bit that is set.
struct Lanes {
  std::size_t lanes = 0;
  std::vector<double> number;
  std::vector<float> last;  // a power of two; of 0 it is larger than of anything
  double least = 0;         // tensor cores align what is smaller as if it were this
};

/// A number that meets a row of lanes.
struct Factor {
  double number, last;
  const double* others;      // of the row
  const float* others_last;  // of the row
};

/// The place of the last bit of an f32 number that is set, a power of two. Special: of 0, and of
/// what is not finite, Chains::kNothing.
double last_bit(double number);

/// The largest power of two that is no larger than |number|; 0 of 0.
double binade(double number);

/// Sums from zero, their errors so far. All are per lane.
/// Domain: finite numbers that stay in the normal range of f32.
/// Error: that of the model; the moments are those of README.md, evaluated in double.
struct Chains {
  explicit Chains(std::size_t lanes)
      : sum(lanes), mean(lanes), variance(lanes), last(lanes, kNothing) {}

  /// A fused multiply-add in f32 per lane.
  void add(const Factor& factor);
  /// A tensor core's step. Factors below `least` are aligned as if they were that, and lanes below
  /// `least_other`.
  void step(std::span<const Factor> factors, const TensorCore& core, double least,
            double least_other);
  /// The product with a factor of f32.
  void scale(double factor);

  static constexpr double kNothing = 0x1p100;
  std::vector<double> sum, mean, variance, last;
};

}  // namespace attest::statistics
