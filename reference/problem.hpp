// Problem: which attention is asked for (extents, formats, mask, conventions), never values.
// Case: a Problem with a named fill and a seed, from which every value follows.
// Data only. Nothing here computes, allocates tensors, or knows of CUDA or files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace attest {

using Index = std::int64_t;

// Enumerators are spelled as they are printed in case lines, on the command line and in reports.
enum class Format : std::uint8_t { f32, f16, bf16, e4m3, e5m2, i8 };
enum class Alignment : std::uint8_t { bottom_right, top_left };
enum class EmptyRow : std::uint8_t { zero, nan };
enum class LogBase : std::uint8_t { e, two, none };  // none: no LSE is asked for
enum class EmptyLse : std::uint8_t { minus_inf, plus_inf };
enum class Layout : std::uint8_t { bhtd, bthd };
enum class Scales : std::uint8_t { none, tensor, head, token };  // one number for all that is named
enum class Rope : std::uint8_t { none, halves, pairs };
/// Tensors that can lie with gaps; `fresh` are the rows that an append is given. `far` is no
/// tensor: the gaps of all others are so wide that the last elements lie beyond 2^31.
enum class Strided : std::uint8_t { q, k, v, o, lse, bias, mask, scales, table, fresh, far };
inline constexpr std::size_t kStridedCount = 10;                 // tensors
inline constexpr std::size_t kStridedWords = kStridedCount + 1;  // and far

inline constexpr Index kUnbounded = -1;

/// Which attention is asked for. The default is the smallest legal Problem: it is the base of the
/// one-line text (only what differs is printed), the target of shrinking, and safe initialisation.
/// Every new field must have a neutral default, so that old case lines keep their meaning.
/// The formula that these fields enter is in reference/README.md.
struct Problem {
  Index batch = 1;
  Index num_heads_q = 1;
  Index num_heads_kv =
      1;  // divides num_heads_q; query head h reads KV head h / (num_heads_q / num_heads_kv)
  Index seqlen_q = 1;    // rows of q per batch entry (the largest, when lengths differ)
  Index seqlen_kv = 1;   // rows of k and v per batch entry that are in use (the largest)
  Index head_dim = 1;    // d_k, width of q and k
  Index head_dim_v = 1;  // d_v, width of v and o
  Format input = Format::f32;
  Format output = Format::f32;
  float softmax_scale =
      1.0F;  // multiplies q.k; the text's default is 1/sqrt(head_dim), see default_scale
  double softcap = 0.0;  // s := softcap * tanh(s / softcap) when positive; 0 is off
  bool causal = false;   // key j visible to query i iff j <= i + diagonal
  Alignment alignment =
      Alignment::bottom_right;      // diagonal: keys - queries, or 0 (per batch entry)
  Index window_left = kUnbounded;   // inclusive: j >= i + diagonal - window_left
  Index window_right = kUnbounded;  // inclusive: j <= i + diagonal + window_right
  bool bias = false;                // Values carries an additive bias, added after softcap
  bool alibi = false;               // Values carries slopes; adds -slope[h] * |i + diagonal - j|
  bool sinks = false;  // Values carries one logit per query head that joins the denominator only
  bool mask = false;   // Values carries an explicit boolean mask, true = visible
  std::vector<Index> seqlens_q = {};    // one per batch entry, each <= queries; empty: all full
  std::vector<Index> seqlens_kv = {};   // one per batch entry, each <= keys; empty: all full
  EmptyRow empty_row = EmptyRow::zero;  // o of a row that sees no key
  EmptyLse empty_lse = EmptyLse::minus_inf;  // lse of such a row, unless it has a sink
  LogBase lse_base = LogBase::e;
  Layout layout = Layout::bhtd;
  std::uint32_t strided = 0;  // a bit per Strided: gaps lie behind its rows, heads and entries
  Index spare_slots = 0;      // cache slots allocated behind `keys`: unreachable memory
  Index num_splits = 1;       // decode: into how many parts the keys are split
  Index chunk = 1;  // cached = recomputed: tokens per step when a sequence is fed in chunks
  std::optional<Format> cache = {};  // of k and v, where it is not `input`
  Scales scales = Scales::none;  // Values carries factors of k and v: per tensor, KV head, token
  Index page_size = 0;           // slots of a page of the cache; 0: the cache is contiguous
  Index page_order = 0;  // which permutation of pages the block table holds; 0: in rising order
  Index ring =
      0;  // slots of a cache in which token j takes slot j mod ring; 0: every token its own
  Rope rope =
      Rope::none;  // append: columns of new keys are turned, (c, c + head_dim/2) or (2c, 2c+1)
  bool operator==(const Problem&) const = default;
};

/// The format in which k and v are stored.
inline Format cache_format(const Problem& problem) {
  return problem.cache.value_or(problem.input);
}

/// Whether replies hold an LSE.
inline bool wants_lse(const Problem& problem) {
  return problem.lse_base != LogBase::none;
}

/// The lse of a row that sees neither a key nor a sink.
inline double lse_without_keys(const Problem& problem) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return problem.empty_lse == EmptyLse::plus_inf ? kInfinity : -kInfinity;
}

/// Whether `tensor` lies with gaps.
inline bool is_strided(const Problem& problem, Strided tensor) {
  return (problem.strided >> static_cast<unsigned>(tensor) & 1U) != 0;
}

/// Whether gaps are so wide that offsets need more than 32 bits.
inline bool is_far(const Problem& problem) {
  return is_strided(problem, Strided::far);
}

/// Slots of a batch entry's cache.
inline Index cache_slots(const Problem& problem) {
  return problem.ring > 0 ? problem.ring : problem.seqlen_kv + problem.spare_slots;
}

/// Query rows of all heads and batch entries, those behind a query length too.
inline std::size_t row_count(const Problem& problem) {
  return static_cast<std::size_t>(problem.batch * problem.num_heads_q * problem.seqlen_q);
}

/// The place of a row among them: (batch, num_heads_q, queries).
inline std::size_t row_number(const Problem& problem, Index b, Index h, Index i) {
  return static_cast<std::size_t>((b * problem.num_heads_q + h) * problem.seqlen_q + i);
}

/// A Problem, the name of a fill (properties/fills.hpp) and a seed: everything a check needs.
struct Case {
  Problem problem;
  std::string fill = "normal";
  std::uint64_t seed = 0;
  bool operator==(const Case&) const = default;
};

}  // namespace attest
