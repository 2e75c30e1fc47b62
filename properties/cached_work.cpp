// Cached work: a token that joins a cache costs the cache one row, the decoder one pass over the
// keys and the projection one row; nothing is done again for the tokens before it.
// Why: L tokens then cost L rows and L projections instead of L (L + 1) / 2, which is what a cache
// is for. An append must write the rows it was given, as many bytes as the footprint formula says;
// it is told apart from one that rewrites the cache at the geometric mean of the two. Decode of one
// token grows with the first power of the keys, projection with the first power of the rows, as
// costs.hpp says.
// Sees: caches that are copied or moved to grow by a token, decode that recomputes earlier rows,
// projection of the whole prefix.
#include <string>
#include <string_view>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/costs.hpp"
#include "properties/judge.hpp"
#include "reference/footprint.hpp"

namespace attest {
namespace {

std::int64_t cache_bytes(const Problem& p, Index tokens) {
  return static_cast<std::int64_t>(kv_cache_footprint({.num_heads_kv = p.num_heads_kv,
                                                       .key_width = p.head_dim,
                                                       .value_width = p.head_dim_v,
                                                       .tokens = tokens,
                                                       .batch = p.batch,
                                                       .format = p.input})
                                       .bytes);
}

/// One token per batch entry into a cache that is half full.
std::optional<Verdict> judge_append(const Subject& subject, const Problem& p, const Values& values,
                                    Judge& judge) {
  const std::size_t batch = static_cast<std::size_t>(p.batch);
  CacheUpdate update{values.k,
                     values.v,
                     Tensor(p.input, {p.batch, p.num_heads_kv, 1, p.head_dim}),
                     Tensor(p.input, {p.batch, p.num_heads_kv, 1, p.head_dim_v}),
                     std::vector<Index>(batch, p.seqlen_kv / 2),
                     std::vector<Index>(batch, 1)};
  Problem asked = p;
  asked.spare_slots = 0;
  asked.chunk = 1;
  const Answer answer = ask_append(subject, asked, update);
  if (answer.instead) return answer.instead;
  const double written = static_cast<double>(answer.reply.counters.global_written_bytes);
  const double row = static_cast<double>(cache_bytes(p, 1));
  const double whole = static_cast<double>(cache_bytes(p, p.seqlen_kv));
  judge.demand(written >= row && written * written < row * whole, written, {0, 0, 0, 0},
               "to append a token whose row takes " + std::to_string(cache_bytes(p, 1)) +
                   " of the cache's " + std::to_string(cache_bytes(p, p.seqlen_kv)) +
                   " bytes, about as many as the row has must be written");
  return std::nullopt;
}

/// Twice the size must take about twice the arithmetic.
void judge_twice(std::string_view what, const Answer& single, const Answer& doubled, Judge& judge) {
  const std::int64_t from = flops_of(single.reply.counters);
  const std::int64_t to = flops_of(doubled.reply.counters);
  judge.demand(grows_at_most(to, from, 1), static_cast<double>(to), {0, 0, 0, 0},
               "to " + std::string(what) + " took " + std::to_string(from) +
                   " floating-point operations; all must take about twice that");
}

std::optional<Verdict> judge_decode(const Subject& subject, const Problem& p, const Values& values,
                                    Judge& judge) {
  Problem token = p;
  token.seqlen_q = 1;
  token.spare_slots = 0;
  Values one = values;
  one.q = Tensor(p.input, {p.batch, p.num_heads_q, 1, p.head_dim});
  const Answer single = ask(subject, Operation::decode, token, one);
  if (single.instead) return single.instead;
  token.seqlen_kv *= 2;
  one.k = twice(values.k);
  one.v = twice(values.v);
  const Answer doubled = ask(subject, Operation::decode, token, one);
  if (doubled.instead) return doubled.instead;
  judge_twice("decode a token with half the keys", single, doubled, judge);
  return std::nullopt;
}

/// The rows of K stand for tokens, and their first columns for W.
std::optional<Verdict> judge_projection(const Subject& subject, const Problem& p,
                                        const Values& values, Judge& judge) {
  Projection projection;
  projection.output = p.output;
  projection.x = Tensor(p.input, {1, 1, p.seqlen_kv, p.head_dim});
  projection.w = Tensor(p.input, {1, 1, p.head_dim, p.head_dim});
  for (Index row = 0; row < p.seqlen_kv; ++row) {
    for (Index c = 0; c < p.head_dim; ++c)
      projection.x.set_bits(projection.x.offset(0, 0, row, c),
                            values.k.bits(values.k.offset(0, 0, row, c)));
  }
  const Answer single = ask_projection(subject, p, projection);
  if (single.instead) return single.instead;
  projection.x = twice(projection.x);
  const Answer doubled = ask_projection(subject, p, projection);
  if (doubled.instead) return doubled.instead;
  judge_twice("project half of the rows", single, doubled, judge);
  return std::nullopt;
}

}  // namespace

Verdict cached_work(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto instead = uncounted(subject)) return *instead;
  Problem plain = problem;
  plain.ring = 0;
  plain.rope = Rope::none;
  plain.seqlen_q = 1;
  plain.causal = false;
  plain.window_left = plain.window_right = kUnbounded;
  plain.mask = plain.bias = false;
  plain.seqlens_q.clear();
  plain.seqlens_kv.clear();
  for (const Operation operation : {Operation::append, Operation::decode, Operation::projection}) {
    if (const auto refused = refusal(subject, operation, plain)) return *refused;
  }
  if (problem.seqlen_kv == 0 || problem.seqlen_kv % kWholeTile != 0) {
    return vacuous("needs whole tiles of keys, to tell a row from all rows");
  }
  if (cache_format(problem) != problem.input) return vacuous("rows are appended as they are");
  Values kept = values;
  kept.mask.reset();
  kept.bias.reset();
  Judge judge;
  for (const auto& part : {judge_append, judge_decode, judge_projection}) {
    if (const auto instead = part(subject, plain, kept, judge)) return *instead;
  }
  return judge.verdict();
}

}  // namespace attest
