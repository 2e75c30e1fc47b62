// The letters and steps are those of bound/README.md.
#include "reference/bound/scores.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/inner_product.hpp"
#include "reference/bound/roundings.hpp"
#include "reference/oracle/exact.hpp"

namespace attest::bound {

Rows rows_of(const Tensor& tensor, const std::optional<Tensor>& scales, Index b, Index h,
             Index count, std::optional<Format> operand) {
  Rows rows{.width = tensor.extent[3], .numbers = {}, .norm = {}, .scale = {}, .sizes = {}};
  for (Index i = 0; i < count; ++i) {
    double norm = 0;
    rows.scale.push_back(scale_at(scales, b, h, i));
    for (Index c = 0; c < rows.width; ++c) {
      const double stored = tensor.at(b, h, i, c), scale = rows.scale.back();
      rows.numbers.push_back(stored * scale);
      const double size = std::fabs(rows.numbers.back());
      norm += size;
      rows.sizes.push_back(operand ? aligned(*operand, stored) * scale : size);
    }
    rows.norm.push_back(norm);
  }
  return rows;
}

namespace {

/// S3: of a bias with which the sum of q.k may begin, what the additions of that sum do to it.
double first_term_error(const Row& row, bool follow) {
  if (follow && row.path.in_order) return 0;
  const auto head_dim = static_cast<double>(row.problem.head_dim);
  return roundings(sum_roundings(row.path, row.problem.input, head_dim, head_dim));
}

/// S3: by how much ALiBi may move all logits of the row, and the sink with them, where it counts
/// from a key: where no key is behind the row's own position.
double moved_by(const Row& row) {
  const Problem& p = row.problem;
  if (!row.values.alibi_slopes || !(p.causal || p.window_right == 0)) return 0;
  const auto place = static_cast<double>(row.i + diagonal(p, row.b));
  const auto keys = static_cast<double>(key_length(p, row.b));
  return std::fabs(row.values.alibi_slopes->at(row.h)) *
         std::max(std::fabs(place), std::fabs(keys - place));
}

/// S1 to S3: the logit of key j and how far off a kernel may compute it.
Term score(const Row& row, Index j, const Rows& q, const Rows& k, bool follow, double moved,
           bool& judged) {
  const Problem& p = row.problem;
  const double factor = k.scale_of(j), k_norm = k.norm_of(j), q_norm = q.norm_of(row.i);
  const InnerProduct product = inner_product(row, q, k, j, follow);  // S1 and S2
  const double scale = std::fabs(static_cast<double>(p.softmax_scale)),
               head_dim = static_cast<double>(p.head_dim);
  // S2: a scale of the cache may multiply what is flushed, or have divided what that meets.
  const double flushed = kFlush * std::max(factor, 1 / factor) *
                         (scale * (q_norm + k_norm + 2 * head_dim + 1) +
                          2 * (k_norm + head_dim + product.magnitude) + 8);
  double error = scale * product.error + flushed;
  double logit = p.softmax_scale * product.sum;
  double magnitude = std::fabs(logit) + error;
  // A score that is rounded, as q.k and again with the scale.
  const double rounds = score_roundoff(row.path), step = score_step(row.path);
  const auto round_score = [&](double size) { error += rounds * (size + error) + step; };
  if (rounds > 0) {
    error += scale * step;
    round_score(std::fabs(logit));
    round_score(std::fabs(logit));
    magnitude = std::fabs(logit) + error;
  }
  double largest = std::max(1.0, scale) * std::max(1.0, 1 / factor) * (product.magnitude + error) +
                   q_norm * scale;
  if (!(factor >= 1 / kCacheScaleMost && factor <= kCacheScaleMost)) judged = false;

  if (p.softcap > 0) {  // S3
    const double capped = std::min(magnitude, p.softcap);
    const double relative =
        declared(row.path.tanh_error, kFaithful) + declared(row.path.division_error, 0);
    error += (relative + kSoftcapRoundings * kU) * (capped + error) + 2 * kFlush * p.softcap;
    // The quotient, its tanh, the product with the cap, rounded.
    error += (3 * rounds * (capped + error) + 2 * p.softcap * step) / (1 - 3 * rounds) + step;
    logit = p.softcap * std::tanh(logit / p.softcap);
    magnitude = capped;
    if (p.softcap < kFlush || p.softcap > kOverflow) judged = false;
  }
  double terms = 0, own = 0;
  if (row.values.bias) {
    const double bias = row.values.bias->at(row.b, row.h, row.i, j);
    logit += bias;
    magnitude += std::fabs(bias);
    own += (kTermRoundings * kU + first_term_error(row, follow)) * std::fabs(bias);
    ++terms;
  }
  if (row.values.alibi_slopes) {
    const double slope = row.values.alibi_slopes->at(row.h);
    const auto place = static_cast<double>(row.i + diagonal(p, row.b));
    const auto keys = static_cast<double>(key_length(p, row.b)), key = static_cast<double>(j);
    double reach = std::fabs(place - key);
    logit -= slope * reach;
    if (moved > 0) {
      reach = std::max({reach, key, keys - key});
    }
    magnitude += std::fabs(slope) * reach;
    own += alibi_error(row.path) * std::fabs(slope) * reach + kFlush * reach;
    ++terms;
  }
  error += own + terms * (kU * magnitude + kFlush);
  if (rounds > 0) {
    for (double left = terms; left > 0; --left) round_score(magnitude);
    if (row.values.alibi_slopes) round_score(magnitude);  // slope * distance
  }
  largest = std::max(largest, magnitude + error);
  const double limit = rounds > 0 ? facts(row.path.scores_format).max_finite : kOverflow;
  const double widest = std::max(product.magnitude, magnitude + error);
  if (!(largest < kOverflow && (rounds == 0 || widest < limit / 2))) judged = false;  // or NaN
  return {j, logit, error, moved};
}

}  // namespace

Scores scores_of(const Row& row, const Rows& q, const Rows& k, bool follow) {
  Scores scores;
  const double moved = moved_by(row);
  for (Index j = 0; j < key_length(row.problem, row.b); ++j) {
    if (!visible(row.problem, row.values, row.b, row.i, j)) continue;
    scores.readable.push_back(j);
    const bool hidden =
        row.values.bias && row.values.bias->at(row.b, row.h, row.i, j) == -kInfinity;
    if (hidden) {
      // A kernel may add -inf to whatever it computes: that is -inf only if it computes a number.
      const double norm = k.norm_of(j), q_norm = q.norm_of(row.i);
      const double scale = std::max(1.0, std::fabs(static_cast<double>(row.problem.softmax_scale)));
      if (!(norm * q_norm * scale < kOverflow)) scores.judged = false;
      continue;
    }
    scores.keys.push_back(score(row, j, q, k, follow, moved, scores.judged));
  }
  if (row.values.sinks && row.values.sinks->at(row.h) != -kInfinity) {
    const double sink = row.values.sinks->at(row.h);
    double error = kTermRoundings * kU * std::fabs(sink) + kFlush;
    if (moved > 0) error += kU * (std::fabs(sink) + moved) + alibi_error(row.path) * moved;
    error += score_roundoff(row.path) * (std::fabs(sink) + error) + score_step(row.path);
    scores.sink.push_back({-1, sink, error, moved});
    if (!(std::fabs(sink) < kOverflow)) scores.judged = false;
  }
  return scores;
}

}  // namespace attest::bound
