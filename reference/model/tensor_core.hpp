// Sums as tensor cores form them, bit for bit: products are exact, what lies too far below the
// largest addend is cut off, and so is the sum. Knows nothing of kernels.
// Sources: Khattak and Mikaitis, arXiv:2512.07004; MMA-Sim, arXiv:2511.10909.
#pragma once
#include <vector>

#include "reference/problem.hpp"

namespace attest {

/// Numbers with the exponents by which they are aligned: those of their format, in which a
/// subnormal number has the exponent of the smallest normal one.
struct Operands {
  std::vector<double> value;
  std::vector<int> exponent;

  void resize(std::size_t count);
  void set(std::size_t at, double number, Format format);
};

/// One alignment group: `step` products and the accumulator.
struct TensorCore {
  Index step = 16;
  int kept = 25;       // bits behind the leading one of the largest addend
  int precision = 24;  // bits of the sum, truncated
  int floor = -133;    // the least exponent to align to
};

/// The architecture whose groups have `step` products: 4 is V100, 8 is T4, A100 and Ada, 16 is
/// Hopper and later. Where both operands have 8 bits it is Ada's (16) or Hopper's wgmma (32).
TensorCore tensor_core(Index step, Format a, Format b);

/// sum + a.b over `count` neighbours, `core.step` at a time in rising order.
/// Domain: sum is an f32 number. Error: none against the sources for 16-bit operands, subnormal
/// ones included. A P that is no number of a format (a stage made exact) is cut like any other.
/// Special: NaN and infinities follow IEEE 754, except that an operand of 0 always contributes
/// nothing; a sum of 2^128 or more is infinite; no addend but 0 gives +0.
double tensor_sum(const TensorCore& core, double sum, const Operands& a, std::size_t a_first,
                  const Operands& b, std::size_t b_first, std::size_t count);

}  // namespace attest
