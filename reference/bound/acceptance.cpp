// The truth and the bounds brought together. README, section Acceptance.
#include "reference/bound/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "reference/bound/order_free.hpp"
#include "reference/bound/running.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/certified.hpp"
#include "reference/verdict.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
}  // namespace

bool may_round_to(Format format, double centre, double radius, double got) {
  return rounded(format, centre - radius) <= got && got <= rounded(format, centre + radius);
}

double Accepted::low(std::size_t at) const {
  return rounded(format, centre[at] - radius[at]);
}

double Accepted::high(std::size_t at) const {
  return rounded(format, centre[at] + radius[at]);
}

bool Accepted::accepts(double got, std::size_t at) const {
  if (radius[at] == kInfinity) return true;
  if (std::isnan(centre[at])) return std::isnan(got);
  return may_round_to(format, centre[at], radius[at], got);
}

double Accepted::error_of(double got, std::size_t at) const {
  if (radius[at] == kInfinity) return 0;
  const double distance = std::fabs(got - centre[at]);
  if (!std::isfinite(centre[at]) || !std::isfinite(got)) return accepts(got, at) ? 0 : kInfinity;
  // Half of the gap to the neighbour on the centre's side, which below a power of two is smaller.
  const double beside =
      got > centre[at] ? std::nextafter(got, -kInfinity) : std::nextafter(got, kInfinity);
  return std::max(0.0, distance - std::min(ulp(format, got), ulp(format, beside)) / 2);
}

double Accepted::margin_of(double got, std::size_t at) const {
  return attest::margin_of(error_of(got, at), std::isfinite(centre[at]) ? radius[at] : 0);
}

namespace {

/// The narrowest radius of every element of a row, and the strongest bound that gave one.
class RowAcceptance {
 public:
  RowAcceptance(const bound::Row& row, const bound::Rows& q, const bound::Rows& k,
                const bound::Rows& v, Strength at_most)
      : row_(row), v_(v), at_most_(at_most), any_(bound::scores_of(row, q, k)) {
    const bool follow = at_most != Strength::order_free && row.path.in_order;
    if (follow) followed_ = bound::scores_of(row, q, k, true);
  }

  void judge(std::size_t at, Acceptance& out) const {
    take(bound::order_free_row(row_, any_, v_), at, out);
    if (at_most_ == Strength::order_free || !any_.judged || any_.keys.empty()) return;
    if (followed_) {
      if (take(bound::order_free_row(row_, *followed_, v_), at, out)) {
        out.strength[at] = Strength::running;
      }
    }
    follow(false, at, out);
    if (at_most_ == Strength::quantised) follow(true, at, out);
  }

 private:
  bool take(const bound::RowBounds& bounds, std::size_t at, Acceptance& out) const {
    bool narrower = false;
    for (std::size_t c = 0; c < bounds.before.size(); ++c) {
      double& radius = out.o.radius[at * bounds.before.size() + c];
      if (!(bounds.before[c] < radius)) continue;
      radius = bounds.before[c];
      narrower = true;
    }
    out.lse.radius[at] = std::min(out.lse.radius[at], bounds.lse);
    return narrower;
  }

  void follow(bool quantised, std::size_t at, Acceptance& out) const {
    const auto row = bound::followed_row(row_, followed_ ? *followed_ : any_, v_, quantised);
    if (!row) return;
    double& lse = out.lse.radius[at];  // without a promise of B1 nor one of another
    if (lse != kInfinity) lse = std::min(lse, row->lse);
    for (std::size_t c = 0; c < row->radius.size(); ++c) {
      const std::size_t element = at * row->radius.size() + c;
      // Where the order-free bound promises nothing something may overflow.
      double& radius = out.o.radius[element];
      if (radius == kInfinity || !(row->radius[c] < radius)) continue;
      radius = row->radius[c];
      if (quantised) out.o.centre[element] = row->centre[c];
      out.strength[at] = quantised ? Strength::quantised : Strength::running;
    }
  }

  const bound::Row& row_;
  const bound::Rows& v_;
  const Strength at_most_;
  const bound::Scores any_;
  std::optional<bound::Scores> followed_;
};

}  // namespace

Acceptance acceptance_around(const Truth& truth, const Problem& problem, const Values& values,
                             const PrecisionPath& path, Strength at_most,
                             const std::vector<bool>& wanted) {
  const std::vector<double> unknown(truth.o.size(), kInfinity);
  Acceptance out{{problem.output, truth.o, unknown},
                 {Format::f32, truth.lse, std::vector<double>(truth.lse.size(), kInfinity)},
                 std::vector<Strength>(truth.lse.size(), Strength::order_free)};
  bound::for_each_row(
      problem, values, path,
      [&](const bound::Row& row, const bound::Rows& q, const bound::Rows& k, const bound::Rows& v,
          std::size_t at) { RowAcceptance(row, q, k, v, at_most).judge(at, out); },
      wanted);
  return out;
}

Acceptance acceptance(const Problem& problem, const Values& values, const PrecisionPath& path,
                      Strength at_most, const std::vector<bool>& wanted) {
  // The radii first, around nothing: they say how well the truth must be known, where it is the
  // centre at all.
  Truth nothing;
  const std::size_t rows = row_count(problem);
  nothing.o.assign(rows * static_cast<std::size_t>(problem.head_dim_v), kNaN);
  nothing.lse.assign(rows, kNaN);
  Acceptance out = acceptance_around(nothing, problem, values, path, at_most, wanted);
  std::vector<double> allowed = out.o.radius;
  for (std::size_t at = 0; at < allowed.size(); ++at) {
    if (!std::isnan(out.o.centre[at])) allowed[at] = kInfinity;
  }
  const Certified certified =
      certified_attention(problem, values, share_of(std::move(allowed), out.lse.radius));
  for (std::size_t at = 0; at < out.o.centre.size(); ++at) {
    if (!std::isnan(out.o.centre[at])) continue;
    out.o.centre[at] = certified.truth.o[at];
    out.o.radius[at] += certified.o_off(at);
  }
  out.lse.centre = certified.truth.lse;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (!wanted[at]) out.lse.centre[at] = kNaN;
  }
  for (std::size_t at = 0; at < rows; ++at) out.lse.radius[at] += certified.lse_off(at);
  return out;
}

}  // namespace attest
