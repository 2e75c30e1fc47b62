// The letters are those of bound/README.md.
#include "reference/bound/cast_weights.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/roundings.hpp"

namespace attest::bound {
namespace {

/// Whether `one` is the largest whatever was computed: then its factor is 1.
template <class Of>
bool settled(std::size_t one, std::size_t count, Of of) {
  for (std::size_t n = 0; n < count; ++n) {
    if (n != one && of(n).high > of(one).low) return false;
  }
  return true;
}

/// What is true of the whole row.
class Weighing {
 public:
  Weighing(const Row& row, const Scores& scores, const Visits& visits, const Joints& joints,
           const Rows& v, bool quantised)
      : row_(row), scores_(scores), visits_(visits), joints_(joints), v_(v), quantised_(quantised) {
    for (const Term& key : scores.keys) error_ = std::max(error_, key.logit_error);
    for (const Term& sink : scores.sink) error_ = std::max(error_, sink.logit_error);
    out_.keys.resize(scores.keys.size());
  }

  CastWeights weigh() {
    weigh_parts();
    add_sink();
    out_.theta /= out_.sum;
    out_.kappa_sum /= out_.sum;
    if (row_.path.normalize_before_cast) divide();
    return out_;
  }

 private:
  void weigh_parts() {
    for (std::size_t part = 0; part < visits_.parts.size(); ++part) {
      for (std::size_t s = 0; s < visits_.parts[part].size(); ++s) {
        joins_ = (joints_.state_error[part][s] > 0 ? states_of(part) - 1 : 0) + joints_.merges +
                 (joints_.sink_error > 0 ? 1 : 0);
        weigh_state(visits_.parts[part][s], visits_.parts[part].size());
      }
    }
  }

  /// All weights once more, now that their sum is known, as they are cast: divided by it.
  void divide() {
    CastWeights sums = out_;
    const double kappa = sums.kappa_sum / (1 - sums.theta);
    if (!(sums.theta < 0.5 && kappa < 0.25)) return;  // not followed
    divisor_ = sums.sum;
    divisor_error_ = as_exponent(sums.theta) + as_exponent(kappa) +
                     as_exponent(declared(row_.path.division_error, kDivision));
    weigh_parts();
    sums.keys = std::move(out_.keys);
    if (quantised_) sums.sum = 1;
    out_ = std::move(sums);
  }

  double states_of(std::size_t part) const {
    return static_cast<double>(visits_.parts[part].size());
  }

  /// Of the references of a block and of all in the end, and of those between them: fl(m c) where
  /// weights of the two use it, and in every factor between them.
  double reference_error(const Visit& visit, double roundings) const {
    const double size = std::max(visit.reference.size(), joints_.all.size());
    return (roundings * reference_roundings(row_.path) + rescales_) * kU * size;
  }

  /// Additions that a term of the row sum meets after those of its state's blocks.
  double later_additions(double keys_of_state, std::size_t states) const {
    const auto lanes = static_cast<double>(std::max<Index>(1, row_.path.partial_row_sums));
    const auto parts = static_cast<double>(visits_.parts.size());
    return std::min(lanes - 1, keys_of_state) + static_cast<double>(states - 1) +
           (row_.problem.num_splits > 1 ? parts + 1 : 0) + 1;
  }

  void weigh_state(const State& state, std::size_t states) {
    const Index lanes = std::max<Index>(1, row_.path.partial_row_sums);
    const auto share = static_cast<double>((visits_.longest_block - 1) / lanes + 1);
    double keys = 0, additions = 0;
    for (const Visit& visit : state.visits) keys += static_cast<double>(visit.end - visit.begin);
    const double later = later_additions(keys, states);
    for (auto visit = state.visits.rbegin(); visit != state.visits.rend(); ++visit) {
      additions += std::min(share, static_cast<double>(visit->end - visit->begin));
      rescales_ = visit->later_rises + joins_;
      most_rescales_ = std::max(most_rescales_, rescales_);
      const double all = roundings(std::min(additions, keys) + rescales_ + later);
      most_additions_ = std::max(most_additions_, all);
      for (std::size_t n = visit->begin; n < visit->end; ++n) {
        const double weight = std::exp(scores_.keys[n].logit - joints_.all.value);
        weigh_key(*visit, n, weight);
        out_.kappa_sum += all * in_sum_;
      }
    }
  }

  /// Of the exponent of a weight or of a factor: what grows with the distance it covers.
  double distance_error(double distance) const {
    return kDistanceRoundings * kU * (distance + extra_exponent(row_.path) + 2 * error_);
  }

  /// A: of a weight in the row sum, by its exponent.
  double exponent_error(const Visit& visit, const Term& term) const {
    const double distance = std::fabs(term.logit - visit.reference.value) +
                            std::fabs(joints_.all.value - visit.reference.value);
    double error = term.logit_error + distance_error(distance) +
                   (1 + rescales_) * joints_.exponential + joints_.merges * joints_.part_lse;
    if (quantised_) {  // what is common does not cancel against weights that were rounded
      error += joints_.all.error() + reference_error(visit, 1);
    } else if (rescales_ > 0) {
      error += reference_error(visit, 2);
    }
    return error * (1 + kEvaluation);
  }

  /// Of the weight when it is cast.
  double local_error(const Visit& visit, const Term& term) const {
    const double distance = std::fabs(term.logit - visit.reference.value);
    double error = term.logit_error + visit.reference.error() + distance_error(distance) +
                   reference_roundings(row_.path) * kU * visit.reference.size() +
                   joints_.exponential;
    if (row_.path.v_scale_in_p && row_.values.v_scales) error += kCacheScaleRoundings * kU;
    return (error + divisor_error_) * (1 + kEvaluation);
  }

  void weigh_key(const Visit& visit, std::size_t n, double weight) {
    const Term& term = scores_.keys[n];
    CastWeight& cast = out_.keys[n];
    const Format format = row_.path.p_format;
    const double beta = std::exp(visit.reference.value - joints_.all.value);
    const double joined = row_.path.v_scale_in_p ? v_.scale_of(term.j) : 1;
    const double shift =
        row_.path.normalize_before_cast ? 1 / divisor_ : std::exp2(row_.path.p_scale_log2);
    const double stored = std::exp(term.logit - visit.reference.value) * shift * joined;
    // What is cast stands for itself where it was divided: a product with the divisor would leave
    // an error of double where the kernel has none at all.
    const bool divided = row_.path.normalize_before_cast && quantised_;
    const double factor = divided ? joined : shift * joined;
    const double local = std::exp(local_error(visit, term));
    const double low = stored / local, high = stored * local;
    const double theta = std::expm1(exponent_error(visit, term));
    if (!(high < kInfinity)) out_.theta = kInfinity;
    in_sum_ = weight * (1 + theta);
    cast.least = stored == 0 ? 0 : smallest_normal(format) / factor * beta;
    if (quantised_) {
      const double middle = rounded(format, stored);
      const double spread = std::max(rounded(format, high) - middle, middle - rounded(format, low));
      cast.number = middle / factor * beta;
      cast.wrong = spread / factor * beta;
      if (row_.path.row_sum_of_rounded_p) {
        // The sum has the same rounded weights, under factors of its own.
        const double later = std::expm1(later_factors(visit));
        out_.sum += cast.number;
        out_.theta += cast.wrong * (1 + later) + cast.number * later;
        in_sum_ = cast.most() * (1 + later);
      } else {
        out_.sum += weight;
        out_.theta += weight * theta;
      }
      return;
    }
    cast.number = weight;
    cast.drift = weight * theta;
    out_.sum += weight;
    out_.theta += weight * theta;
    if (format == Format::f32) return;
    const double later = std::exp(visit.reference.error() + exponent_error(visit, term));
    cast.wrong = ulp(format, high) / 2 / factor * beta * later;
    cast.least *= later;
  }

  /// In the exponent: of all factors that a cast weight meets on its way into the sum.
  double later_factors(const Visit& visit) const {
    const double error = visit.reference.error() + joints_.all.error() +
                         distance_error(joints_.all.value - visit.reference.value) +
                         reference_error(visit, 2) + rescales_ * joints_.exponential +
                         joints_.merges * joints_.part_lse;
    return rescales_ > 0 ? error * (1 + kEvaluation) : 0;
  }

  void add_sink() {
    for (const Term& sink : scores_.sink) {
      const double weight = std::exp(sink.logit - joints_.all.value);
      rescales_ = most_rescales_;
      Visit visit;
      visit.reference = joints_.all;
      const double theta = std::expm1(exponent_error(visit, sink));
      out_.sum += weight;
      out_.theta += weight * theta;
      out_.kappa_sum += weight * (1 + theta) * most_additions_;
      out_.sink_drift = weight * theta;
    }
  }

  const Row& row_;
  const Scores& scores_;
  const Visits& visits_;
  const Joints& joints_;
  const Rows& v_;
  const bool quantised_;
  CastWeights out_;
  double error_ = 0;                        // e
  double in_sum_ = 0;                       // what the weight may be in the row sum
  double divisor_ = 1, divisor_error_ = 0;  // of weights divided before their cast; in the exponent
  double joins_ = 0, rescales_ = 0, most_rescales_ = 0, most_additions_ = 0;
};

}  // namespace

double factor_error(const Reference& from, const Reference& to, double exponent) {
  const double errors = from.error() + to.error();
  const double error = exponent + errors +
                       kDistanceRoundings * kU * (std::fabs(to.value - from.value) + errors) +
                       kReferenceRoundings * kU * (from.size() + to.size());
  return std::expm1(error * (1 + kEvaluation)) + kU;
}

std::optional<Joints> joints_of(const Row& row, const Scores& scores, const Visits& visits,
                                const Logarithm& log) {
  const bool narrow = row.path.p_format != Format::f32;
  Joints joints;
  joints.exponential = as_exponent(declared(row.path.exp_error, kFaithful));
  joints.part_lse = log.merge_error;
  const auto parts_in_use = static_cast<double>(visits.parts.size());
  if (row.problem.num_splits > 1) joints.merges = merges_of(parts_in_use, scores);
  if (!(joints.exponential + joints.part_lse < kInfinity)) return std::nullopt;
  if (row.path.rescale_threshold_log2 > 0 && !scores.sink.empty()) return std::nullopt;
  std::vector<Reference> parts;
  for (const std::vector<State>& states : visits.parts) {
    parts.emplace_back();
    for (const State& state : states) parts.back() = parts.back().join(state.reference());
    joints.state_error.emplace_back();
    for (std::size_t s = 0; s < states.size(); ++s) {
      const auto of = [&](std::size_t n) -> const Reference& { return states[n].reference(); };
      joints.state_error.back().push_back(
          settled(s, states.size(), of)
              ? 0
              : static_cast<double>(states.size() - 1) *
                    factor_error(of(s), parts.back(), joints.exponential));
    }
    joints.all = joints.all.join(parts.back());
  }
  for (const Reference& part : parts) {
    joints.part_error.push_back(
        joints.merges * factor_error(part, joints.all, joints.exponential + joints.part_lse));
  }
  for (const Term& term : scores.sink) {
    const Reference sink = reference_of(term), keys = joints.all;
    joints.all = keys.join(sink);
    if (sink.high > keys.low - joints.part_lse) {
      joints.sink_error = factor_error(keys, joints.all, joints.exponential);
    }
    for (const std::vector<State>& states : visits.parts) {
      for (const State& state : states) {
        if (narrow && sink.high > state.visits.front().reference.low) return std::nullopt;
      }
    }
  }
  return joints;
}

CastWeights cast_weights_of(const Row& row, const Scores& scores, const Visits& visits,
                            const Joints& joints, const Rows& v, bool quantised) {
  return Weighing(row, scores, visits, joints, v, quantised).weigh();
}

}  // namespace attest::bound
