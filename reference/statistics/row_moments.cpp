// Element by element first, then added up along the signs of each direction. The terms are those of
// README.md, "One element" and "Directions".
#include "reference/statistics/row_moments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/statistics/single_roundings.hpp"

namespace attest::statistics {
namespace {

using Columns = std::vector<double>;

// Bins in ulps of P. Half of one holds what is rounded to the same side of the same number. What an
// f32 weight has behind a P of 11 bits are 2^13 steps of an ulp.
constexpr double kRoundedAlike = 0.5, kEqual = 0x1p-13;

/// An error that all elements of a row share: it moves O along `moves`.
struct Common {
  Columns moves;
  double variance;
};

/// A coin that depends on its place alone: the finaliser of SplitMix64 (Steele, Lea and Flood,
/// OOPSLA 2014).
bool coin(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15 + at;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return ((z ^ (z >> 31)) & 1) != 0;
}

double sign(double number) {
  return number < 0 ? -1 : 1;
}

double along(const Columns& signs, const double* numbers) {
  double sum = 0;
  for (std::size_t c = 0; c < signs.size(); ++c) sum += signs[c] * numbers[c];
  return sum;
}

class Moments {
 public:
  Moments(const Head& head, const Gathered& row, double* o, double* mean, double* variance)
      : head_(head),
        row_(row),
        width_(static_cast<std::size_t>(head.problem.head_dim_v)),
        o_(o),
        mean_(mean),
        variance_(variance),
        sharper_(width_),
        others_(width_),
        own_(width_),
        apart_(width_) {}

  void elements() {
    average();
    for (const Key& key : row_.keys) add(key);
    find_others();
    find_common();
    const Format output = head_.problem.output;
    for (std::size_t c = 0; c < width_; ++c) {
      own_[c] = row_.values_variance[c] + rounding(output, o_[c]);
      if (output != Format::f32) own_[c] += rounding(o_[c]);  // the division, before the cast
      variance_[c] += own_[c];
      mean_[c] += row_.values_mean[c];
      for (const Common& one : common_) variance_[c] += one.variance * one.moves[c] * one.moves[c];
    }
  }

  Columns signs(Direction direction, std::uint64_t seed, std::size_t row) const {
    Columns signs(width_, 1.0);
    for (std::size_t c = 0; c < width_; ++c) {
      switch (direction) {
        case Direction::inward:
          signs[c] = sign(o_[c]);
          break;
        case Direction::offset:
          break;
        case Direction::scattered:
          signs[c] = coin(seed, row * width_ + c) ? 1 : -1;
          break;
        case Direction::sharper:
          signs[c] = sign(sharper_[c]);
          break;
        case Direction::others:
          signs[c] = sign(others_[c]);
          break;
      }
    }
    return signs;
  }

  /// By how many ulps of itself the element differs from another query's that differs least, where
  /// logits of two queries are independent and have this deviation.
  double ulps_apart(double logits) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < width_; ++c) {
      if (o_[c] == 0 && apart_[c] == 0) continue;  // nothing to round
      least = std::min(least, logits * std::sqrt(apart_[c]) / ulp(head_.problem.output, o_[c]));
    }
    return least;
  }

  Projected projected(const Columns& signs) const {
    Projected sum;
    sum.mean = along(signs, mean_);
    const double of_o = along(signs, o_);
    for (const Key& key : row_.keys) {
      const double value = along(signs, head_.v_row(key.j)) * head_.v_scale_of(key.j);
      const double away = value - of_o, moved = value - (key.cast_in_sum ? of_o : 0);
      const double variance = key.cast_variance * moved * moved + key.variance * away * away +
                              key.sum_cast_variance * of_o * of_o;
      sum.variance += key.share * key.share * variance;
    }
    for (double own : own_) sum.variance += own;
    for (const Common& one : common_) {
      const double moved = along(signs, one.moves.data());
      sum.variance += one.variance * moved * moved;
    }
    const auto response = [&](Bias bias) -> double& {
      return sum.response[static_cast<std::size_t>(bias)];
    };
    response(Bias::weights) = of_o;
    response(Bias::scale) = along(signs, sharper_.data());
    response(Bias::exponential) = along(signs, others_.data());
    for (std::size_t c = 0; c < width_; ++c) {
      response(Bias::output) += signs[c] * sign(o_[c]) * ulp(head_.problem.output, o_[c]);
    }
    return sum;
  }

 private:
  void average() {
    for (const Key& key : row_.keys) {
      const double* const v = head_.v_row(key.j);
      const double share = key.share * head_.v_scale_of(key.j);
      for (std::size_t c = 0; c < width_; ++c) o_[c] += share * v[c];
    }
  }

  /// A key's errors are its own, and all columns'.
  void add(const Key& key) {
    const double* const v = head_.v_row(key.j);
    const double scale = head_.v_scale_of(key.j);
    const double cast = key.share * key.share * key.cast_variance;
    const double weight = key.share * key.share * key.variance;
    const double weight_mean = key.share * key.mean, cast_mean = key.share * key.cast_mean;
    const double product = key.share * key.product, square = key.share * key.share;
    const double in_sum = key.cast_in_sum ? 1 : 0;
    const double of_sum = key.share * key.share * key.sum_cast_variance;
    for (std::size_t c = 0; c < width_; ++c) {
      const double value = v[c] * scale, away = value - o_[c], moved = value - in_sum * o_[c];
      variance_[c] += cast * moved * moved + weight * away * away + of_sum * o_[c] * o_[c];
      mean_[c] += weight_mean * away + cast_mean * moved;
      sharper_[c] += product * away;
      apart_[c] += square * away * away;
    }
  }

  void find_others() {
    const auto heavier = [](const Key& a, const Key& b) { return a.logit < b.logit; };
    const Key& largest = *std::max_element(row_.keys.begin(), row_.keys.end(), heavier);
    for (std::size_t c = 0; c < width_; ++c) {
      const double value = head_.v_row(largest.j)[c] * head_.v_scale_of(largest.j);
      others_[c] = largest.share * (o_[c] - value);
    }
  }

  void find_common() {
    common_.push_back({sharper_, 2 * rounding(1)});  // fl(log2 e), and its product with the scale
    const double exponential = beyond_rounding(head_.path.exp_error);
    const double division = division_error(head_.problem, head_.path);
    common_.push_back({others_, exponential * exponential});
    common_.push_back({Columns(o_, o_ + width_), row_.sum_variance + division * division});
    for (const Shift& shift : row_.shifts) {
      const double factor = std::exp(shift.reference - row_.reference) / row_.sum;
      Columns moves(width_);
      for (std::size_t c = 0; c < width_; ++c) {
        moves[c] = factor * (shift.values[c] - o_[c] * shift.sum);
      }
      common_.push_back({std::move(moves), shift.variance});
    }
  }

  const Head& head_;
  const Gathered& row_;
  std::size_t width_;
  double *o_, *mean_, *variance_;
  Columns sharper_, others_, own_;
  Columns apart_;  // sum pi^2 (v - o)^2
  std::vector<Common> common_;
};

struct Weighed {
  double bin, share;
};

/// 1 / sum pi^2, where keys of one bin count as one.
double support(std::vector<Weighed> keys) {
  std::sort(keys.begin(), keys.end(),
            [](const Weighed& a, const Weighed& b) { return a.bin < b.bin; });
  double squares = 0, together = 0;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    together += keys[n].share;
    if (n + 1 < keys.size() && keys[n + 1].bin == keys[n].bin) continue;
    squares += together * together;
    together = 0;
  }
  return 1 / squares;
}

/// By what they are rounded to; those that are not rounded by themselves.
double rounded_support(const Gathered& row) {
  std::vector<Weighed> keys;
  for (const Key& key : row.keys) {
    const double width = kRoundedAlike * key.ulp;
    const double bin = width * std::floor(key.weight / width);
    keys.push_back({key.exact ? -1.0 - static_cast<double>(key.j) : bin, key.share});
  }
  return support(std::move(keys));
}

/// By their logits alone, over what it would be if those all differed.
double distinct(const Gathered& row, Format format) {
  std::vector<Weighed> keys;
  double squares = 0;
  for (const Key& key : row.keys) {
    const double weight = key.share * row.sum, width = kEqual * ulp(format, weight);
    keys.push_back({width * std::floor(weight / width), key.share});
    squares += key.share * key.share;
  }
  return support(std::move(keys)) * squares;
}

/// The deviation of scale q.k between keys, which alone makes one query's weights another's.
double spread(const Gathered& row) {
  double sum = 0, mean = 0, square = 0;
  for (const Key& key : row.keys) sum += key.share;  // less than 1 with a sink
  for (const Key& key : row.keys) mean += key.share / sum * key.product;
  for (const Key& key : row.keys) {
    square += key.share / sum * (key.product - mean) * (key.product - mean);
  }
  return std::sqrt(square);
}

}  // namespace

void add_moments(const Head& head, const Gathered& gathered, std::size_t row, std::uint64_t seed,
                 LikelyErrors& all) {
  const std::size_t width = static_cast<std::size_t>(head.problem.head_dim_v), at = row * width;
  Moments moments(head, gathered, all.o.data() + at, all.mean.data() + at,
                  all.variance.data() + at);
  moments.elements();
  LikelyRow& found = all.rows[row];
  found.keys = static_cast<Index>(gathered.keys.size());
  found.support = rounded_support(gathered);
  found.distinct = distinct(gathered, head.path.p_format);
  const double logits = spread(gathered);
  found.spread = std::min(logits / ulp(head.path.p_format, 1), moments.ulps_apart(logits));
  for (std::size_t n = 0; n < kDirections; ++n) {
    const Columns signs = moments.signs(static_cast<Direction>(n), seed, row);
    found.projected[n] = moments.projected(signs);
    for (std::size_t c = 0; c < width; ++c) {
      if (signs[c] < 0) all.negative[at + c] |= static_cast<std::uint8_t>(1U << n);
    }
  }
}

}  // namespace attest::statistics
