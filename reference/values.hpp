// Tensor and Values: the numbers of a Case, dense and owned, in the format they are stored in.
// How a subject sees them (strides, guard zones, poison) is the business of optimized/plugin.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

using Extent4 = std::array<Index, 4>;

/// Dense, row-major, owned: extent is (batch, head, row, column) and column moves quickest.
/// Unused leading axes have extent 1.
struct Tensor {
  Format format = Format::f32;
  Extent4 extent{0, 0, 0, 0};
  std::vector<std::byte> bytes;

  Tensor() = default;
  Tensor(Format format, Extent4 extent);  // zero-filled

  Index count() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  Index offset(Index b, Index h, Index row, Index column) const {
    return ((b * extent[1] + h) * extent[2] + row) * extent[3] + column;
  }
  /// Exact: every stored number is a double. Index is a flat offset.
  double at(Index flat) const;
  double at(Index b, Index h, Index row, Index column) const {
    return at(offset(b, h, row, column));
  }
  /// Rounds to nearest even into the tensor's format.
  void set(Index flat, double number);
  void set(Index b, Index h, Index row, Index column, double number) {
    set(offset(b, h, row, column), number);
  }
  /// The stored bit pattern, zero-extended.
  std::uint32_t bits(Index flat) const;
  void set_bits(Index flat, std::uint32_t pattern);

  bool operator==(const Tensor&) const = default;  // bit for bit
};

/// Boolean visibility, (batch, query, key), shared by all heads; 1 = visible.
struct VisibilityMask {
  Index batch = 0, queries = 0, keys = 0;
  std::vector<std::uint8_t> visible;
  bool at(Index b, Index i, Index j) const {
    return visible[static_cast<std::size_t>((b * queries + i) * keys + j)] != 0;
  }
  bool operator==(const VisibilityMask&) const = default;
};

/// What a Problem is computed on. k and v hold `keys` rows; spare slots are not part of the values.
struct Values {
  Tensor q;  // (batch, num_heads_q, queries, head_dim)    format: input
  Tensor k;  // (batch, num_heads_kv, keys, head_dim)          format: cache_format
  Tensor v;  // (batch, num_heads_kv, keys, head_dim_v)        format: cache_format
  std::optional<Tensor> bias;          // (batch, num_heads_q, queries, keys)  f32, finite or -inf
  std::optional<Tensor> alibi_slopes;  // (1, 1, 1, num_heads_q)               f32
  std::optional<Tensor> sinks;         // (1, 1, 1, num_heads_q)               f32
  std::optional<VisibilityMask> mask;
  // With problem.scales: what stored k and v are multiplied by, positive and finite f32.
  // (1, 1, 1, 1) per tensor, (1, num_heads_kv, 1, 1) per head, (batch, num_heads_kv, keys, 1) per
  // token.
  std::optional<Tensor> k_scales, v_scales;
  bool operator==(const Values&) const = default;
};

/// Extent of k_scales and v_scales over `slots` slots; all 0 when there are none.
Extent4 scales_extent(const Problem& problem, Index slots);
/// The factor of row (b, h, row) of k or v; 1 when there are none.
double scale_at(const std::optional<Tensor>& scales, Index b, Index h, Index row);

}  // namespace attest
