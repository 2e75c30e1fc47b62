// Request: what is asked of a subject in one call, a kind per operation; and the tensors that only
// some kinds have. A request refers to what it is made from, which must outlive the call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "reference/values.hpp"

namespace attest {

// Enumerators are spelled as they are printed.
enum class Operation : std::uint8_t { prefill, decode, append, projection, copy_pages };
inline constexpr std::size_t kOperationCount = 5;

/// Append `new_k`, `new_v` rows to a cache: row r of batch entry b is token cache_seqlens[b] + r,
/// for r < new_seqlens[b]. How it is turned, scaled and rounded: reference/README.md. Here a slot
/// is where a token lies in its batch entry (the token's number, or that modulo the ring), whatever
/// pages it is on; a token whose slot is at or behind the capacity is dropped.
struct CacheUpdate {
  Tensor k, v;  // the cache before, (batch, num_heads_kv, capacity, head_dim / head_dim_v), format:
                // cache_format
  Tensor new_k, new_v;  // (batch, num_heads_kv, rows, head_dim / head_dim_v), format: input
  std::vector<Index> cache_seqlens;  // tokens in the cache per batch entry, before
  std::vector<Index> new_seqlens;    // rows to append per batch entry, each <= rows
  // Extents as scales_extent(problem, capacity); written by the append when they are per token.
  std::optional<Tensor> k_scales = {}, v_scales = {};
  // With rope: (1, 1, positions, head_dim), cosines then sines.
  std::optional<Tensor> rope_cos_sin = {};
};

/// Y = X W + bias, accumulated in f32.
struct Projection {
  Tensor x;  // (batch, 1, rows, inner)
  Tensor w;  // (1, 1, inner, columns)
  Format output = Format::f32;
  std::optional<Tensor> bias = {};  // (1, 1, 1, columns) f32
};

/// Page `from` of k and v onto page `to`, for each pair. No page that is written is read.
struct PageCopy {
  Tensor k, v;  // (pages, num_heads_kv, page_size, head_dim / head_dim_v)
  struct Pair {
    Index from, to;
  };
  std::vector<Pair> pairs;
};

/// Prefill, or decode: like prefill over a cache with problem.spare_slots behind the keys, in
/// problem.num_splits splits.
struct Attend {
  Operation operation;
  const Problem& problem;
  const Values& values;
};
struct Append {
  const Problem& problem;
  const CacheUpdate& update;
};
struct Project {
  const Projection& projection;
};
struct CopyPages {
  const Problem& problem;
  const PageCopy& copy;
};
using Request = std::variant<Attend, Append, Project, CopyPages>;

inline Operation operation_of(const Attend& asked) {
  return asked.operation;
}
inline Operation operation_of(const Append&) {
  return Operation::append;
}
inline Operation operation_of(const Project&) {
  return Operation::projection;
}
inline Operation operation_of(const CopyPages&) {
  return Operation::copy_pages;
}
inline Operation operation_of(const Request& request) {
  return std::visit([](const auto& asked) { return operation_of(asked); }, request);
}

}  // namespace attest
