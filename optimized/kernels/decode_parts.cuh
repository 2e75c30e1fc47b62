// What a block of decode takes: which part of the keys, which rows, and where those keys lie in the
// cache. Knows nothing of how they are multiplied.
//
// Parts: of a size that is a power of two, the smallest with which `splits` parts hold the batch
// entry's own keys; tiles begin at multiples of their size in a part. So neither neighbours nor the
// longest sequence of the batch move a key to another part, tile or lane, and nor do further
// tokens, until the sequence outgrows its parts. A tile in which a row sees nothing leaves every
// bit of it.
#pragma once
#include <cstdint>

#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/launchers.hpp"
#include "optimized/kernels/logits.cuh"

namespace attest::kernels {

/// Rows of a KV head that pass over its keys together: those of one mma.m16n8k16.
constexpr int kRowsPerTile = 16;

/// Scratch of one call: parts of all rows, (splits, rows) and (splits, rows, head_dim_v), where row
/// is (b * num_heads_q + h) * queries + i.
struct Parts {
  float* m;
  float* l;
  float* o;
  int64_t rows;
  int splits;
};

inline Parts parts_of(const AttestAttention& attention) {
  const AttestProblem& problem = attention.problem;
  Parts parts{};
  parts.rows = problem.batch * problem.num_heads_q * problem.seqlen_q;
  parts.splits = static_cast<int>(problem.num_splits);
  parts.m = static_cast<float*>(attention.scratch);
  parts.l = parts.m + parts.splits * parts.rows;
  parts.o = parts.l + parts.splits * parts.rows;
  return parts;
}

/// Keys of every part of a sequence but the last.
__device__ inline int part_size(int keys, int splits) {
  const int least = (keys + splits - 1) / splits;
  return least <= 1 ? 1 : 1 << (32 - __clz(least - 1));
}
/// Parts that hold a key.
__device__ inline int part_count(int keys, int splits) {
  const int size = part_size(keys, splits);
  return (keys + size - 1) / size;
}

/// Domain: part < part_count.
__device__ inline KeyRange keys_of_part(int keys, int splits, int part) {
  const int size = part_size(keys, splits);
  return {part * size, min(part * size + size, keys)};
}

/// What one block works on: a part of the keys of one KV head, and a tile of the rows that read it.
struct DecodeBlock {
  int b, kv_head, part, first_row;
  int queries, keys;  // of the batch entry
  int64_t diagonal;
  bool idle;      // no such row, or a part behind the last key: nothing to read or write
  KeyRange mine;  // the keys of the part
  KeyRange seen;  // of those, what the rows of the tile see together
};
/// Blocks are numbered by batch entry, KV head, tile of rows and part, the part fastest.
__device__ inline DecodeBlock decode_block(const AttentionArguments& a, int splits,
                                           unsigned row_tiles) {
  DecodeBlock block{};
  block.part = static_cast<int>(blockIdx.x % splits);
  unsigned rest = blockIdx.x / splits;
  block.first_row = static_cast<int>(rest % row_tiles) * kRowsPerTile;
  rest /= row_tiles;
  block.kv_head = static_cast<int>(rest % a.num_heads_kv);
  block.b = static_cast<int>(rest / a.num_heads_kv);
  block.queries = query_count(a, block.b);
  block.keys = key_count(a, block.b);
  block.diagonal = diagonal_of(a, block.queries, block.keys);
  const int group = a.num_heads_q / a.num_heads_kv;
  const int last_row = min(block.first_row + kRowsPerTile, group * block.queries) - 1;
  block.idle = last_row < block.first_row || block.part >= part_count(block.keys, splits);
  if (!block.idle) {
    // Both ends of what a row sees never decrease from query to query.
    const auto seen_by = [&](int row) {
      return keys_seen_by(a, row / group + block.diagonal, block.keys);
    };
    block.mine = keys_of_part(block.keys, splits, block.part);
    block.seen = {max(block.mine.begin, seen_by(block.first_row).begin),
                  min(block.mine.end, seen_by(last_row).end)};
  }
  return block;
}

/// One of the rows of a block's tile.
struct PackedRow {
  int head, query;
  bool live;       // whether there is such a query
  KeyRange range;  // what it sees of the part
};
__device__ inline PackedRow packed_row(const AttentionArguments& a, const DecodeBlock& block,
                                       int row_of_tile) {
  // Rows of a KV head are numbered query by query: row r is query r / group of head r % group.
  const int group = a.num_heads_q / a.num_heads_kv;
  const int row = block.first_row + row_of_tile;
  PackedRow packed{block.kv_head * group + row % group, row / group, false, {0, 0}};
  packed.live = packed.query < block.queries;
  if (packed.live) {
    const KeyRange seen = keys_seen_by(a, packed.query + block.diagonal, block.keys);
    packed.range = {max(seen.begin, block.mine.begin), min(seen.end, block.mine.end)};
  }
  return packed;
}

/// Where in Parts the row's results of this block go, in m and l; in o times head_dim_v.
__device__ inline int64_t place_in_parts(const AttentionArguments& a, const Parts& parts,
                                         const DecodeBlock& block, const PackedRow& row) {
  return block.part * parts.rows +
         (static_cast<int64_t>(block.b) * a.num_heads_q + row.head) * a.seqlen_q + row.query;
}

/// Where the keys of a tile lie in k and v, -1: nowhere, to be taken for a row of zeros.
template <int kKeys>
struct KeyTile {
  int64_t k[kKeys], v[kKeys];
  float k_scale[kKeys], v_scale[kKeys];
};

/// Looks up keys j0 to j0 + kKeys - 1 of a block, of which those are brought that it sees. One per
/// thread; a barrier must follow.
template <int kKeys>
__device__ inline void find_keys(const AttentionArguments& a, const DecodeBlock& block, int j0,
                                 KeyTile<kKeys>& tile) {
  const int n = static_cast<int>(threadIdx.x);
  if (n >= kKeys) {
    return;
  }
  const bool there = contains(block.seen, j0 + n);
  const CachePlace place = there ? a.cache.place(block.b, j0 + n) : CachePlace{0, 0};
  tile.k[n] = there ? a.k.offset(place.block, block.kv_head, place.slot) : -1;
  tile.v[n] = there ? a.v.offset(place.block, block.kv_head, place.slot) : -1;
  tile.k_scale[n] = there ? scale_at(a.k_scales, block.kv_head, place) : 1.0F;
  tile.v_scale[n] = there ? scale_at(a.v_scales, block.kv_head, place) : 1.0F;
}

/// Rows that read one KV head, in tiles.
inline int64_t packed_rows(const AttestProblem& problem) {
  return problem.num_heads_q / problem.num_heads_kv * problem.seqlen_q;
}
inline int64_t row_tiles_of(const AttestProblem& problem) {
  return (packed_rows(problem) + kRowsPerTile - 1) / kRowsPerTile;
}

}  // namespace attest::kernels
