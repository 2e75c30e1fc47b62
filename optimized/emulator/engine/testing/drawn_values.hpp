// Operands of benchmarks and tests that do not matter but must be the same each time.
#pragma once
#include <cstddef>
#include <vector>

namespace attest::emulator {

/// `count` values in [-1, 1).
inline std::vector<float> drawn_values(unsigned seed, std::size_t count) {
  std::vector<float> x(count);
  for (float& f : x) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes, section 7.1
    f = float(seed >> 8) / float(1 << 23) - 1.0f;
  }
  return x;
}

}  // namespace attest::emulator
