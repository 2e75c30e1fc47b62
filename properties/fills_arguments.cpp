// How optional arguments are filled, and in which styles. Like the fills: a function of the seed
// and the coordinates, by correctly rounded operations only.
#include "properties/fills_arguments.hpp"

#include <cmath>
#include <limits>

#include "properties/counter_random.hpp"

namespace attest {
namespace {

/// One number per case and argument, to choose a style.
std::uint32_t style(std::uint64_t seed, Stream stream, std::uint32_t styles) {
  return random_bits(seed, stream, -1, -1, -1, -1)[0] % styles;
}

Tensor bias(const Problem& p, std::uint64_t seed) {
  Tensor tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv});
  // One case in two has holes: entries of -inf, one in eight.
  const bool holes = style(seed, Stream::bias, 2) == 1;
  Index flat = 0;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      for (Index i = 0; i < p.seqlen_q; ++i) {
        for (Index j = 0; j < p.seqlen_kv; ++j) {
          const auto bits = random_bits(seed, Stream::bias, b, h, i, j);
          const bool hole = holes && bits[3] % 8U == 0;
          tensor.set(flat++, hole ? -std::numeric_limits<double>::infinity() : bell(bits));
        }
      }
    }
  }
  return tensor;
}

bool visible_in_style(std::uint32_t style, std::uint64_t seed, Index b, Index i, Index j) {
  const std::uint32_t bits = random_bits(seed, Stream::mask, b, 0, i, j)[0];
  switch (style) {
    case 0:  // three in four, at random
    case 6:
    case 7:
      return bits % 4U != 0;
    case 1:  // the first tile is hidden from every row, whichever of 16, 32 and 64 a tile is
      return j >= 64 || (j >= 32 && i % 2 == 1) || (j >= 16 && i % 4 == 2);
    case 2:  // whole rows are hidden: the first, then every fifth
      return i % 5 != 0;
    case 3:  // every second group of 16 is hidden, so often the last tile
      return (j / 16) % 2 == 0;
    case 4:  // one key in sixteen: rows with a single visible key, and some with none
      return bits % 16U == 0;
    default:  // everything is visible: the argument must then change nothing
      return true;
  }
}

VisibilityMask mask(const Problem& p, std::uint64_t seed) {
  VisibilityMask result{p.batch, p.seqlen_q, p.seqlen_kv, {}};
  const std::uint32_t chosen = style(seed, Stream::mask, 8);
  for (Index b = 0; b < p.batch; ++b) {
    for (Index i = 0; i < p.seqlen_q; ++i) {
      for (Index j = 0; j < p.seqlen_kv; ++j) {
        result.visible.push_back(visible_in_style(chosen, seed, b, i, j) ? 1 : 0);
      }
    }
  }
  return result;
}

/// ALiBi's geometric slopes: for n heads, n a power of two, 2^(-8/n), its square, and so on; for
/// other numbers of heads those of the next smaller power of two, then every second slope of
/// the next larger one (Press, Smith, Lewis 2021, and the authors' code).
/// Error: correctly rounded square roots and products, hence the same bits everywhere.
Tensor slopes(Index heads) {
  Tensor tensor(Format::f32, {1, 1, 1, heads});
  Index smaller = 1;
  while (2 * smaller <= heads) smaller *= 2;
  const auto ratio_for = [](Index count) {
    double ratio = 1.0 / 256;
    for (Index n = 1; n < count; n *= 2) ratio = std::sqrt(ratio);
    return ratio;
  };
  double slope = 1;
  for (Index h = 0; h < smaller; ++h) tensor.set(h, slope *= ratio_for(smaller));
  const double finer = ratio_for(2 * smaller);
  slope = finer;
  for (Index h = smaller; h < heads; ++h, slope *= finer * finer) tensor.set(h, slope);
  return tensor;
}

Tensor sinks(Index heads, std::uint64_t seed) {
  Tensor tensor(Format::f32, {1, 1, 1, heads});
  // One case in three has a sink of 200 on every second head: it must join the maximum.
  const bool large = style(seed, Stream::sinks, 3) == 0;
  for (Index h = 0; h < heads; ++h) {
    const double ordinary = bell(random_bits(seed, Stream::sinks, 0, h, 0, 0));
    tensor.set(h, large && h % 2 == 0 ? 200.0 : ordinary);
  }
  return tensor;
}

}  // namespace

void fill_arguments(const Problem& problem, std::uint64_t seed, Values& values) {
  if (problem.bias) values.bias = bias(problem, seed);
  if (problem.mask) values.mask = mask(problem, seed);
  if (problem.alibi) values.alibi_slopes = slopes(problem.num_heads_q);
  if (problem.sinks) values.sinks = sinks(problem.num_heads_q, seed);
}

}  // namespace attest
