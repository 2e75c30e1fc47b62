// Batch invariance: where promised, the bits of a row are those that it has when its batch entry is
// alone, whoever else is in the batch: entries that are longer, in keys or in queries, shorter
// ones, or many.
// Over the reals: the definition mentions nothing else.
// In floating point: exactly too, if nothing that groups the entry's sums (tiles, parts, which
// kernel) is chosen by the size of the batch or by its longest member. The number of parts that is
// asked for stays the same, and lengths are given one by one, or not at all, both times: which of
// two interfaces serves a call is the caller's choice, not a neighbour's doing.
// What the neighbours hold is batch_independence's business; here they hold the entry's own rows.
// Sees: parts cut by the longest sequence, tiles chosen by the size of the grid, another kernel for
// a large batch, entries that share a tile.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

/// Who stands around the entry.
struct Company {
  std::string_view what;
  Index batch, place;            // entries, and which of them it is
  bool more_queries, more_keys;  // of the first neighbour, than it has
};
constexpr Company kAlone{"alone", 1, 0, false, false};
constexpr Company kCompanies[] = {
    {"beside one with more keys", 2, 1, false, true},
    {"beside one with more queries", 2, 1, true, false},
    {"among many", 5, 3, false, false},
};

/// Which lengths are given one by one.
struct Told {
  bool queries, keys;
};

/// The entry's length in its place; around it as many as there can be, none, and half, in turn.
std::vector<Index> lengths_around(const Company& company, Index own, Index most) {
  std::vector<Index> lengths;
  for (Index b = 0; b < company.batch; ++b) {
    lengths.push_back(b == company.place ? own : b % 3 == 0 ? most : b % 3 == 1 ? 0 : most / 2);
  }
  return lengths;
}

class Entry {
 public:
  Entry(const Problem& problem, const Values& values, Index b)
      : whole_(problem), values_(values), b_(b) {}

  Problem problem_in(const Company& company, const Told& told) const {
    Problem p = whole_;
    const Index queries = query_length(whole_, b_), keys = key_length(whole_, b_);
    p.batch = company.batch;
    p.seqlen_q = company.more_queries ? 2 * queries + 1 : queries;
    p.seqlen_kv = company.more_keys ? 2 * keys + 1 : keys;
    p.seqlens_q.clear();
    p.seqlens_kv.clear();
    if (told.queries) p.seqlens_q = lengths_around(company, queries, p.seqlen_q);
    if (told.keys) p.seqlens_kv = lengths_around(company, keys, p.seqlen_kv);
    return p;
  }

  /// Every entry holds the rows of this one, over again where it has more.
  Values values_in(const Problem& p) const {
    Values values = values_;
    values.q = repeated(values_.q, p.batch, p.seqlen_q, values_.q.extent[3]);
    values.k = repeated(values_.k, p.batch, p.seqlen_kv, values_.k.extent[3]);
    values.v = repeated(values_.v, p.batch, p.seqlen_kv, values_.v.extent[3]);
    if (values_.bias) values.bias = repeated(*values_.bias, p.batch, p.seqlen_q, p.seqlen_kv);
    if (p.scales == Scales::token) {
      values.k_scales = repeated(*values_.k_scales, p.batch, p.seqlen_kv, 1);
      values.v_scales = repeated(*values_.v_scales, p.batch, p.seqlen_kv, 1);
    }
    if (values_.mask) values.mask = repeated(*values_.mask, p);
    return values;
  }

 private:
  VisibilityMask repeated(const VisibilityMask& from, const Problem& p) const {
    VisibilityMask mask{p.batch, p.seqlen_q, p.seqlen_kv, {}};
    for (Index n = 0; n < p.batch * p.seqlen_q * p.seqlen_kv; ++n) {
      const Index i = n / p.seqlen_kv % p.seqlen_q, j = n % p.seqlen_kv;
      const bool seen = from.keys == 0 || from.at(b_, i % from.queries, j % from.keys);
      mask.visible.push_back(seen ? 1 : 0);
    }
    return mask;
  }

  Tensor repeated(const Tensor& tensor, Index batch, Index rows, Index columns) const {
    const Extent4& from = tensor.extent;
    Tensor result(tensor.format, {batch, from[1], rows, columns});
    if (from[2] == 0 || from[3] == 0) return result;
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < from[1]; ++h) {
        for (Index row = 0; row < rows; ++row) {
          for (Index c = 0; c < columns; ++c) {
            result.set_bits(result.offset(b, h, row, c),
                            tensor.bits(tensor.offset(b_, h, row % from[2], c % from[3])));
          }
        }
      }
    }
    return result;
  }

  const Problem& whole_;
  const Values& values_;
  Index b_;
};

/// Rows of the entry that stands in `place`, against the same alone.
void judge_rows(Judge& judge, const Problem& alone, const Reply& before, const Reply& after,
                const Company& company) {
  const auto judge_element = [&](const Tensor& was, const Tensor& is, Index h, Index i, Index c) {
    const Index there = is.offset(company.place, h, i, c);
    judge.demand(same_number(was, was.offset(0, h, i, c), is, there), is.at(there),
                 {company.place, h, i, c},
                 "a row's bits must be those that it has alone, " + std::string(company.what));
  };
  for_each_row(alone, [&](Index, Index h, Index i) {
    for (Index c = 0; c < alone.head_dim_v; ++c) judge_element(before.o, after.o, h, i, c);
    if (wants_lse(alone)) judge_element(before.lse, after.lse, h, i, 0);
  });
}

}  // namespace

Verdict batch_invariance(const Subject& subject, const Problem& problem, const Values& values) {
  if (!subject.description.batch_invariant || !subject.description.deterministic) {
    return declined("the subject does not promise it");
  }
  if (const auto refused = refusal(subject, attention_for(problem), problem)) return *refused;
  Index b = problem.batch - 1;
  while (b > 0 && (query_length(problem, b) == 0 || key_length(problem, b) == 0)) --b;
  if (query_length(problem, b) == 0) return vacuous("no row to compare");
  const Entry entry(problem, values, b);
  Judge judge;
  std::optional<Verdict> refused;
  for (const Company& company : kCompanies) {
    // Slots of a ring would have to follow the queries.
    if (company.more_queries && problem.ring > 0) continue;
    const Told told{company.more_queries || !problem.seqlens_q.empty(),
                    company.more_keys || !problem.seqlens_kv.empty()};
    const Problem alone = entry.problem_in(kAlone, told);
    const Problem around = entry.problem_in(company, told);
    if (illegality(alone) || illegality(around)) continue;
    refused = refusal(subject, attention_for(problem), alone);
    if (!refused) refused = refusal(subject, attention_for(problem), around);
    if (refused) continue;
    const Answer before = ask_attention(subject, alone, entry.values_in(alone));
    if (before.instead) return *before.instead;
    const Answer after = ask_attention(subject, around, entry.values_in(around));
    if (after.instead) return *after.instead;
    judge_rows(judge, alone, before.reply, after.reply, company);
  }
  const Verdict verdict = judge.verdict("no row to compare");
  return verdict.outcome == Outcome::vacuous && refused ? *refused : verdict;
}

}  // namespace attest
