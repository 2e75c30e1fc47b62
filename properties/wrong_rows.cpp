// Plain double attention that commits a slip: see the header.
#include "properties/wrong_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/rows.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> doubles(const Tensor& tensor, const std::optional<Tensor>& scales) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(tensor.count()));
  const Extent4& extent = tensor.extent;
  for (Index row = 0; row < extent[0] * extent[1] * extent[2]; ++row) {
    const Index head = row / extent[2];
    const double scale = scale_at(scales, head / extent[1], head % extent[1], row % extent[2]);
    for (Index c = 0; c < extent[3]; ++c) {
      numbers.push_back(tensor.at(row * extent[3] + c) * scale);
    }
  }
  return numbers;
}

/// In double, but with the range of f32: that is what makes a missing maximum wrong.
double exponential(double x) {
  const double e = std::exp(x);
  if (e > facts(Format::f32).max_finite) return kInfinity;
  return e < ulp(Format::f32, 0) / 2 ? 0 : e;
}

}  // namespace

WrongRows::WrongRows(const Problem& problem, const Values& values)
    : problem_(problem),
      values_(values),
      q_(doubles(values.q, {})),
      k_(doubles(values.k, values.k_scales)),
      v_(doubles(values.v, values.v_scales)),
      kept_(static_cast<std::size_t>(problem.seqlen_kv)),
      kept_row_(row_count(problem)) {
  const auto size = static_cast<std::size_t>(problem.seqlen_kv * problem.head_dim_v);
  for (Index head = 0; head < problem.batch * problem.num_heads_kv; ++head) {
    double largest = 0;
    for (std::size_t n = 0; n < size; ++n) {
      const double v = std::fabs(v_[static_cast<std::size_t>(head) * size + n]);
      largest = std::isnan(v) ? kInfinity : std::max(largest, v);
    }
    largest_.push_back(largest);
  }
}

double WrongRows::product(Index b, Index h, Index i, Index entry, Index head, Index j) const {
  const double* q = q_.data() + values_.q.offset(b, h, i, 0);
  const double* k = k_.data() + values_.k.offset(entry, head, j, 0);
  double x = 0;
  for (Index c = 0; c < problem_.head_dim; ++c) x += q[c] * k[c];
  return x;
}

double WrongRows::kept_product(Index b, Index h, Index i, Index j) {
  const std::size_t row = row_number(problem_, b, h, i);
  if (row != kept_row_) std::fill(kept_.begin(), kept_.end(), kNan);
  kept_row_ = row;
  double& kept = kept_[static_cast<std::size_t>(j)];
  if (std::isnan(kept)) kept = product(b, h, i, b, kv_head_of(problem_, h), j);
  return kept;
}

double WrongRows::score(const Slip& slip, double product, Index b, Index h, Index i,
                        Index j) const {
  const Problem& p = slip.asked;
  double s = product * static_cast<double>(p.softmax_scale) * slip.scale_factor;
  if (p.softcap > 0) s = p.softcap * std::tanh(s / p.softcap);
  if (p.bias) s += values_.bias->at(b, h, i, j);
  if (p.alibi) {
    s -= values_.alibi_slopes->at(h) * static_cast<double>(std::abs(i + diagonal(p, b) - j));
  }
  return s;
}

std::vector<Index> WrongRows::keys_seen(const Slip& slip, Index b, Index i) const {
  std::vector<Index> seen;
  Index hidden = -1;
  for (Index j = 0; j < problem_.seqlen_kv; ++j) {
    if (visible(slip.asked, slip.asked.mask ? values_ : unmasked_, b, i, j)) {
      seen.push_back(j);
    } else if (hidden < 0) {
      hidden = j;
    }
  }
  if (slip.drops_last && !seen.empty()) seen.pop_back();
  if (slip.leaks_first && hidden >= 0) seen.push_back(hidden);
  return seen;
}

WeighedRow WrongRows::weigh(const Slip& slip, Index b, Index h, Index i) {
  const Problem& p = problem_;
  WeighedRow row{.entry = slip.next_batch ? (b + 1) % p.batch : b,
                 .head = kv_head_of(p, h),
                 .keys = {},
                 .shares = {}};
  if (slip.next_kv_head) row.head = (row.head + 1) % p.num_heads_kv;
  if (slip.modulo_kv_head) row.head = h % p.num_heads_kv;
  const bool own = row.entry == b && row.head == kv_head_of(p, h);

  row.keys = keys_seen(slip, b, i);
  double max = slip.starts_max_at_zero ? 0 : -kInfinity;
  for (const Index j : row.keys) {
    const double x = slip.weighs_equally ? 0
                     : own               ? kept_product(b, h, i, j)
                                         : product(b, h, i, row.entry, row.head, j);
    row.shares.push_back(slip.weighs_equally ? 0 : score(slip, x, b, h, i, j));
    max = std::max(max, row.shares.back());
  }
  const double sink = slip.asked.sinks ? values_.sinks->at(h) : -kInfinity;
  max = std::max(max, sink);
  if (slip.forgets_max) max = 0;

  row.lse = lse_without_keys(p);
  if (max == -kInfinity) {  // sees nothing
    row.keys.clear();
    row.shares.clear();
    return row;
  }
  double sum = exponential(sink - max);
  for (double& share : row.shares) {
    share = exponential(share - max);
    sum += share;
    if (slip.p_format != Format::f32) share = rounded(slip.p_format, share);
  }
  for (double& share : row.shares) share /= sum;
  row.lse = (max + std::log(sum)) / (p.lse_base == LogBase::two ? std::log(2.0) : 1);
  if (slip.changes_lse_base) {
    row.lse *= p.lse_base == LogBase::two ? std::log(2.0) : 1 / std::log(2.0);
  }
  if (slip.swaps && row.keys.size() > 1) std::swap(row.keys[0], row.keys[1]);
  return row;
}

std::vector<double> WrongRows::o_of(const Slip& slip, const WeighedRow& row) const {
  std::vector<double> o(static_cast<std::size_t>(problem_.head_dim_v));
  if (slip.answers_zero) return o;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const double* v = v_.data() + values_.v.offset(row.entry, row.head, row.keys[n], 0);
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += row.shares[n] * v[c];
  }
  for (double& each : o) {
    each *= slip.o_factor;
    if (slip.output != Format::f32) each = rounded(slip.output, each);
  }
  return o;
}

double WrongRows::largest_value(const WeighedRow& row) const {
  return largest_[static_cast<std::size_t>(row.entry * problem_.num_heads_kv + row.head)];
}

}  // namespace attest
