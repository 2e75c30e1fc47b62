// The letters are those of bound/README.md.
#include "reference/bound/weighted_values.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/roundings.hpp"

namespace attest::bound {
namespace {

class Accumulation {
 public:
  Accumulation(const Row& row, const Scores& scores, const CastWeights& weights, const Rows& v,
               bool quantised)
      : row_(row),
        scores_(scores),
        weights_(weights),
        v_(v),
        columns_(static_cast<std::size_t>(row.problem.head_dim_v)),
        tensor_(row.path.tensor_step > 0),
        step_(step_of(value_operand(row.path, row.problem.input))),
        group_(columns_),
        largest_(columns_) {
    const int bits =
        facts(row.path.p_format).precision + facts(cache_format(row.problem)).precision;
    exact_ = bits <= facts(Format::f32).precision && !row.values.v_scales;
    // A scale that joined a weight before its cast decided what it was rounded to.
    const bool in_cast = quantised && row.path.v_scale_in_p;
    if (row.values.v_scales && !in_cast) scale_ = kCacheScaleRoundings * kU;
    if (row.path.normalize_before_cast && !quantised) {  // else it is in the flips
      scale_ += declared(row.path.division_error, kDivision);
    }
  }

  void add(const Visit& visit, WeightedValues& out) {
    if (!row_.path.in_order) return add_in_any_order(visit, out);
    if (!tensor_) {
      for (std::size_t n = visit.begin; n < visit.end; ++n) add_key(n, out);
      return;
    }
    const Index step = row_.path.tensor_step;
    for (std::size_t n = visit.begin; n < visit.end;) {
      const Index number = (scores_.keys[n].j - visit.first_key) / step;
      const std::size_t first = n;
      while (n < visit.end && (scores_.keys[n].j - visit.first_key) / step == number) ++n;
      add_group(first, n, out);
    }
  }

 private:
  /// One multiplication and addition, fused or not. The first addition, to nothing, is exact.
  void add_key(std::size_t n, WeightedValues& out) {
    const CastWeight& weight = weights_.keys[n];
    const double* value = v_.row(scores_.keys[n].j);
    const double product = scale_ + (exact_ ? 0 : kU);
    for (std::size_t c = 0; c < columns_; ++c) {
      const double size = std::fabs(value[c]), before = out.most(c);
      out.sum[c] += weight.number * value[c];
      out.drift[c] += weight.drift * size;
      out.error[c] += (weight.wrong + product * weight.most()) * size;
      if (before != 0) out.error[c] += kU * out.most(c);
    }
  }

  /// The magnitude by which tensor cores align a product.
  double aligned_size(const CastWeight& weight, double size) const {
    return weight.most() == 0 ? 0 : std::max(weight.most(), weight.least) * size;
  }

  void gather(std::size_t first, std::size_t last, bool sums, WeightedValues& out) {
    std::fill(group_.begin(), group_.end(), 0.0);
    std::fill(largest_.begin(), largest_.end(), 0.0);
    for (std::size_t n = first; n < last; ++n) {
      const CastWeight& weight = weights_.keys[n];
      const Index j = scores_.keys[n].j;
      const double *value = v_.row(j), *sizes = v_.sizes_of(j);
      for (std::size_t c = 0; c < columns_; ++c) {
        const double size = std::fabs(value[c]);
        const double seen = tensor_ ? aligned_size(weight, sizes[c]) : weight.most() * size;
        group_[c] += weight.number * value[c];
        largest_[c] = sums ? largest_[c] + seen : std::max(largest_[c], seen);
        out.drift[c] += weight.drift * size;
        out.error[c] += (weight.wrong + scale_ * weight.most()) * size;
      }
    }
  }

  /// Keys of one group of tensor_step: one step of tensor cores, or more.
  void add_group(std::size_t first, std::size_t last, WeightedValues& out) {
    gather(first, last, false, out);
    for (std::size_t c = 0; c < columns_; ++c) {
      if (largest_[c] == 0) continue;
      // `most` with the sum before and what may be wrong or drift after is no less than before.
      out.error[c] += step_.align * std::max(out.most(c), largest_[c]);
      out.sum[c] += group_[c];
      out.error[c] += step_.truncate * out.most(c);
    }
  }

  /// A block whose keys are added in any order, to the accumulator or among themselves first.
  void add_in_any_order(const Visit& visit, WeightedValues& out) {
    gather(visit.begin, visit.end, true, out);
    const auto count = static_cast<double>(visit.end - visit.begin);
    const auto span =
        static_cast<double>(scores_.keys[visit.end - 1].j - scores_.keys[visit.begin].j + 1);
    const double terms = roundings(
        sum_roundings(row_.path, value_operand(row_.path, row_.problem.input), count, span) +
        (exact_ ? 0 : 1));
    for (std::size_t c = 0; c < columns_; ++c) {
      out.error[c] += terms * (out.most(c) + largest_[c]);
      out.sum[c] += group_[c];
    }
  }

  const Row& row_;
  const Scores& scores_;
  const CastWeights& weights_;
  const Rows& v_;
  std::size_t columns_;
  bool tensor_, exact_ = false;
  Step step_;
  double scale_ = 0;  // relative error of each product by a scale of v, or a division of its own
  std::vector<double> group_, largest_;
};

/// A factor that is off by `error` relative to what it should be.
void rescale(WeightedValues& out, double error) {
  for (std::size_t c = 0; c < out.sum.size(); ++c) out.error[c] += error * out.most(c);
}

/// Adds sums in any order.
WeightedValues joined(const std::vector<WeightedValues>& sums) {
  WeightedValues out(sums.front().sum.size());
  const double additions = roundings(static_cast<double>(sums.size() - 1));
  for (const WeightedValues& one : sums) {
    for (std::size_t c = 0; c < out.sum.size(); ++c) {
      out.sum[c] += one.sum[c];
      out.drift[c] += one.drift[c];
      out.error[c] += one.error[c] + additions * one.most(c);
    }
  }
  return out;
}

}  // namespace

WeightedValues weighted_values_of(const Row& row, const Scores& scores, const Visits& visits,
                                  const Joints& joints, const CastWeights& weights, const Rows& v,
                                  bool quantised) {
  Accumulation accumulation(row, scores, weights, v, quantised);
  const auto columns = static_cast<std::size_t>(row.problem.head_dim_v);
  // In the running bound the factors' own errors are those of the weights.
  const auto factor = [&](double error, double count = 1) {
    return quantised || error == 0 ? error : kU * count;
  };
  // Of a part by its row sum, and of it or its share at each merge.
  const double division = declared(row.path.division_error, kDivision);
  const double divisions = std::expm1((1 + joints.merges) * std::log1p(division));
  std::vector<WeightedValues> parts;
  for (std::size_t part = 0; part < visits.parts.size(); ++part) {
    std::vector<WeightedValues> states;
    for (std::size_t s = 0; s < visits.parts[part].size(); ++s) {
      states.emplace_back(columns);
      for (const Visit& visit : visits.parts[part][s].visits) {
        if (visit.may_rise) {
          rescale(states.back(),
                  factor(factor_error(visit.before, visit.reference, joints.exponential)));
        }
        accumulation.add(visit, states.back());
      }
      const auto others = static_cast<double>(visits.parts[part].size() - 1);
      rescale(states.back(), factor(joints.state_error[part][s], others));
    }
    parts.push_back(joined(states));
    rescale(parts.back(), factor(joints.part_error[part], joints.merges));
    if (row.problem.num_splits > 1) rescale(parts.back(), divisions);
  }
  WeightedValues out = joined(parts);
  rescale(out, factor(joints.sink_error));
  return out;
}

}  // namespace attest::bound
