// The certified oracle in pairs of doubles, row by row: products exact, sums with their errors
// added up beside them (T. Ogita, S. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci.
// Comput. 26, 2005). Letters: notes/0002-certified.md.
#include <algorithm>
#include <cmath>

#include "reference/oracle/double_double.hpp"
#include "reference/oracle/numbers.hpp"
#include "reference/oracle/radius.hpp"
#include "reference/oracle/tiers.hpp"

namespace attest::oracle {
namespace {

constexpr Pair kLog2e{{0x1.71547652b82fep0, 0x1.71547652b82fep0},
                      {0x1.777d0ffda0d24p-56, 0x1.777d0ffda0d24p-56}};

/// sum + sum_low += a b, to all columns at once; a b must be exact in double.
void add_exact_products(double a, const double* b, double* sum, double* sum_low, Index count) {
  for (Index n = 0; n < count; ++n) {
    const double product = a * b[n], total = sum[n] + product, part = total - sum[n];
    sum_low[n] += (sum[n] - (total - part)) + (product - part);
    sum[n] = total;
  }
}

/// The same for a = high + low with high = head + rest of 26 and 27 bits, and b of 26 bits.
void add_products(double high, double low, const double* b, double* sum, double* sum_low,
                  Index count) {
  const Pair split = halves(lanes_of(high));
  const double head = split.high[0], rest = split.low[0];
  for (Index n = 0; n < count; ++n) {
    const double product = high * b[n];
    const double error = (head * b[n] - product) + rest * b[n];
    const double total = sum[n] + product, part = total - sum[n];
    sum_low[n] += ((sum[n] - (total - part)) + (product - part)) + (error + low * b[n]);
    sum[n] = total;
  }
}

/// Two matrices whose sum is `rows`: of at most 26 bits an element, which scaled 8-bit numbers have
/// not. Without scales the second is empty.
struct Halves {
  Matrix first, second;
};
Halves halves_of(const Matrix& rows, bool scaled) {
  if (!scaled) return {rows, Matrix(0, rows.cols())};
  Halves parts{rows, Matrix(rows.rows(), rows.cols())};
  for (Index n = 0; n < rows.size(); ++n) {
    const Pair split = halves(lanes_of(rows.data()[n]));
    parts.first.data()[n] = split.high[0];
    parts.second.data()[n] = split.low[0];
  }
  return parts;
}

/// Domain: any pair but NaN. Error: at most 5 kPairUnit, absolute; note 0002, T.
Pair tanh_of(const Pair& x) {
  const LaneBits negative = x.high < 0.0;
  Pair size{negative ? -2.0 * x.high : 2.0 * x.high, negative ? -2.0 * x.low : 2.0 * x.low};
  const LaneBits far = size.high > kPairVanish;
  size = {far ? lanes_of(kPairVanish) : size.high, far ? lanes_of(0) : size.low};
  const Pair e = exp_minus(size);
  const Pair t = (-e + lanes_of(1)) / (e + lanes_of(1));
  return {negative ? -t.high : t.high, negative ? -t.low : t.low};
}

/// The rows of one KV head of one batch entry, asked for one by one.
class Group {
 public:
  Group(const Problem& problem, const Values& values, Index b, Index kv_head, Certified& result)
      : p_(problem), values_(values), b_(b), result_(result) {
    const Index keys = key_length(problem, b);
    const Numbers k = numbers_of(values.k, values.k_scales, b, kv_head, keys);
    const Numbers v = numbers_of(values.v, values.v_scales, b, kv_head, keys);
    k_norm_ = k.norm;
    k_ = halves_of(k.rows.transpose(), values.k_scales.has_value());
    v_ = halves_of(v.rows, values.v_scales.has_value());
    v_magnitude_ = v.rows.cwiseAbs();
  }

  void attend(Index h, Index i) {
    const std::size_t row = row_number(p_, b_, h, i);
    find_visible(h, i);
    if (visible_ == 0) {  // all is right but the sink in another base
      if (values_.sinks) write_lse(row, pair_of(values_.sinks->at(h)), 0);
      return;
    }
    const double inner = add_inner_products(h, i);
    make_logits(h, i);
    weigh(h, i, inner);
    divide(row);
  }

 private:
  std::size_t padded() const { return sees_.size(); }  // to whole lanes; nobody sees the rest
  Index key(std::size_t n) const { return range_.first + static_cast<Index>(n); }

  void find_visible(Index h, Index i) {
    range_ = visible_range(p_, b_, i);
    const Index width = range_.end - range_.first;
    sees_.assign(static_cast<std::size_t>((width + kLanes - 1) / kLanes * kLanes), 0);
    visible_ = 0;
    for (std::size_t n = 0; n < static_cast<std::size_t>(width); ++n) {
      const bool hidden = (values_.mask && !values_.mask->at(b_, i, key(n))) ||
                          (values_.bias && values_.bias->at(b_, h, i, key(n)) == -HUGE_VAL);
      if (hidden) continue;
      sees_[n] = 1;
      ++visible_;
    }
    const auto most = static_cast<double>(std::max(p_.head_dim, visible_ + 1));
    unit_ = kPairUnit + 4 * (most + 2) * kUnit * kUnit;
  }

  /// Returns the norm of the query row.
  double add_inner_products(Index h, Index i) {
    high_.assign(padded(), 0);
    low_.assign(padded(), 0);
    double square = 0;
    for (Index c = 0; c < p_.head_dim; ++c) {
      const double q = values_.q.at(b_, h, i, c);
      square += q * q;
      for (const Matrix* k : {&k_.first, &k_.second}) {
        if (k->rows() == 0) continue;
        add_exact_products(q, k->row(c).data() + range_.first, high_.data(), low_.data(),
                           range_.end - range_.first);
      }
    }
    return std::sqrt(square) * kRoom;
  }

  double bias_of(Index h, Index i, std::size_t n) const {
    return values_.bias && sees_[n] != 0 ? values_.bias->at(b_, h, i, key(n)) : 0;
  }
  double distance_of(Index i, std::size_t n) const {
    return std::fabs(static_cast<double>(i + diagonal(p_, b_) - key(n)));
  }

  void make_logits(Index h, Index i) {
    const double slope = values_.alibi_slopes ? values_.alibi_slopes->at(h) : 0;
    for (std::size_t n = 0; n < padded(); n += kLanes) {
      Pair s = two_sum(load(high_.data() + n), load(low_.data() + n)) * lanes_of(p_.softmax_scale);
      if (p_.softcap > 0) s = tanh_of(s / pair_of(p_.softcap)) * lanes_of(p_.softcap);
      if (values_.bias) s = s + Lanes{bias_of(h, i, n), bias_of(h, i, n + 1)};
      if (values_.alibi_slopes) {
        s = s - two_product(lanes_of(slope), Lanes{distance_of(i, n), distance_of(i, n + 1)});
      }
      store(high_.data() + n, s.high);
      store(low_.data() + n, s.low);
    }
  }

  Pair largest_logit(double sink) const {
    double high = sink, low = 0;
    for (std::size_t n = 0; n < padded(); ++n) {
      if (sees_[n] == 0 || high_[n] < high || (high_[n] == high && low_[n] <= low)) continue;
      high = high_[n];
      low = low_[n];
    }
    return {lanes_of(high), lanes_of(low)};
  }

  /// From logits to weights, W2 of the note, their sum and what is known of it.
  void weigh(Index h, Index i, double inner) {
    const double sink = values_.sinks ? values_.sinks->at(h) : -HUGE_VAL;
    const double slope = values_.alibi_slopes ? values_.alibi_slopes->at(h) : 0;
    m_ = largest_logit(sink);
    sums_ = {static_cast<double>(visible_ + 1), 0, 0, 0};
    l_ = pair_of(0);
    for (std::size_t n = 0; n < padded(); n += kLanes) {
      const Pair distance = m_ - Pair{load(high_.data() + n), load(low_.data() + n)};
      const LaneBits far = distance.high > kPairVanish || distance.high < 0.0;
      Pair weight = exp_minus(
          Pair{far ? lanes_of(kPairVanish) : distance.high, far ? lanes_of(0) : distance.low});
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t each = n + lane;
        bool counts = sees_[each] != 0;
        if (counts) {
          const double norm = k_norm_[static_cast<std::size_t>(key(each))];
          const double exponent = logit_error(p_, unit_, inner * norm, bias_of(h, i, each),
                                              slope * distance_of(i, each)) +
                                  unit_ * distance.high[lane];
          counts = distance.high[lane] - exponent < kPairVanish;
          if (counts) add_error(weight.high[lane], exponent);
        }
        if (!counts) weight.high[lane] = weight.low[lane] = 0;
      }
      l_ = l_ + weight;
      store(high_.data() + n, weight.high);
      store(low_.data() + n, weight.low);
    }
    l_ = Pair{lanes_of(l_.high[0]), lanes_of(l_.low[0])} +
         Pair{lanes_of(l_.high[1]), lanes_of(l_.low[1])};
    const double away = m_.high[0] - sink;
    if (away < kPairVanish) {
      const Pair weight = exp_minus(m_ + lanes_of(-sink));
      l_ = l_ + weight;
      add_error(weight.high[0], unit_ * away);
    }
    sums_.weights = l_.high[0];
  }

  void add_error(double weight, double exponent) {
    sums_.exponents += weight * exponent * kRoom;
    sums_.largest_exponent = std::max(sums_.largest_exponent, exponent * kRoom);
  }

  void divide(std::size_t row) {
    const RowRadius radius = radius_of(sums_, {unit_, kPairExpError});
    const auto width = static_cast<std::size_t>(p_.head_dim_v);
    std::vector<double> high(width + kLanes), low(width + kLanes);
    Eigen::RowVectorXd largest = Eigen::RowVectorXd::Zero(p_.head_dim_v);
    for (std::size_t n = 0; n < padded(); ++n) {
      if (sees_[n] != 0) largest = largest.cwiseMax(v_magnitude_.row(key(n)));
      if (high_[n] == 0) continue;
      for (const Matrix* v : {&v_.first, &v_.second}) {
        if (v->rows() == 0) continue;
        add_products(high_[n], low_[n], v->row(key(n)).data(), high.data(), low.data(),
                     p_.head_dim_v);
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      const Pair o = two_sum(lanes_of(high[c]), lanes_of(low[c])) / l_;
      result_.truth.o[row * width + c] = o.high[0];
      result_.truth.o_tail[row * width + c] = o.low[0];
      result_.o_radius[row * width + c] = radius.o * largest(static_cast<Index>(c));
    }
    take_logarithm(row, radius.sum);
  }

  /// One step of Newton's from the logarithm in double, and the next term of ln(1 + r).
  void take_logarithm(std::size_t row, double radius) {
    const double guess = log_of(l_.high[0]).value;
    const Pair r = l_ * exp_minus(pair_of(guess)) + lanes_of(-1);
    const Pair log = r + -0.5 * r.high * r.high + lanes_of(guess);
    const Pair lse = m_ + log;
    const double off =
        radius + 2 * kPairExpError + 2 * unit_ * (std::fabs(lse.high[0]) + guess + 1);
    write_lse(row, lse, std::fabs(r.high[0]) < 0x1p-36 ? off : HUGE_VAL);
  }

  void write_lse(std::size_t row, Pair lse, double off) {
    if (p_.lse_base == LogBase::two) {
      off = (off + 2 * unit_ * std::fabs(lse.high[0])) * kLog2e.high[0] * kRoom;
      lse = lse * kLog2e;
    }
    result_.truth.lse[row] = lse.high[0];
    result_.truth.lse_tail[row] = lse.low[0];
    result_.lse_radius[row] = off * kRoom;
  }

  const Problem& p_;
  const Values& values_;
  Index b_;
  Certified& result_;
  std::vector<double> k_norm_;
  Halves k_, v_;  // k with a row for each column of the head: all keys at once
  Matrix v_magnitude_;

  // Of the row in hand.
  KeyRange range_;
  std::vector<std::uint8_t> sees_;
  Index visible_ = 0;
  double unit_ = 0;  // note 0002, D: of single operations and, times n, of sums of n terms
  std::vector<double> high_, low_;  // inner products, logits, weights
  Pair m_, l_;
  RowSums sums_;
};

}  // namespace

void redo_in_pairs(const Problem& problem, const Values& values, std::span<const std::size_t> rows,
                   Certified& result) {
  if (!softcap_is_plain(problem)) return;
  std::optional<Group> group;
  Index of = -1;
  for (std::size_t number : rows) {
    const auto flat = static_cast<Index>(number);
    const Index head = flat / problem.seqlen_q, h = head % problem.num_heads_q;
    const Index b = head / problem.num_heads_q;
    const Index kv_head = h / (problem.num_heads_q / problem.num_heads_kv);
    if (b * problem.num_heads_kv + kv_head != of) {
      of = b * problem.num_heads_kv + kv_head;
      group.emplace(problem, values, b, kv_head, result);
    }
    group->attend(h, flat % problem.seqlen_q);
    result.tier[number] = Tier::double_double;
  }
}

}  // namespace attest::oracle
