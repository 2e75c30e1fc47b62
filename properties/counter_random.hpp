// Random numbers that are a function of where they stand: Philox keyed by the seed, counted by
// (tensor, batch, head, row, column). Nothing is drawn in sequence, so no order of evaluation, no
// shape and no thread count can change a value. Knows nothing of formats or of what is computed.
#pragma once
#include <Random123/philox.h>

#include <array>
#include <cstdint>

#include "reference/problem.hpp"

namespace attest {

/// Which stream a number belongs to. Part of the meaning of every stored case: never renumber.
enum class Stream : std::uint32_t {
  q = 1,
  k = 2,
  v = 3,
  bias = 4,
  mask = 5,
  sinks = 6,
  other = 7,
  setting = 8,
  fit = 9,
  narrowing = 10,
  sample = 11
};

/// 128 bits for one coordinate. Batch entries below 2^24 are told apart; -1 may stand for "none".
inline std::array<std::uint32_t, 4> random_bits(std::uint64_t seed, Stream stream, Index batch,
                                                Index head, Index row, Index column) {
  const auto word = [](auto number) { return static_cast<std::uint32_t>(number); };
  const r123::Philox4x32 philox;
  const r123::Philox4x32::ctr_type counter{
      {(word(batch) & 0xffffffU) | (word(stream) << 24), word(head), word(row), word(column)}};
  const r123::Philox4x32::key_type key{{word(seed), word(seed >> 32)}};
  const auto bits = philox(counter, key);
  return {bits[0], bits[1], bits[2], bits[3]};
}

/// Bell-shaped, mean 0, variance 1, inside +-4.9: the sum of eight 16-bit uniforms (Irwin-Hall).
/// Error: none to speak of across machines: integers, then one correctly rounded multiplication.
inline double bell(const std::array<std::uint32_t, 4>& bits) {
  std::int64_t sum = 0;
  for (const std::uint32_t word : bits) sum += (word & 0xffffU) + (word >> 16);
  // 16 halves of 65535 is the mean, doubled; sqrt(12/8) / 65536 brings the variance to 1.
  constexpr double kToUnitVariance = 1.2247448713915890 / 65536;
  return static_cast<double>(2 * sum - 8 * 65535) * (kToUnitVariance / 2);
}

}  // namespace attest
