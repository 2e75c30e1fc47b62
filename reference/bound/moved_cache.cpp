// The letters are those of bound/README.md, "Moved caches".
#include "reference/bound/moved_cache.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/roundings.hpp"
#include "reference/bound/scores.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

/// What one row's terms say: the weight of each key and how far its logit may move.
struct Moves {
  std::vector<Index> keys;
  std::vector<double> share, exponent;
  double most = 0;     // the largest move of a logit
  double shifted = 0;  // S
  bool judged = true;
};

Moves moves_of(const bound::Row& row, const bound::Rows& q, const bound::Rows& k,
               const double* k_error) {
  const Problem& p = row.problem;
  const bound::Scores scores = bound::scores_of(row, q, k);
  Moves moves;
  moves.judged = scores.judged;
  double largest = -bound::kInfinity, sum = 0;
  for (const auto* terms : {&scores.keys, &scores.sink}) {
    for (const bound::Term& term : *terms) largest = std::max(largest, term.logit);
  }
  for (const bound::Term& term : scores.sink) sum += std::exp(term.logit - largest);
  for (const bound::Term& term : scores.keys) {
    double move = 0;
    for (Index c = 0; c < p.head_dim; ++c) {
      move += std::fabs(q.row(row.i)[c]) * k_error[term.j * p.head_dim + c];
    }
    move *= std::fabs(static_cast<double>(p.softmax_scale));
    if (p.softcap > 0) move = std::min(move, 2 * p.softcap);
    moves.keys.push_back(term.j);
    moves.exponent.push_back(move);
    moves.share.push_back(std::exp(term.logit - largest));
    sum += moves.share.back();
    moves.most = std::max(moves.most, move);
    if (!std::isfinite(move)) moves.judged = false;
  }
  for (std::size_t n = 0; n < moves.keys.size(); ++n) {
    moves.share[n] /= sum;
    moves.shifted += moves.share[n] * std::expm1(moves.exponent[n]);
  }
  return moves;
}

double column_bound(const Moves& moves, const bound::Rows& v, const double* v_error, Index c,
                    bool sink) {
  double o = 0, low = sink ? 0 : bound::kInfinity, high = sink ? 0 : -bound::kInfinity, own = 0;
  for (std::size_t n = 0; n < moves.keys.size(); ++n) {
    const Index j = moves.keys[n];
    const double number = v.row(j)[c];
    o += moves.share[n] * number;
    low = std::min(low, number);
    high = std::max(high, number);
    own = std::max(own, v_error[j * v.width + c]);
  }
  double spread = 0;
  for (std::size_t n = 0; n < moves.keys.size(); ++n) {
    spread +=
        moves.share[n] * std::expm1(moves.exponent[n]) * std::fabs(v.row(moves.keys[n])[c] - o);
  }
  const double hull = high - low;
  const double moved = moves.shifted < 0.5 ? std::min(hull, spread / (1 - moves.shifted)) : hull;
  return bound::promise((moved + own) * (1 + bound::kEvaluation));
}

}  // namespace

Bounds moved_cache_bounds(const Problem& problem, const Values& values, const CacheError& error) {
  const Problem& p = problem;
  Bounds bounds;
  const std::size_t rows = row_count(p);
  bounds.o.assign(rows * static_cast<std::size_t>(p.head_dim_v), bound::kInfinity);
  bounds.lse.assign(rows, bound::kInfinity);
  const PrecisionPath path;
  const double base = p.lse_base == LogBase::two ? 1 / std::log(2.0) : 1;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      const Index g = h / (p.num_heads_q / p.num_heads_kv), keys = key_length(p, b);
      const bound::Rows q = bound::rows_of(values.q, {}, b, h, query_length(p, b));
      const bound::Rows k = bound::rows_of(values.k, values.k_scales, b, g, keys);
      const bound::Rows v = bound::rows_of(values.v, values.v_scales, b, g, keys);
      const double* k_error = error.k.data() + values.k.offset(b, g, 0, 0);
      const double* v_error = error.v.data() + values.v.offset(b, g, 0, 0);
      for (Index i = 0; i < query_length(p, b); ++i) {
        const Moves moves = moves_of({p, values, path, b, h, i}, q, k, k_error);
        const std::size_t row = row_number(p, b, h, i);
        const bool empty = moves.keys.empty();
        for (Index c = 0; c < p.head_dim_v; ++c) {
          bounds.o[row * static_cast<std::size_t>(p.head_dim_v) + static_cast<std::size_t>(c)] =
              empty          ? 0
              : moves.judged ? column_bound(moves, v, v_error, c, values.sinks.has_value())
                             : bound::kInfinity;
        }
        if (moves.judged) {
          bounds.lse[row] = bound::promise(moves.most * base * (1 + bound::kEvaluation));
        }
      }
    }
  }
  return bounds;
}

}  // namespace attest
