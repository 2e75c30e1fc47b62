// Cached = recomputed: a causal sequence fed through a cache, in chunks by append and prefill or
// one token at a time by append and decode, gives the rows that one pass over it gives. A cache on
// pages or in a ring is read by decode alone; the one pass knows of neither.
// Over the reals: a row sees the same keys either way.
// In floating point: sums may be grouped differently, so a row may differ by the sum of the two
// order-free bounds, one for each way of asking.
// Sees: cache slots stale, shifted or overwritten; masks that forget how much is cached; window and
// bias offsets that restart with each step; split borders; pages and rings that are written and
// read in different places.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "properties/ask.hpp"
#include "properties/cache_rows.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "reference/bound/order_free.hpp"

namespace attest {
namespace {

/// How many tokens are fed one at a time; what precedes them enters the cache in one step, so that
/// long sequences put these few across a tile edge without a call for every token.
constexpr Index kSingleTokens = 6;

Tensor poisoned(Format format, Extent4 extent) {
  Tensor tensor(format, extent);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    tensor.set(flat, std::numeric_limits<double>::quiet_NaN());
  }
  return tensor;
}

/// Slots of a ring that is asked for no more than `chunk` rows at once: what it must have, and as
/// many more as the whole problem's has.
Index ring_for(const Problem& whole) {
  return whole.ring == 0 ? 0 : whole.ring - whole.seqlen_q + std::min(whole.chunk, whole.seqlen_q);
}

/// Tokens [first, last) as queries over the first `last` tokens.
Problem step_problem(const Problem& whole, Index first, Index last) {
  Problem step = whole;
  step.seqlen_q = last - first;
  step.seqlen_kv = last;
  step.ring = ring_for(whole);
  step.spare_slots = whole.ring > 0 ? 0 : whole.seqlen_kv + whole.spare_slots - last;
  step.alignment = Alignment::bottom_right;
  for (std::size_t b = 0; b < whole.seqlens_kv.size(); ++b) {
    step.seqlens_q[b] = std::clamp<Index>(whole.seqlens_kv[b] - first, 0, last - first);
    step.seqlens_kv[b] = std::min(whole.seqlens_kv[b], last);
  }
  return step;
}

/// The first `last` tokens of a cache; of a ring, those that it still holds.
Tensor tokens_of(const Tensor& cache, const Problem& step) {
  if (step.ring == 0) return rows_between(cache, 0, step.seqlen_kv);
  Tensor tokens =
      poisoned(cache.format, {cache.extent[0], cache.extent[1], step.seqlen_kv, cache.extent[3]});
  for (Index b = 0; b < cache.extent[0]; ++b) {
    const Index length = key_length(step, b);
    for (Index h = 0; h < cache.extent[1]; ++h) {
      for (Index j = std::max<Index>(0, length - step.ring); j < length; ++j) {
        for (Index c = 0; c < cache.extent[3]; ++c) {
          tokens.set_bits(tokens.offset(b, h, j, c),
                          cache.bits(cache.offset(b, h, j % step.ring, c)));
        }
      }
    }
  }
  return tokens;
}

/// `k` and `v` are those of the step's tokens.
Values step_values(const Values& whole, Tensor k, Tensor v, Index first, Index last) {
  Values step;
  step.q = rows_between(whole.q, first, last);
  step.k = std::move(k);
  step.v = std::move(v);
  step.alibi_slopes = whole.alibi_slopes;
  step.sinks = whole.sinks;
  if (whole.bias) {
    const Tensor rows = rows_between(*whole.bias, first, last);
    Tensor bias(rows.format, {rows.extent[0], rows.extent[1], rows.extent[2], last});
    for (Index row = 0; row < bias.extent[0] * bias.extent[1] * bias.extent[2]; ++row) {
      for (Index j = 0; j < last; ++j) {
        bias.set_bits(row * last + j, rows.bits(row * rows.extent[3] + j));
      }
    }
    step.bias = std::move(bias);
  }
  if (whole.mask) {
    VisibilityMask mask{whole.mask->batch, last - first, last, {}};
    for (Index b = 0; b < mask.batch; ++b) {
      for (Index i = first; i < last; ++i) {
        for (Index j = 0; j < last; ++j) mask.visible.push_back(whole.mask->at(b, i, j) ? 1 : 0);
      }
    }
    step.mask = std::move(mask);
  }
  return step;
}

/// One sequence on its way through a cache, judged row by row against the one-pass reply.
class Feed {
 public:
  Feed(const Subject& subject, const Problem& whole, const Values& values, const Reply& one_pass,
       const Bounds& bounds, Judge& judge)
      : subject_(subject),
        whole_(whole),
        values_(values),
        one_pass_(one_pass),
        bounds_(bounds),
        judge_(judge) {
    const Index capacity = whole.ring > 0 ? ring_for(whole) : whole.seqlen_kv + whole.spare_slots;
    cache_.k = poisoned(whole.input, {whole.batch, whole.num_heads_kv, capacity, whole.head_dim});
    cache_.v = poisoned(whole.input, {whole.batch, whole.num_heads_kv, capacity, whole.head_dim_v});
  }

  /// Appends tokens [first, last), asks for their rows, judges them.
  std::optional<Verdict> step(Operation operation, Index first, Index last) {
    const Problem problem = step_problem(whole_, first, last);
    CacheUpdate update{cache_.k,
                       cache_.v,
                       rows_between(values_.k, first, last),
                       rows_between(values_.v, first, last),
                       {},
                       {}};
    for (Index b = 0; b < whole_.batch; ++b) {
      update.cache_seqlens.push_back(std::min(key_length(whole_, b), first));
      update.new_seqlens.push_back(query_length(problem, b));
    }
    Answer appended = ask_append(subject_, problem, update);
    if (appended.instead) return appended.instead;
    cache_ = std::move(appended.reply);
    const Values values = step_values(values_, tokens_of(cache_.k, problem),
                                      tokens_of(cache_.v, problem), first, last);
    const Answer answer = ask(subject_, operation, problem, values);
    if (answer.instead) return answer.instead;
    // The right contents of the cache: the bound must not follow a wrong one.
    judge_rows(operation, problem,
               step_values(values_, rows_between(values_.k, 0, last),
                           rows_between(values_.v, 0, last), first, last),
               answer.reply, first);
    return std::nullopt;
  }

 private:
  void judge_rows(Operation operation, const Problem& problem, const Values& values,
                  const Reply& got, Index first) {
    const Bounds bounds =
        order_free_bounds(problem, values, precision_of(subject_, operation, problem));
    for_each_row(problem, [&](Index b, Index h, Index i) {
      const auto judge_element =
          [&](const Tensor& part, const Tensor& whole, const std::vector<double>& part_bounds,
              const std::vector<double>& whole_bounds, Index c, std::string_view what) {
            const Index in_part = part.offset(b, h, i, c);
            const Index in_whole = whole.offset(b, h, first + i, c);
            const double bound = part_bounds[static_cast<std::size_t>(in_part)] +
                                 whole_bounds[static_cast<std::size_t>(in_whole)];
            judge_.within(part.at(in_part), whole.at(in_whole), bound, {b, h, first + i, c}, what);
          };
      for (Index c = 0; c < problem.head_dim_v; ++c) {
        judge_element(got.o, one_pass_.o, bounds.o, bounds_.o, c, "o through the cache");
      }
      if (!wants_lse(problem)) return;
      judge_element(got.lse, one_pass_.lse, bounds.lse, bounds_.lse, 0, "lse through the cache");
    });
  }

  const Subject& subject_;
  const Problem& whole_;
  const Values& values_;
  const Reply& one_pass_;
  const Bounds& bounds_;
  Judge& judge_;
  Reply cache_;
};

}  // namespace

Verdict cached_equals_recomputed(const Subject& subject, const Problem& problem,
                                 const Values& values) {
  const Problem& p = problem;
  for (const Operation operation : {Operation::prefill, Operation::append, Operation::decode}) {
    if (!offers(subject, operation)) return *refusal(subject, operation, p);
  }
  if (!p.causal || p.seqlen_q != p.seqlen_kv || p.seqlens_q != p.seqlens_kv) {
    return vacuous("needs a causal sequence: as many queries as keys in every batch entry");
  }
  if (!stores_bits(p)) return vacuous("what is stored in the cache is not what was given");
  Problem plain = p;
  plain.page_size = plain.page_order = plain.ring = 0;
  const Answer one_pass = ask(subject, Operation::prefill, plain, values);
  if (one_pass.instead) return *one_pass.instead;
  const Bounds bounds =
      order_free_bounds(plain, values, precision_of(subject, Operation::prefill, plain));
  Judge judge;

  const bool contiguous = p.page_size == 0 && p.ring == 0;
  const Operation many = contiguous ? Operation::prefill : Operation::decode;
  Feed chunks(subject, p, values, one_pass.reply, bounds, judge);
  for (Index first = 0; first < p.seqlen_kv; first += p.chunk) {
    const Index last = std::min(p.seqlen_kv, first + p.chunk);
    if (const auto instead = chunks.step(many, first, last)) return *instead;
  }
  Feed tokens(subject, p, values, one_pass.reply, bounds, judge);
  const Index prefix = std::max<Index>(0, p.seqlen_kv - kSingleTokens);
  const Index at_once = p.ring > 0 ? p.chunk : prefix;  // a ring holds no more
  for (Index first = 0; first < prefix; first += at_once) {
    const Index last = std::min(prefix, first + at_once);
    if (const auto instead = tokens.step(many, first, last)) return *instead;
  }
  for (Index token = prefix; token < p.seqlen_kv; ++token) {
    if (const auto instead = tokens.step(Operation::decode, token, token + 1)) return *instead;
  }
  return judge.verdict("an empty sequence");
}

}  // namespace attest
