// The certified oracle's last resort: rows by the definition at 50, 100 and 200 digits, with the
// radius that so many digits prove. Letters: notes/0002-certified.md.
#include <algorithm>
#include <numbers>

#include "reference/oracle/definition.hpp"
#include "reference/oracle/exponential.hpp"
#include "reference/oracle/radius.hpp"
#include "reference/oracle/tiers.hpp"

namespace attest::oracle {
namespace {

constexpr double kSplitError = 0x1p-106;  // of a number as head and tail; both round to nearest
constexpr double kSmallest = 0x1p-1074;   // and where the tail is subnormal

template <class Scalar>
double nearest(const Scalar& number) {
  return number.template convert_to<double>();
}

/// sum |q_c k_jc|, in double.
template <class Scalar>
double inner_magnitude(const Matrix<Scalar>& q, const Matrix<Scalar>& k, Index j) {
  double sum = 0;
  for (Index c = 0; c < q.cols(); ++c) sum += std::fabs(nearest(q(0, c)) * nearest(k(j, c)));
  return sum;
}

/// W1 to W3 of the note. A key whose logit is -inf has no weight and no error.
template <class Scalar>
RowSums sums_of(const Problem& problem, const Values& values, const Place& at,
                const Matrix<Scalar>& q, const Matrix<Scalar>& k, const Attended<Scalar>& row,
                double unit) {
  RowSums sums{static_cast<double>(at.keys.size() + 1), nearest(row.l), 0, 0};
  const auto add = [&](double weight, double exponent) {
    sums.exponents += weight * exponent * kRoom;
    sums.largest_exponent = std::max(sums.largest_exponent, exponent * kRoom);
  };
  for (std::size_t n = 0; n < at.keys.size(); ++n) {
    const auto index = static_cast<Index>(n);
    const double distance = nearest(Scalar(row.m - row.s(index)));
    if (distance == HUGE_VAL) continue;
    const Index j = at.keys[n];
    const double bias = values.bias ? values.bias->at(at.b, at.h, at.i, j) : 0;
    const auto away = static_cast<double>(std::abs(at.i + diagonal(problem, at.b) - j));
    const double alibi = values.alibi_slopes ? values.alibi_slopes->at(at.h) * away : 0;
    const double exponent =
        logit_error(problem, unit, inner_magnitude(q, k, j), bias, alibi) + unit * distance;
    if (distance - exponent > kVanish) continue;
    add(nearest(row.w(index)), exponent);
  }
  if (values.sinks) {
    const double distance = nearest(Scalar(row.m - Scalar(values.sinks->at(at.h))));
    if (distance < kVanish) add(nearest(Scalar(exp(Scalar(-distance)))), unit * distance);
  }
  return sums;
}

/// A number and how far off it is, as head, tail and radius.
template <class Scalar>
void enclose(const Scalar& number, double radius, double& head, double& tail, double& radius_out) {
  split(number, head, tail);
  const double split_error = kSplitError * std::fabs(head) + kSmallest;
  radius_out = std::isfinite(head) ? (radius + split_error) * kRoom : 0;
}

template <class Scalar>
double largest_magnitude(const Matrix<Scalar>& v, const Place& at, Index c) {
  double largest = 0;
  for (Index j : at.keys) largest = std::max(largest, std::fabs(nearest(v(j, c))));
  return largest;
}

template <class Scalar>
class Redo {
 public:
  Redo(const Problem& problem, const Values& values, double unit, Certified& result)
      : p_(problem), values_(values), unit_(unit), result_(result) {}

  void row(std::size_t number) {
    const auto flat = static_cast<Index>(number);
    const Index b = flat / p_.seqlen_q / p_.num_heads_q, h = flat / p_.seqlen_q % p_.num_heads_q;
    const Index i = flat % p_.seqlen_q, kv_head = h / (p_.num_heads_q / p_.num_heads_kv);
    if (b != b_ || kv_head != kv_head_) {
      b_ = b;
      kv_head_ = kv_head;
      k_ = slice<Scalar>(values_.k, values_.k_scales, b, kv_head, key_length(p_, b));
      v_ = slice<Scalar>(values_.v, values_.v_scales, b, kv_head, key_length(p_, b));
    }
    const Place place = place_of(p_, values_, b, h, i);
    if (place.keys.empty()) return write(number, place, empty_row<Scalar>(p_, values_, h), {0, 0});
    Matrix<Scalar> q(1, p_.head_dim);
    for (Index c = 0; c < p_.head_dim; ++c) q(0, c) = values_.q.at(b, h, i, c);
    const auto attended = attend<Scalar>(p_, values_, place, q.row(0), k_, v_);
    const RowSums sums = sums_of(p_, values_, place, q, k_, attended, unit_);
    write(number, place, attended, radius_of(sums, {unit_, unit_}));
  }

 private:
  void write(std::size_t number, const Place& place, const Attended<Scalar>& row,
             const RowRadius& radius) {
    const auto width = static_cast<std::size_t>(p_.head_dim_v);
    for (std::size_t c = 0; c < width; ++c) {
      const auto column = static_cast<Index>(c);
      const std::size_t at = number * width + c;
      enclose(row.o(column), radius.o * largest_magnitude(v_, place, column), result_.truth.o[at],
              result_.truth.o_tail[at], result_.o_radius[at]);
    }
    // The logarithm, at most ln(n + 1), the addition, and the change of base.
    const auto terms = static_cast<double>(place.keys.size() + 1);
    const double lse = std::fabs(nearest(row.lse));
    double off = radius.sum + 2 * unit_ * (lse + std::log(terms + 1));
    Scalar in_base = row.lse;
    if (p_.lse_base == LogBase::two) {
      in_base /= log(Scalar(2));
      off = (off + 2 * unit_ * lse) * std::numbers::log2e;
    }
    enclose(in_base, off * kRoom, result_.truth.lse[number], result_.truth.lse_tail[number],
            result_.lse_radius[number]);
  }

  const Problem& p_;
  const Values& values_;
  double unit_;
  Certified& result_;
  Index b_ = -1, kv_head_ = -1;  // whose keys these are; rows come in order
  Matrix<Scalar> k_, v_;
};

template <int kDigits>
void redo(const Problem& problem, const Values& values, double unit,
          std::span<const std::size_t> rows, Certified& result) {
  Redo<Decimal<kDigits>> rows_again(problem, values, unit, result);
  for (std::size_t number : rows) rows_again.row(number);
}

}  // namespace

void redo_in_digits(const Problem& problem, const Values& values, Tier tier,
                    std::span<const std::size_t> rows, Certified& result) {
  for (std::size_t number : rows) result.tier[number] = tier;
  if (tier == Tier::fifty) redo<50>(problem, values, 1e-50, rows, result);
  if (tier == Tier::hundred) redo<100>(problem, values, 1e-100, rows, result);
  if (tier == Tier::two_hundred) redo<200>(problem, values, 1e-200, rows, result);
}

}  // namespace attest::oracle
