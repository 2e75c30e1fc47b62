// The certified oracle in double: 64 rows at a time, two matrix products by Eigen and between them
// one pass over the logits that also adds up how wrong they may be. Letters:
// notes/0002-certified.md.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/oracle/exponential.hpp"
#include "reference/oracle/numbers.hpp"
#include "reference/oracle/radius.hpp"
#include "reference/oracle/tiers.hpp"

namespace attest::oracle {
namespace {

using Vector = Eigen::Matrix<double, 1, Eigen::Dynamic>;

constexpr Index kTileRows = 64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// In the place of a logit that nobody sees: far below every sum of products of f32 numbers.
constexpr double kHidden = -0x1p1000;

double fill_of(const Problem& problem) {
  return problem.empty_row == EmptyRow::nan ? kNaN : 0.0;
}

/// The rows of one query head, `first` to `end`, and the keys that any of them may see.
struct Tile {
  Index b, h, first, end;
  KeyRange keys;
  Index rows() const { return end - first; }
  Index width() const { return keys.end - keys.first; }
};

Tile tile_of(const Problem& problem, Index b, Index h, Index first) {
  Tile tile{b, h, first, std::min(query_length(problem, b), first + kTileRows), {}};
  for (Index i = first; i < tile.end; ++i) {
    const KeyRange range = visible_range(problem, b, i);
    if (range.first == range.end) continue;
    if (tile.width() == 0) tile.keys = range;
    tile.keys.first = std::min(tile.keys.first, range.first);
    tile.keys.end = std::max(tile.keys.end, range.end);
  }
  return tile;
}

/// The query heads of one KV head of one batch entry.
class Group {
 public:
  Group(const Problem& problem, const Values& values, Index b, Index kv_head, Certified& result)
      : p_(problem),
        values_(values),
        k_(numbers_of(values.k, values.k_scales, b, kv_head, key_length(problem, b))),
        v_(numbers_of(values.v, values.v_scales, b, kv_head, key_length(problem, b))),
        result_(result) {}

  void attend(Index b, Index h) {
    q_ = numbers_of(values_.q, {}, b, h, query_length(p_, b));
    slope_ = values_.alibi_slopes ? values_.alibi_slopes->at(h) : 0;
    sink_ = values_.sinks ? values_.sinks->at(h) : -HUGE_VAL;
    for (Index first = 0; first < query_length(p_, b); first += kTileRows) {
      attend(tile_of(p_, b, h, first));
    }
  }

 private:
  void attend(const Tile& tile) {
    const Index width = tile.width();
    padded_ = (width + kLanes - 1) / kLanes * kLanes;
    s_.resize(tile.rows(), padded_);
    error_.assign(static_cast<std::size_t>(padded_), 0);
    seen_.assign(static_cast<std::size_t>(padded_), 0);
    s_.leftCols(width).noalias() = q_.rows.middleRows(tile.first, tile.rows()) *
                                   k_.rows.middleRows(tile.keys.first, width).transpose();
    s_.rightCols(padded_ - width).setZero();
    std::vector<Shared> shared;
    for (Index i = tile.first; i < tile.end; ++i) shared.push_back(weigh(tile, i));
    o_.noalias() = s_.leftCols(width) * v_.rows.middleRows(tile.keys.first, width);
    Vector largest = Vector::Zero(p_.head_dim_v);
    for (Index j = 0; j < width; ++j) {
      if (seen_[static_cast<std::size_t>(j)] == 0) continue;
      largest = largest.cwiseMax(v_.rows.row(tile.keys.first + j).cwiseAbs());
    }
    const auto width_v = static_cast<std::size_t>(p_.head_dim_v);
    for (Index i = tile.first; i < tile.end; ++i) {
      const Shared& row = shared[static_cast<std::size_t>(i - tile.first)];
      double* const o = result_.truth.o.data() + number_of(tile, i) * width_v;
      double* const radius = result_.o_radius.data() + number_of(tile, i) * width_v;
      const double* const sums = o_.row(i - tile.first).data();
      for (std::size_t c = 0; c < width_v; ++c) {
        o[c] = row.empty ? fill_of(p_) : sums[c] / row.weights;
        radius[c] = row.radius * largest(static_cast<Index>(c));
        if (row.empty) radius[c] = 0;
      }
    }
  }

  /// What the elements of one row of O have in common.
  struct Shared {
    double weights = 1, radius = HUGE_VAL;
    bool empty = false;
  };

  std::size_t number_of(const Tile& tile, Index i) const {
    return row_number(p_, tile.b, tile.h, i);
  }

  /// Turns row i from inner products into weights and finds its lse.
  Shared weigh(const Tile& tile, Index i) {
    double* const s = s_.row(i - tile.first).data();
    double& lse = result_.truth.lse[number_of(tile, i)];
    double& lse_radius = result_.lse_radius[number_of(tile, i)];
    make_logits(tile, i, s);
    const Hidden hidden = hide(tile, i, s);
    if (hidden.visible == 0) {
      std::fill(s, s + padded_, 0.0);
      const Enclosed enclosed = in_base_of(p_, values_.sinks ? sink_ : lse_without_keys(p_), 0);
      lse = enclosed.value;
      lse_radius = enclosed.radius;
      return {1, 0, true};
    }
    const bool special = hidden.special || q_.special[static_cast<std::size_t>(i)] ||
                         !std::isfinite(slope_) || !(sink_ < HUGE_VAL);
    if (special || !softcap_is_plain(p_)) {
      std::fill(s, s + padded_, 0.0);
      lse = special ? kNaN : 0;
      lse_radius = HUGE_VAL;
      return {};
    }
    const double m = std::max(sink_, largest_of(s));
    RowSums sums = exponentiate(s, m);
    sums.terms = static_cast<double>(hidden.visible + 1);
    if (sink_ > -HUGE_VAL && m - sink_ < kVanish) {
      const double weight = exp_minus(m - sink_);
      sums.weights += weight;
      sums.exponents += weight * kUnit * (m - sink_);
    }
    const RowRadius radius = radius_of(sums, {kUnit, kExpError});
    const Logarithm log = log_of(sums.weights);
    const double sum = m + log.value;
    const Enclosed enclosed =
        in_base_of(p_, sum, (radius.sum + log.error + kUnit * std::fabs(sum)) * kRoom);
    lse = enclosed.value;
    lse_radius = enclosed.radius;
    return {sums.weights, radius.o, false};
  }

  /// From inner products to logits, and their errors: W1 of the note, with Cauchy and Schwarz for
  /// the sum of magnitudes.
  void make_logits(const Tile& tile, Index i, double* s) {
    const double scale = p_.softmax_scale, cap = p_.softcap;
    const double inner = q_.norm[static_cast<std::size_t>(i)];
    const double* const norms = k_.norm.data() + tile.keys.first;
    const auto head_dim = static_cast<double>(p_.head_dim);
    const double per_norm = std::fabs(scale) * inner * gamma(head_dim + 1, kUnit) * kRoom;
    double* const error = error_.data();
    const Index width = tile.width();
    for (Index j = 0; j < width; ++j) {
      s[j] *= scale;
      error[j] = per_norm * norms[j];
    }
    if (cap > 0) {
      for (Index j = 0; j < padded_; j += kLanes) {
        store(s + j, cap * tanh_of(load(s + j) / cap));
        store(error + j, load(error + j) + 7 * kUnit * cap);
      }
    }
    if (values_.bias) {
      const Index offset = values_.bias->offset(tile.b, tile.h, i, tile.keys.first);
      for (Index j = 0; j < width; ++j) {
        s[j] += values_.bias->at(offset + j);
        error[j] += kUnit * std::fabs(s[j]);
      }
    }
    if (values_.alibi_slopes) {
      const Index position = i + diagonal(p_, tile.b) - tile.keys.first;
      for (Index j = 0; j < width; ++j) {
        const double alibi = slope_ * std::fabs(static_cast<double>(position - j));
        s[j] -= alibi;
        error[j] += kUnit * (std::fabs(alibi) + std::fabs(s[j]));
      }
    }
  }

  struct Hidden {
    Index visible = 0;     // keys
    bool special = false;  // one of them holds what is not finite
  };

  /// Puts kHidden in the place of what row i does not see, and notes what it does.
  Hidden hide(const Tile& tile, Index i, double* s) {
    KeyRange range = visible_range(p_, tile.b, i);
    if (range.first == range.end) return {};
    range.first -= tile.keys.first;
    range.end -= tile.keys.first;
    std::fill(s, s + range.first, kHidden);
    std::fill(s + range.end, s + padded_, kHidden);
    Hidden hidden{range.end - range.first, false};
    if (!values_.bias && !values_.mask && !k_.any_special && !v_.any_special) {
      std::fill(seen_.begin() + range.first, seen_.begin() + range.end, 1);
      return hidden;
    }
    for (Index j = range.first; j < range.end; ++j) {
      const auto key = static_cast<std::size_t>(tile.keys.first + j);
      if (s[j] == -HUGE_VAL ||
          (values_.mask && !values_.mask->at(tile.b, i, tile.keys.first + j))) {
        s[j] = kHidden;
        error_[static_cast<std::size_t>(j)] = 0;
        --hidden.visible;
        continue;
      }
      seen_[static_cast<std::size_t>(j)] = 1;
      if (!(s[j] < HUGE_VAL) || k_.special[key] || v_.special[key]) hidden.special = true;
    }
    return hidden;
  }

  double largest_of(const double* s) const {
    Lanes largest = lanes_of(kHidden);
    for (Index j = 0; j < padded_; j += kLanes) largest = larger(load(s + j), largest);
    return std::max(largest[0], largest[1]);
  }

  /// From logits to weights, W2 of the note. What cannot be above exp(-kVanish) becomes 0.
  RowSums exponentiate(double* s, double m) const {
    const double* const error = error_.data();
    Lanes weights = lanes_of(0), exponents = lanes_of(0), largest = lanes_of(0);
    for (Index j = 0; j < padded_; j += kLanes) {
      const Lanes distance = m - load(s + j);
      Lanes exponent = load(error + j) + kUnit * distance;
      const LaneBits counts = distance - exponent < kVanish;
      Lanes weight = exp_minus(smaller(distance, lanes_of(kVanish)));
      weight = counts ? weight : lanes_of(0);
      exponent = counts ? exponent : lanes_of(0);
      store(s + j, weight);
      weights += weight;
      exponents += weight * exponent;
      largest = larger(exponent, largest);
    }
    return {0, weights[0] + weights[1], (exponents[0] + exponents[1]) * kRoom,
            std::max(largest[0], largest[1]) * kRoom};
  }

  const Problem& p_;
  const Values& values_;
  Numbers k_, v_, q_;
  Certified& result_;
  double slope_ = 0, sink_ = 0;
  Index padded_ = 0;           // the width of a tile, made a multiple of kLanes
  Matrix s_, o_;               // logits, then weights; sums of w v
  std::vector<double> error_;  // of the logits of one row
  std::vector<std::uint8_t> seen_;
};

}  // namespace

Certified in_double(const Problem& problem, const Values& values) {
  Certified result;
  result.truth.extent = {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v};
  const std::size_t rows = row_count(problem);
  const std::size_t elements = rows * static_cast<std::size_t>(problem.head_dim_v);
  for (auto* numbers : {&result.truth.o, &result.truth.o_tail, &result.o_radius}) {
    numbers->resize(elements);
  }
  for (auto* numbers : {&result.truth.lse, &result.truth.lse_tail, &result.lse_radius}) {
    numbers->resize(rows);
  }
  result.tier.assign(rows, Tier::f64);
  const Index group = problem.num_heads_q / problem.num_heads_kv;
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index kv_head = 0; kv_head < problem.num_heads_kv; ++kv_head) {
      Group heads(problem, values, b, kv_head, result);
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) heads.attend(b, h);
    }
  }
  return result;
}

}  // namespace attest::oracle
