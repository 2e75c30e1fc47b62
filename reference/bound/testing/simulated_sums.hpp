// Sums as kernels and tensor cores add them in f32, for the simulated kernel alone.
#pragma once
#include <vector>

#include "reference/bound/testing/simulated_kernel.hpp"
#include "reference/problem.hpp"

namespace attest {

/// One by one, or as a tree.
float sum_of(std::vector<float> terms, bool pairwise);

/// sum + x.y, `step` products at a time (reference/bound/README.md, "Tensor cores"): as V100 for 4,
/// A100 for 8 and H100 for 16, or with the fewer bits of 8-bit operands.
float tensor_sum(float sum, const std::vector<float>& x, const std::vector<float>& y,
                 Format x_format, Format y_format, Index step);

/// The blocks of each stream of a part that begins at key `first`, in the order in which they are
/// visited. Keys of a block rise.
std::vector<std::vector<std::vector<Index>>> dealt(const Recipe& recipe,
                                                   const std::vector<Index>& keys, Index first);

}  // namespace attest
