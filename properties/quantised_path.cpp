// Quantised path: tokens that are projected, turned, appended to a cache of few bits on pages, and
// read by a split decode give the rows that one pass over the unrounded keys and values gives.
// Over the reals: it is the same formula.
// In floating point: a key differs from the exact one by what was lost on the way to the cache,
//   e   its projection (projection_bound.hpp), carried through the turn, and the turn's own two
//       roundings of each product and their sum
//   |dk| <= e + scale * half a step of the format at |k| / scale + 3 roundings of k, for the scale
//       may be off by one, and a reciprocal and a product by one each
// and a value likewise, without a turn. What that does to O and LSE is moved_cache_bounds; on top
// comes the order-free bound of decode on what the cache holds, which is only used when that holds.
// Sees: what each of the four does wrong, and what they disagree on: pages, positions, scales.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "properties/ask.hpp"
#include "properties/cache_rows.hpp"
#include "properties/catalogue.hpp"
#include "properties/counter_random.hpp"
#include "properties/judge.hpp"
#include "properties/projection_bound.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/constants.hpp"
#include "reference/bound/moved_cache.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/certified.hpp"

namespace attest {
namespace {

constexpr Index kInnerMost = 16;  // columns of the tokens that are projected

/// K or V on its way: what it should be, and how far from it one may be before it is stored.
struct Rows {
  Tensor given;               // as projected by the subject, (batch, num_heads_kv, keys, width)
  Tensor meant;               // the exact rows after the turn, in f32
  std::vector<double> error;  // of `meant` against what is to be stored
};

/// Tokens from the rows of K, so that the fill plays a part; weights of about unit gain.
Projection projection_of(const Problem& p, const Values& values, Index width, std::uint64_t salt) {
  const Index inner = std::min(p.head_dim, kInnerMost);
  Projection projection;
  projection.output = p.input;
  projection.x = Tensor(p.input, {p.batch, 1, p.seqlen_kv, inner});
  projection.w = Tensor(p.input, {1, 1, inner, p.num_heads_kv * width});
  const double most = facts(p.input).max_finite;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index row = 0; row < p.seqlen_kv; ++row) {
      for (Index c = 0; c < inner; ++c) {
        const double number = number_at(values.k, values.k_scales, b, 0, row, c);
        projection.x.set(b, 0, row, c, std::clamp(number, -most, most));
      }
    }
  }
  const double gain = 1 / std::sqrt(static_cast<double>(inner));
  for (Index flat = 0; flat < projection.w.count(); ++flat) {
    projection.w.set(flat, gain * bell(random_bits(salt, Stream::other, 0, 0, 4, flat)));
  }
  return projection;
}

class Path {
 public:
  Path(const Subject& subject, const Problem& problem, const Values& values, Judge& judge)
      : subject_(subject), p_(problem), values_(values), judge_(judge) {}

  std::optional<Verdict> run() {
    if (p_.rope != Rope::none) rotations_ = rotation_table(p_.seqlen_kv, p_.head_dim);
    if (auto instead = project(k_, p_.head_dim, 1, p_.rope)) return instead;
    if (auto instead = project(v_, p_.head_dim_v, 2, Rope::none)) return instead;
    if (auto instead = append()) return instead;
    CacheError moved{stored_error(k_, cached_.k, k_scales_, "k"),
                     stored_error(v_, cached_.v, v_scales_, "v")};
    if (judge_.violated()) return std::nullopt;
    return judge_decode(moved);
  }

  /// What the two bounds together could have told; after run().
  std::vector<Power> power() const { return power_; }

 private:
  std::optional<Verdict> project(Rows& rows, Index width, std::uint64_t salt, Rope rope) {
    const Projection projection = projection_of(p_, values_, width, salt);
    Problem asked = p_;
    asked.output = p_.input;
    asked.bias = false;
    const Answer answer = ask_projection(subject_, asked, projection);
    if (answer.instead) return answer.instead;
    const PrecisionPath path = precision_of(subject_, Operation::projection, asked);
    const Extent4 extent{p_.batch, p_.num_heads_kv, p_.seqlen_kv, width};
    rows.given = Tensor(p_.input, extent);
    rows.meant = Tensor(Format::f32, extent);
    for (Index b = 0; b < p_.batch; ++b) {
      for (Index h = 0; h < p_.num_heads_kv; ++h) {
        for (Index row = 0; row < p_.seqlen_kv; ++row) {
          std::vector<double> exact, off;
          for (Index c = 0; c < width; ++c) {
            const Index column = h * width + c;
            const ProjectedElement element = projected(projection, path, b, row, column);
            const Tensor& y = answer.reply.y;
            judge_.within(y.at(b, 0, row, column), element.value, element.bound,
                          {b, 0, row, column}, "y");
            rows.given.set_bits(rows.given.offset(b, h, row, c),
                                y.bits(y.offset(b, 0, row, column)));
            exact.push_back(element.value);
            off.push_back(element.bound);
          }
          turn(rows, exact, off, rope, b, h, row);
        }
      }
    }
    return std::nullopt;
  }

  /// `meant` and `error` of one row, whose rows come in order.
  void turn(Rows& rows, const std::vector<double>& exact, const std::vector<double>& off, Rope rope,
            Index b, Index h, Index row) const {
    const auto turned = turned_row(rope, exact, rotations_, row);
    const auto carried = turned_row(rope, off, rotations_, row);
    for (std::size_t c = 0; c < exact.size(); ++c) {
      double error = carried[c].magnitude;
      if (rope != Rope::none) {
        error += turn_error(turned[c].magnitude + carried[c].magnitude);
      }
      const double meant = turned[c].value;
      rows.meant.set(b, h, row, static_cast<Index>(c), meant);
      rows.error.push_back(error + bound::kU * bound::kRoom * std::fabs(meant) + bound::kFlush);
    }
  }

  std::optional<Verdict> append() {
    const Index capacity = cache_slots(p_);
    const Format format = cache_format(p_);
    cached_.k = Tensor(format, {p_.batch, p_.num_heads_kv, capacity, p_.head_dim});
    cached_.v = Tensor(format, {p_.batch, p_.num_heads_kv, capacity, p_.head_dim_v});
    if (p_.scales == Scales::token) {
      cached_.k_scales = cached_.v_scales = Tensor(Format::f32, scales_extent(p_, capacity));
    } else {
      k_scales_ = stored_rows(p_, k_.meant).scales;
      v_scales_ = stored_rows(p_, v_.meant).scales;
    }
    for (Index first = 0; first < p_.seqlen_kv; first += p_.chunk) {
      const Index last = std::min(p_.seqlen_kv, first + p_.chunk);
      CacheUpdate update{cached_.k,
                         cached_.v,
                         rows_between(k_.given, first, last),
                         rows_between(v_.given, first, last),
                         {},
                         {}};
      for (Index b = 0; b < p_.batch; ++b) {
        const Index length = key_length(p_, b);
        update.cache_seqlens.push_back(std::min(length, first));
        update.new_seqlens.push_back(std::clamp<Index>(length - first, 0, last - first));
      }
      const bool token = p_.scales == Scales::token;
      update.k_scales = token ? std::optional(cached_.k_scales) : k_scales_;
      update.v_scales = token ? std::optional(cached_.v_scales) : v_scales_;
      update.rope_cos_sin = rotations_;
      Answer answer = ask_append(subject_, p_, update);
      if (answer.instead) return answer.instead;
      cached_ = std::move(answer.reply);
    }
    if (p_.scales == Scales::token) {
      k_scales_ = rows_between(cached_.k_scales, 0, p_.seqlen_kv);
      v_scales_ = rows_between(cached_.v_scales, 0, p_.seqlen_kv);
    }
    return std::nullopt;
  }

  /// By how much each number of the cache may differ from `meant`; judged on the way.
  std::vector<double> stored_error(const Rows& rows, const Tensor& cache,
                                   const std::optional<Tensor>& scales, std::string_view name) {
    std::vector<double> errors;
    const Extent4& extent = rows.meant.extent;
    const double most = facts(cache.format).max_finite;
    for (Index b = 0; b < extent[0]; ++b) {
      for (Index h = 0; h < extent[1]; ++h) {
        for (Index row = 0; row < extent[2]; ++row) {
          const auto [low, high] = scale_of(rows, scales, cache.format, b, h, row);
          for (Index c = 0; c < extent[3]; ++c) {
            const double error =
                rows.error[static_cast<std::size_t>(rows.meant.offset(b, h, row, c))];
            const double reach = std::fabs(rows.meant.at(b, h, row, c)) + error;
            double off = error + bound::kQuotientRoundings * bound::kU * bound::kRoom * reach +
                         high * bound::kFlush;
            if (low > 0) {
              off += high * ulp(cache.format, std::min(reach / low, most)) / 2 +
                     std::max(0.0, reach - low * most);
            } else {
              off += 2 * reach + high;  // the row may be all zeros, and its scale anything
            }
            errors.push_back(std::isnan(off) ? HUGE_VAL : off);
            if (row >= key_length(p_, b)) continue;
            judge_.within(number_at(cache, scales, b, h, row, c), rows.meant.at(b, h, row, c),
                          errors.back(), {b, h, row, c}, name);
          }
        }
      }
    }
    return errors;
  }

  ScaleRange scale_of(const Rows& rows, const std::optional<Tensor>& scales, Format format, Index b,
                      Index h, Index row) const {
    if (p_.scales != Scales::token) {
      const double scale = scale_at(scales, b, h, row);
      return {scale, scale};
    }
    double low = 0, high = 0;
    for (Index c = 0; c < rows.meant.extent[3]; ++c) {
      const double size = std::fabs(rows.meant.at(b, h, row, c));
      const double error = rows.error[static_cast<std::size_t>(rows.meant.offset(b, h, row, c))];
      low = std::max(low, size - error);
      high = std::max(high, size + error);
    }
    return scale_range(format, low, high);
  }

  std::optional<Verdict> judge_decode(const CacheError& moved) {
    Values held = values_;
    held.k = rows_between(cached_.k, 0, p_.seqlen_kv);
    held.v = rows_between(cached_.v, 0, p_.seqlen_kv);
    held.k_scales = k_scales_;
    held.v_scales = v_scales_;
    const Answer answer = ask(subject_, Operation::decode, p_, held);
    if (answer.instead) return answer.instead;
    Problem plain = p_;
    plain.cache = Format::f32;
    plain.scales = Scales::none;
    Values meant = values_;
    meant.k = k_.meant;
    meant.v = v_.meant;
    meant.k_scales.reset();
    meant.v_scales.reset();
    Bounds bounds = moved_cache_bounds(plain, meant, moved);
    const Bounds near = order_free_bounds(p_, held, precision_of(subject_, Operation::decode, p_));
    for (std::size_t n = 0; n < near.o.size(); ++n) bounds.o[n] += near.o_before[n];
    for (std::size_t n = 0; n < near.lse.size(); ++n) bounds.lse[n] += near.lse[n];
    const Certified certified = certified_attention(plain, meant, share_of(bounds.o, bounds.lse));
    certified.widen(bounds.o, bounds.lse);
    const Acceptance accepted{{p_.output, certified.truth.o, bounds.o},
                              {Format::f32, certified.truth.lse, bounds.lse},
                              std::vector<Strength>(bounds.lse.size(), Strength::order_free)};
    const Tensor& o = answer.reply.o;
    const Tensor& lse = answer.reply.lse;
    for_each_row(p_, [&](Index b, Index h, Index i) {
      for (Index c = 0; c < p_.head_dim_v; ++c) {
        judge_.accepted(o.at(b, h, i, c), accepted.o, o.offset(b, h, i, c), {b, h, i, c},
                        "o through the cache");
      }
      if (!wants_lse(p_)) return;
      judge_.accepted(lse.at(b, h, i, 0), accepted.lse, lse.offset(b, h, i, 0), {b, h, i, 0},
                      "lse through the cache");
    });
    // What the cache lost hides any loss besides.
    const PrecisionPath lossy{.p_format = Format::e4m3};
    if (!judge_.violated()) power_ = measure_power(plain, meant, lossy, accepted);
    return std::nullopt;
  }

  const Subject& subject_;
  const Problem& p_;
  const Values& values_;
  Judge& judge_;
  std::optional<Tensor> rotations_, k_scales_, v_scales_;
  Rows k_, v_;
  Reply cached_;
  std::vector<Power> power_;
};

}  // namespace

Verdict quantised_path(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto refused = refusal(subject, Operation::decode, problem)) return *refused;
  for (const Operation operation : {Operation::append, Operation::projection}) {
    if (!offers(subject, operation)) return *refusal(subject, operation, problem);
  }
  const bool suits = problem.scales != Scales::none && problem.ring == 0 && problem.seqlen_kv > 0 &&
                     bytes_of(problem.input) > 1;
  if (!suits) return vacuous("needs a cache of 8 bits with scales, and wider inputs");
  Judge judge;
  Path path(subject, problem, values, judge);
  if (const auto instead = path.run()) return *instead;
  Verdict verdict = judge.verdict();
  verdict.power = path.power();
  return verdict;
}

}  // namespace attest
