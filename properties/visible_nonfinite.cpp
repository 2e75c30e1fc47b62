// Visible NaN and infinity: one number of q, k or v that a row does see is made NaN or infinite. It
// must come out where the formula weighs it, and move no bit of what does not depend on it.
// Over the extended reals, and so in IEEE 754 whatever the order of the sums:
//   NaN in a row of q: every score of that row is NaN, so its weights and its O are. Other rows of
//   q
//     do not mention it.
//   NaN in a key: the same for the rows that weigh the key.
//   NaN or infinity in column c of a value: column c of the rows that weigh the key is not finite.
//     A weight may round to 0, and a kernel may then leave the value out; so this is demanded where
//     the order-free bound proves that the weight is not 0 (O of a value of 1 in that place). Other
//     columns do not mention it, nor does any LSE.
// No more is demanded than correct kernels keep:
//   Rows that do not see the key may turn NaN: a kernel may weigh it with 0, and 0 x NaN is NaN
//     (reference/README.md). What other heads and batch entries hold is batch_independence's.
//   Infinite scores: exp(inf - inf) is NaN, exp(-inf) is 0, a softcap makes both finite. Of an
//     infinity in q only the other rows are judged, and none is put into k.
//   The LSE of such a row is NaN or an infinity (FlashAttention 2 writes one in place of NaN), and
//   an
//     infinite O may saturate to the largest number of its format.
// Sees: NaN taken for a row without keys, maxima and sums that drop it, guards that make it 0,
// scratch and registers shared between rows.
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "properties/unmoved.hpp"
#include "reference/bound/order_free.hpp"
#include "reference/fnv.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/certified.hpp"

namespace attest {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A row that weighs a key, and columns of q and v.
struct Target {
  Index b, h, i, j, column, v_column;
};

/// As good as any other, and the same for the same Values.
std::optional<Target> target_in(const Problem& p, const Values& values) {
  std::vector<Target> rows;
  for_each_row(p, [&](Index b, Index h, Index i) {
    if (count_of(weighed_keys(p, values, b, h, i)) > 0) rows.push_back({b, h, i, 0, 0, 0});
  });
  if (rows.empty()) return std::nullopt;
  std::uint64_t number = fnv_of(std::span<const std::byte>(values.q.bytes));
  const auto pick = [&](Index count) {
    const auto chosen = static_cast<Index>(number % static_cast<std::uint64_t>(count));
    number /= static_cast<std::uint64_t>(count);
    return chosen;
  };
  Target target = rows[static_cast<std::size_t>(pick(static_cast<Index>(rows.size())))];
  target.column = pick(p.head_dim);
  target.v_column = pick(p.head_dim_v);
  const std::vector<bool> keys = weighed_keys(p, values, target.b, target.h, target.i);
  for (Index left = pick(count_of(keys));
       !keys[static_cast<std::size_t>(target.j)] || left-- > 0;) {
    ++target.j;
  }
  return target;
}

/// Whether it is proven of row (b, h, i), at row_number, that its weight of the key is not 0.
std::vector<bool> surely_weighed(const Problem& p, const Values& values, const Target& target,
                                 const PrecisionPath& path) {
  Problem one = p;
  one.head_dim_v = 1;
  Values ones = values;
  ones.v = Tensor(cache_format(p), {p.batch, p.num_heads_kv, p.seqlen_kv, 1});
  ones.v.set(target.b, kv_head_of(p, target.h), target.j, 0, 1);
  Bounds bounds = order_free_bounds(one, ones, path);
  const Certified certified = certified_attention(one, ones, share_of(bounds.o_before, bounds.lse));
  certified.widen(bounds.o, bounds.lse);
  std::vector<bool> surely;
  for (std::size_t row = 0; row < row_count(p); ++row) {
    surely.push_back(certified.truth.o[row] - bounds.o[row] >
                     0);  // an infinite bound proves nothing
  }
  return surely;
}

class Trial {
 public:
  Trial(const Subject& subject, const Problem& problem, const Values& values, const Reply& before,
        const Target& target, Judge& judge)
      : subject_(subject),
        p_(problem),
        values_(values),
        before_(before),
        target_(target),
        judge_(judge),
        unmoved_(subject, problem, values) {}

  std::optional<Verdict> query(double number) {
    Values changed = values_;
    changed.q.set(target_.b, target_.h, target_.i, target_.column, number);
    const Answer answer = ask_attention(subject_, p_, changed);
    if (answer.instead) return answer.instead;
    for_each_row(p_, [&](Index b, Index h, Index i) {
      if (b != target_.b || h != target_.h || i != target_.i) {
        unmoved_.row(judge_, before_, answer.reply, b, h, i,
                     "no number of q in this row is NaN or infinite");
      } else if (std::isnan(number)) {
        whole_row_lost(answer.reply, b, h, i, "a NaN in this row of q must come out");
      }
    });
    return std::nullopt;
  }

  std::optional<Verdict> key() {
    Values changed = values_;
    changed.k.set(target_.b, kv_head(), target_.j, target_.column, kNaN);
    const Answer answer = ask_attention(subject_, p_, changed);
    if (answer.instead) return answer.instead;
    for_each_row(p_, [&](Index b, Index h, Index i) {
      if (reads_it(b, h) && weighed(p_, values_, b, h, i, target_.j)) {
        whole_row_lost(answer.reply, b, h, i, "a NaN in a key that this row weighs must come out");
      }
    });
    return std::nullopt;
  }

  std::optional<Verdict> value(double number) {
    Values changed = values_;
    changed.v.set(target_.b, kv_head(), target_.j, target_.v_column, number);
    if (surely_.empty()) {
      surely_ = surely_weighed(p_, values_, target_, precision_of(subject_, attention_for(p_), p_));
    }
    const Answer answer = ask_attention(subject_, p_, changed);
    if (answer.instead) return answer.instead;
    for_each_row(p_, [&](Index b, Index h, Index i) {
      for (Index c = 0; c < p_.head_dim_v; ++c) {
        const Where where{b, h, i, c};
        if (c != target_.v_column) {
          unmoved_.o(judge_, before_, answer.reply, where,
                     "no value in this column is NaN or infinite");
        } else if (reads_it(b, h) && surely_[row_number(p_, b, h, i)]) {
          const double got = answer.reply.o.at(b, h, i, c);
          const bool saturated = std::abs(got) == facts(p_.output).max_finite;
          judge_.demand(!std::isfinite(got) || (saturated && std::isinf(number)), got, where,
                        "a NaN or infinity in a value that has weight must come out");
        }
      }
      unmoved_.lse(judge_, before_, answer.reply, b, h, i, "the LSE does not depend on values");
    });
    return std::nullopt;
  }

 private:
  Index kv_head() const { return kv_head_of(p_, target_.h); }
  bool reads_it(Index b, Index h) const { return b == target_.b && kv_head_of(p_, h) == kv_head(); }

  void whole_row_lost(const Reply& reply, Index b, Index h, Index i, std::string_view what) {
    if (p_.softmax_scale == 0) return;  // a kernel may then know the scores without multiplying
    for (Index c = 0; c < p_.head_dim_v; ++c) {
      const double got = reply.o.at(b, h, i, c);
      judge_.demand(!std::isfinite(got), got, {b, h, i, c}, what);
    }
    if (!wants_lse(p_)) return;
    const double got = reply.lse.at(b, h, i, 0);
    judge_.demand(!std::isfinite(got), got, {b, h, i, 0}, what);
  }

  const Subject& subject_;
  const Problem& p_;
  const Values& values_;
  const Reply& before_;
  const Target& target_;
  Judge& judge_;
  Unmoved unmoved_;
  std::vector<bool> surely_;
};

}  // namespace

Verdict visible_nonfinite(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto refused = refusal(subject, attention_for(problem), problem)) return *refused;
  const std::optional<Target> target = target_in(problem, values);
  if (!target) return vacuous("no row that weighs a key");
  const Answer before = ask_attention(subject, problem, values);
  if (before.instead) return *before.instead;
  Judge judge;
  Trial trial(subject, problem, values, before.reply, *target, judge);
  for (const double number : {kNaN, kInfinity}) {
    // Where a format has no infinity it would be another NaN.
    if (std::isinf(number) && !facts(problem.input).has_infinity) continue;
    if (const auto instead = trial.query(number)) return *instead;
  }
  const Format stored = cache_format(problem);
  if (stored == Format::i8) return judge.verdict();  // which holds neither
  if (const auto instead = trial.key()) return *instead;
  for (const double number : {kNaN, kInfinity}) {
    if (std::isinf(number) && !facts(stored).has_infinity) continue;
    if (const auto instead = trial.value(number)) return *instead;
  }
  return judge.verdict();
}

}  // namespace attest
