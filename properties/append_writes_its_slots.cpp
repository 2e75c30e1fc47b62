// Append writes its slots: afterwards the slot of token cache_seqlens[b] + r holds row r, for every
// r < new_seqlens[b] whose slot exists; every other slot of every batch entry is as it was.
// A token's slot is its number, or that modulo the ring, of which the last token keeps it.
// Over the reals: it is the definition.
// In floating point: bits are copied where nothing is asked of them. Otherwise the stored number is
// one to which some number of an interval is rounded: around the turned key, two roundings of each
// of two products and their sum; around the quotient with the scale, one division, or the product
// with a reciprocal, of the scale or of what it was made from: kQuotientRoundings. A scale per
// token lies as close to the largest magnitude over the format's largest number. The caches before
// hold arbitrary patterns, NaN included; the rows given are finite. Sees: slots off by one, rows
// behind the capacity written elsewhere, heads or batch entries mixed, K and V confused, wrong
// pages, positions and pairs of columns, rounding that truncates or wraps, scales of neighbours, a
// cache that is cleared or copied only in part.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "properties/ask.hpp"
#include "properties/cache_rows.hpp"
#include "properties/catalogue.hpp"
#include "properties/counter_random.hpp"
#include "properties/judge.hpp"
#include "reference/bound/constants.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

constexpr Index kZeroRow = 7;  // every seventh row is all zeros, at random

/// Patterns of finite numbers.
Tensor finite_patterns(Format format, Extent4 extent, std::uint64_t salt) {
  Tensor tensor = patterned(format, extent, salt);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    if (!std::isfinite(tensor.at(flat))) tensor.set(flat, -1);
  }
  return tensor;
}

/// Numbers of many sizes, a few of them too large for a narrow cache, and rows of zeros.
Tensor of_many_sizes(Format format, Extent4 extent, std::uint64_t salt) {
  Tensor tensor(format, extent);
  const double most = facts(format).max_finite;
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    const Index row = flat / extent[3];
    const auto bits = random_bits(salt, Stream::other, 0, 0, row, flat % extent[3]);
    if (random_bits(salt, Stream::other, 0, 0, row, -1)[0] % kZeroRow == 0) continue;
    const int exponent = static_cast<int>(bits[0] % 12U) - 6 + (bits[1] % 16U == 0 ? 10 : 0);
    const double size = std::ldexp(1 + (bits[2] % 4096U) / 4096.0, exponent);
    tensor.set(flat, std::clamp((bits[3] & 1U) != 0 ? size : -size, -most, most));
  }
  return tensor;
}

/// One per tensor or head, such that some numbers lie beyond what the format holds.
Tensor given_scales(const Problem& p, Index slots, std::uint64_t salt) {
  Tensor scales(Format::f32, scales_extent(p, slots));
  for (Index flat = 0; flat < scales.count(); ++flat) {
    const auto bits = random_bits(salt, Stream::other, 0, 0, 0, flat);
    scales.set(flat,
               std::ldexp(1 + (bits[0] % 1024U) / 1024.0, static_cast<int>(bits[1] % 6U) - 3));
  }
  return scales;
}

CacheUpdate update_for(const Problem& p, const Values& values) {
  const Index capacity = cache_slots(p);
  const Format cache = cache_format(p);
  CacheUpdate update;
  update.k = patterned(cache, {p.batch, p.num_heads_kv, capacity, p.head_dim}, 1);
  update.v = patterned(cache, {p.batch, p.num_heads_kv, capacity, p.head_dim_v}, 2);
  const Extent4 k{p.batch, p.num_heads_kv, p.chunk, p.head_dim},
      v{p.batch, p.num_heads_kv, p.chunk, p.head_dim_v};
  update.new_k = stores_bits(p) ? finite_patterns(p.input, k, 3) : of_many_sizes(p.input, k, 3);
  update.new_v = stores_bits(p) ? finite_patterns(p.input, v, 4) : of_many_sizes(p.input, v, 4);
  for (Index b = 0; b < p.batch; ++b) {
    // Batch entries append different numbers of rows: all, all but one, ..., none, all again.
    update.cache_seqlens.push_back(key_length(p, b));
    update.new_seqlens.push_back(p.chunk - b % (p.chunk + 1));
  }
  if (p.scales != Scales::none) {
    update.k_scales = given_scales(p, capacity, 5);
    update.v_scales = given_scales(p, capacity, 6);
  }
  if (p.rope != Rope::none) update.rope_cos_sin = rotation_table(p.seqlen_kv + p.chunk, p.head_dim);
  if (!stores_bits(p)) return update;
  // The rows of the case itself where there are some, so that its fill plays a part.
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.num_heads_kv; ++h) {
      for (Index row = 0; row < std::min(p.seqlen_kv, p.chunk); ++row) {
        for (Index c = 0; c < p.head_dim; ++c) {
          update.new_k.set_bits(update.new_k.offset(b, h, row, c),
                                values.k.bits(values.k.offset(b, h, row, c)));
        }
      }
    }
  }
  return update;
}

/// K or V, before and after.
struct Side {
  std::string_view name;
  const Tensor &before, &added, &after;
  const std::optional<Tensor>& scales_before;
  const Tensor& scales_after;  // with scales per token
};

class Judgement {
 public:
  Judgement(const Problem& problem, const CacheUpdate& update, Judge& judge)
      : p_(problem), update_(update), judge_(judge) {}

  void judge(const Side& side) const {
    const Extent4& extent = side.before.extent;
    for (Index b = 0; b < extent[0]; ++b) {
      const Index first = update_.cache_seqlens[static_cast<std::size_t>(b)];
      const Index count = update_.new_seqlens[static_cast<std::size_t>(b)];
      for (Index slot = 0; slot < extent[2]; ++slot) {
        const auto row = row_in_slot(p_, slot, first, count);
        for (Index h = 0; h < extent[1]; ++h) {
          if (!row) {
            unchanged(side, b, h, slot);
          } else if (stores_bits(p_)) {
            copied(side, b, h, slot, *row);
          } else {
            rounded(side, b, h, slot, *row, first + *row);
          }
        }
      }
    }
  }

 private:
  void unchanged(const Side& side, Index b, Index h, Index slot) const {
    const std::string why = std::string(side.name) + ": this slot must stay as it was";
    for (Index c = 0; c < side.before.extent[3]; ++c) {
      const Index at = side.before.offset(b, h, slot, c);
      judge_.demand(side.after.bits(at) == side.before.bits(at), side.after.at(at), {b, h, slot, c},
                    why);
    }
    if (p_.scales != Scales::token) return;
    const Index at = side.scales_after.offset(b, h, slot, 0);
    judge_.demand(side.scales_after.bits(at) == side.scales_before->bits(at),
                  side.scales_after.at(at), {b, h, slot, 0}, why + ", its scale too");
  }

  void copied(const Side& side, Index b, Index h, Index slot, Index row) const {
    const std::string why = std::string(side.name) + ": an appended slot must hold the given bits";
    for (Index c = 0; c < side.before.extent[3]; ++c) {
      const Index at = side.after.offset(b, h, slot, c);
      judge_.demand(side.after.bits(at) == side.added.bits(side.added.offset(b, h, row, c)),
                    side.after.at(at), {b, h, slot, c}, why);
    }
  }

  /// How far f32 may be from an element. Of what is not turned nothing is lost.
  double error_of(const Turned& element, bool key) const {
    return key && p_.rope != Rope::none ? turn_error(element.magnitude) : 0;
  }

  void rounded(const Side& side, Index b, Index h, Index slot, Index row, Index position) const {
    const bool key = side.name == "k";
    const auto elements = turned_row(key ? p_.rope : Rope::none, row_at(side.added, b, h, row),
                                     update_.rope_cos_sin, position);
    double scale = p_.scales == Scales::none ? 1 : scale_at(side.scales_before, b, h, slot);
    if (p_.scales == Scales::token) {
      scale = side.scales_after.at(b, h, slot, 0);
      if (!judge_scale(side, elements, key, scale, {b, h, slot, 0})) return;
    }
    const Format format = side.after.format;
    const bool scaled = p_.scales != Scales::none;
    for (Index c = 0; c < side.after.extent[3]; ++c) {
      const Turned& element = elements[static_cast<std::size_t>(c)];
      const double off = error_of(element, key);
      const double quotient = element.value / scale;
      const double wide =
          off / scale + (scaled ? bound::kQuotientRoundings * bound::kU * bound::kRoom *
                                          (std::fabs(quotient) + off / scale) +
                                      bound::kFlush * std::max(1.0, 1 / scale)
                                : 0);
      const double low = decode(format, encode_saturating(format, quotient - wide));
      const double high = decode(format, encode_saturating(format, quotient + wide));
      const double got = side.after.at(b, h, slot, c);
      const bool so = got >= low && got <= high;
      judge_.demand(
          so, got, {b, h, slot, c},
          so ? "" : fmt::format("{}: {} to {} must be stored here", side.name, low, high));
    }
  }

  bool judge_scale(const Side& side, const std::vector<Turned>& elements, bool key, double scale,
                   const Where& where) const {
    double least = 0, most = 0;
    for (const Turned& element : elements) {
      const double off = error_of(element, key);
      least = std::max(least, std::fabs(element.value) - off);
      most = std::max(most, std::fabs(element.value) + off);
    }
    const auto [low, high] = scale_range(side.after.format, least, most);
    const bool one = least == 0 && scale == 1;  // a row of zeros, or one that may be
    const bool so = one || (most > 0 && scale > 0 && scale >= low && scale <= high);
    judge_.demand(so, scale, where,
                  so ? ""
                     : fmt::format("{}: a scale of {} to {}, or 1 for zeros, must be stored here",
                                   side.name, low, high));
    return so;
  }

  const Problem& p_;
  const CacheUpdate& update_;
  Judge& judge_;
};

}  // namespace

Verdict append_writes_its_slots(const Subject& subject, const Problem& problem,
                                const Values& values) {
  if (const auto refused = refusal(subject, Operation::append, problem)) return *refused;
  if (cache_slots(problem) == 0 || problem.chunk == 0)
    return vacuous("no slot, or nothing to append");
  const CacheUpdate update = update_for(problem, values);
  const Answer answer = ask_append(subject, problem, update);
  if (answer.instead) return *answer.instead;
  const Reply& reply = answer.reply;
  Judge judge;
  const Judgement judgement(problem, update, judge);
  judgement.judge({"k", update.k, update.new_k, reply.k, update.k_scales, reply.k_scales});
  judgement.judge({"v", update.v, update.new_v, reply.v, update.v_scales, reply.v_scales});
  return judge.verdict();
}

}  // namespace attest
