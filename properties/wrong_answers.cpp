// The wrong answers as one table, and what a bound makes of each on given values.
#include "properties/wrong_answers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "properties/rows.hpp"
#include "reference/formats.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::string_view kZeros = "answers_zero";

bool always(const Problem&) {
  return true;
}
bool several_keys(const Problem& p) {
  return p.seqlen_kv > 1;
}
bool hides_keys(const Problem& p) {
  return p.causal || p.mask || !p.seqlens_kv.empty() || p.window_left != kUnbounded ||
         p.window_right != kUnbounded;
}
bool has_window(const Problem& p) {
  return p.window_left != kUnbounded;
}
bool aligns(const Problem& p) {
  const bool diagonal_matters =
      p.causal || p.alibi || has_window(p) || p.window_right != kUnbounded;
  return diagonal_matters && p.seqlen_q != p.seqlen_kv;
}
bool shares_heads(const Problem& p) {
  return p.num_heads_kv > 1 && p.num_heads_q > p.num_heads_kv;
}

// clang-format off
constexpr WrongAnswer kWrongAnswers[] = {
    {kZeros, "O is left at zero",
     always, [](Slip& s) { s.answers_zero = true; }},
    {"weighs_equally", "all keys that are seen weigh the same",
     several_keys, [](Slip& s) { s.weighs_equally = true; }},
    {"drops_one_key", "the last visible key is left out",
     several_keys, [](Slip& s) { s.drops_last = true; }},
    {"leaks_one_key", "the first hidden key is seen",
     hides_keys, [](Slip& s) { s.leaks_first = true; }},
    {"swaps_two_values", "the first two visible rows of V are swapped",
     several_keys, [](Slip& s) { s.swaps = true; }},
    {"scale_10_percent_more", "the scale is 10 % too large",
     always, [](Slip& s) { s.scale_factor = 1.1; }},
    {"scale_10_percent_less", "the scale is 10 % too small",
     always, [](Slip& s) { s.scale_factor = 0.9; }},
    {"scale_1_percent_more", "the scale is 1 % too large",
     always, [](Slip& s) { s.scale_factor = 1.01; }},
    {"scale_1_percent_less", "the scale is 1 % too small",
     always, [](Slip& s) { s.scale_factor = 0.99; }},
    {"next_kv_head", "the next KV head is read",
     [](const Problem& p) { return p.num_heads_kv > 1; }, [](Slip& s) { s.next_kv_head = true; }},
    {"modulo_kv_head", "query head h reads KV head h mod num_heads_kv",
     shares_heads, [](Slip& s) { s.modulo_kv_head = true; }},
    {"next_batch_entry", "the next batch entry is read",
     [](const Problem& p) { return p.batch > 1; }, [](Slip& s) { s.next_batch = true; }},
    {"other_lse_base", "LSE is in the other base",
     wants_lse, [](Slip& s) { s.changes_lse_base = true; }},
    {"forgets_max", "no maximum is subtracted from the logits",
     always, [](Slip& s) { s.forgets_max = true; }},
    {"starts_max_at_zero", "the running maximum starts at 0",
     always, [](Slip& s) { s.starts_max_at_zero = true; }},
    {"causal_sees_one_more", "the causal mask lets one key more be seen",
     [](const Problem& p) {
       return p.causal && (p.seqlen_q > 1 || p.alignment == Alignment::top_left);
     },
     [](Slip& s) { s.asked.causal = false; s.asked.window_right = 1; }},
    {"window_one_wider", "the window is one key wider to the left",
     has_window,
     [](Slip& s) { s.asked.window_left = std::min(s.asked.window_left, kElementsMax) + 1; }},
    {"window_one_narrower", "the window is one key narrower to the left",
     [](const Problem& p) { return p.window_left > 0; },
     [](Slip& s) { s.asked.window_left -= 1; }},
    {"other_alignment", "the diagonal is aligned the other way",
     aligns,
     [](Slip& s) { s.asked.alignment = s.asked.alignment == Alignment::top_left
                                           ? Alignment::bottom_right : Alignment::top_left; }},
    {"ignores_mask", "the mask is ignored",
     [](const Problem& p) { return p.mask; }, [](Slip& s) { s.asked.mask = false; }},
    {"ignores_softcap", "the softcap is ignored",
     [](const Problem& p) { return p.softcap > 0; }, [](Slip& s) { s.asked.softcap = 0; }},
    {"ignores_bias", "the bias is ignored",
     [](const Problem& p) { return p.bias; }, [](Slip& s) { s.asked.bias = false; }},
    {"ignores_alibi", "ALiBi is ignored",
     [](const Problem& p) { return p.alibi; }, [](Slip& s) { s.asked.alibi = false; }},
    {"ignores_sinks", "the sinks are ignored",
     [](const Problem& p) { return p.sinks; }, [](Slip& s) { s.asked.sinks = false; }},
    {"rounds_p_to_bf16", "P is rounded to bf16",
     several_keys, [](Slip& s) { s.p_format = Format::bf16; }, 0x1p-8},
    {"rounds_o_to_bf16", "O is rounded to bf16 on its way",
     [](const Problem& p) { return p.output != Format::bf16; },
     [](Slip& s) { s.output = Format::bf16; }, 0x1p-8},
    {"o_1_in_128_small", "every number of O is too small by 1 in 128",
     always, [](Slip& s) { s.o_factor = 1 - 0x1p-7; }, 0x1p-7},
    {"scale_1_in_1024_more", "the scale is too large by 1 in 1024",
     always, [](Slip& s) { s.scale_factor = 1 + 0x1p-10; }, 0x1p-10},
};
// clang-format on

bool is_loss(std::string_view name) {
  for (const WrongAnswer& wrong : kWrongAnswers) {
    if (wrong.name == name) return wrong.lost > 0;
  }
  return false;
}

/// One wrong answer while it is tried.
struct Try {
  const WrongAnswer* wrong = nullptr;
  Slip slip;
  bool moves_o = false, moves_lse = false;  // by an ulp at least: less cannot be seen in a format
  bool o_refused = false, lse_refused = false;

  bool lost_precision = false;  // that the path promises not to lose
  bool refused() const { return o_refused || lse_refused; }
  bool zeros() const { return slip.answers_zero; }
};

bool moves(Format format, double right, double wrong) {
  return std::isfinite(right) && !(std::fabs(wrong - right) < ulp(format, right));
}

/// Every wrong answer in step, row after row, so that what they share is computed once.
class Trying {
 public:
  Trying(const Problem& problem, const Values& values, const PrecisionPath& path,
         const Acceptance& accepted, bool with_o, bool with_lse)
      : p_(problem),
        accepted_(accepted),
        with_o_(with_o),
        with_lse_(with_lse),
        rows_(problem, values) {
    for (const WrongAnswer& wrong : wrong_answers()) {
      if (!wrong.differs(problem)) continue;
      tries_.push_back({.wrong = &wrong, .slip = {.asked = problem}});
      wrong.apply(tries_.back().slip);
      tries_.back().lost_precision = wrong.lost > 0 && promised_against(wrong, problem, path);
    }
  }

  Trials run() {
    for (Index b = 0; b < p_.batch; ++b) {
      const Index last = query_length(p_, b);
      for (Index i = 0; i < last; ++i) {
        for (Index h = 0; h < p_.num_heads_q; ++h) {
          if (std::none_of(tries_.begin(), tries_.end(), [&](const Try& t) { return open(t); })) {
            return result();
          }
          row(b, h, i);
        }
      }
    }
    return result();
  }

 private:
  /// Whether more rows can add to what is known: of each wrong answer whether it is refused, and of
  /// each tensor whether it refuses any.
  bool open(const Try& t) const {
    if (t.zeros()) return with_o_ && !t.o_refused;
    if (!t.refused()) return true;
    return (with_o_ && !out_.o.refused && !t.o_refused) ||
           (with_lse_ && !out_.lse.refused && !t.lse_refused);
  }

  void row(Index b, Index h, Index i) {
    at_ = row_number(p_, b, h, i);
    const double lse = accepted_.lse.centre[at_];
    if (!std::isfinite(lse)) return;  // sees nothing, or something that is no number
    const Slip none{.asked = p_};
    right_ = rows_.weigh(none, b, h, i);
    if (right_.keys.empty()) return;
    out_.sees_keys = true;
    if (with_o_) right_o_ = rows_.o_of(none, right_);
    for (Try& t : tries_) {
      if (!open(t)) continue;
      const WeighedRow wrong = t.zeros() ? right_ : rows_.weigh(t.slip, b, h, i);
      if (with_lse_) look_at_lse(t, wrong);
      if (with_o_ && !t.o_refused) look_at_o(t, wrong);
    }
  }

  void look_at_lse(Try& t, const WeighedRow& wrong) {
    t.moves_lse = t.moves_lse || moves(Format::f32, right_.lse, wrong.lse);
    const double lse = meant(accepted_.lse, at_, right_.lse, wrong.lse);
    if (accepted_.lse.accepts(rounded(Format::f32, lse), at_)) return;
    t.lse_refused = true;
    out_.lse.refused = true;
  }

  void look_at_o(Try& t, const WeighedRow& wrong) {
    if (!t.zeros() && cannot_show(t, wrong)) return;
    const std::vector<double> o = rows_.o_of(t.slip, wrong);
    for (std::size_t c = 0; c < o.size() && !t.o_refused; ++c) {
      const std::size_t at = at_ * o.size() + c;
      t.moves_o = t.moves_o || moves(p_.output, right_o_[c], o[c]);
      const double wrong_o = t.zeros() ? 0 : meant(accepted_.o, at, right_o_[c], o[c]);
      t.o_refused = !accepted_.o.accepts(rounded(p_.output, wrong_o), at);
    }
    if (t.o_refused && !t.zeros()) out_.o.refused = true;
  }

  /// What a kernel that makes the mistake gives: where P is followed into its rounding that is not
  /// what plain double gives, but it differs from what is right by as much.
  static double meant(const Accepted& elements, std::size_t at, double right, double wrong) {
    const double centre = elements.centre[at];
    return std::isfinite(centre) ? centre + (wrong - right) : wrong;
  }

  /// Whether the weights alone say that nothing of this row's O is refused, nor moved by an ulp for
  /// the first time: that saves most of the work where a bound is wide or nothing is wrong.
  bool cannot_show(const Try& t, const WeighedRow& wrong) const {
    if (t.slip.o_factor != 1 || t.slip.output != Format::f32) return false;  // no matter of weights
    const double largest = rows_.largest_value(wrong);
    double size = 0, change = 0;
    for (const double share : wrong.shares) size += std::fabs(share);
    const bool alike =
        wrong.entry == right_.entry && wrong.head == right_.head && wrong.keys == right_.keys;
    for (std::size_t n = 0; alike && n < wrong.shares.size(); ++n) {
      change += std::fabs(wrong.shares[n] - right_.shares[n]);
    }
    for (std::size_t c = 0; c < right_o_.size(); ++c) {
      const std::size_t at = at_ * right_o_.size() + c;
      const double radius = accepted_.o.radius[at];
      const bool moved = std::isfinite(right_o_[c]) &&
                         (!alike || !(change * largest < ulp(p_.output, right_o_[c])));
      if (moved && !t.moves_o) return false;
      const bool near = alike && change * largest <= radius;
      const bool within = size * largest + std::fabs(right_o_[c]) <= radius;
      if (radius != kInfinity && !near && !within) return false;
    }
    return true;
  }

  Trials result() {
    for (const Try& t : tries_) {
      const bool other = (with_o_ && t.moves_o) || (with_lse_ && t.moves_lse);
      const Fate fate = t.refused() ? Fate::refused : other ? Fate::accepted : Fate::same;
      out_.tried.push_back({t.wrong->name, fate, t.lost_precision});
      if (t.zeros()) {
        if (with_o_) out_.zeros = fate;
      } else {
        out_.o.other = out_.o.other || t.moves_o;
        out_.lse.other = out_.lse.other || t.moves_lse;
      }
    }
    return std::move(out_);
  }

  const Problem& p_;
  const Acceptance& accepted_;
  const bool with_o_, with_lse_;
  WrongRows rows_;
  std::vector<Try> tries_;
  Trials out_;
  std::size_t at_ = 0;  // the row
  WeighedRow right_;
  std::vector<double> right_o_;
};

}  // namespace

bool promised_against(const WrongAnswer& wrong, const Problem& problem, const PrecisionPath& path) {
  double may_lose = std::max({unit_roundoff(problem.output), path.exp_error, path.division_error});
  for (const Format format : {path.p_format, path.scores_format}) {
    may_lose = std::max(may_lose, unit_roundoff(format));
  }
  return wrong.lost == 0 || 4 * may_lose <= wrong.lost;
}

std::vector<std::string_view> Trials::unseen_losses() const {
  std::vector<std::string_view> names;
  for (const Trial& trial : tried) {
    if (trial.lost_precision && trial.fate == Fate::accepted) names.push_back(trial.wrong_answer);
  }
  return names;
}

std::span<const WrongAnswer> wrong_answers() {
  return kWrongAnswers;
}

std::vector<std::string_view> wrong_answer_names() {
  std::vector<std::string_view> names;
  for (const WrongAnswer& wrong : kWrongAnswers) names.push_back(wrong.name);
  return names;
}

std::string_view meaning_of_wrong_answer(std::string_view name) {
  for (const WrongAnswer& wrong : kWrongAnswers) {
    if (wrong.name == name) return wrong.what;
  }
  return {};
}

Trials try_wrong_answers(const Problem& problem, const Values& values, const PrecisionPath& path,
                         const Acceptance& accepted, const Given& given) {
  Trials trials =
      Trying(problem, values, path, accepted, given.o != nullptr, given.lse != nullptr).run();
  if (!trials.sees_keys) trials.tried.clear();
  return trials;
}

namespace {

/// Whether a trial says something of the case: a loss that the path allows is no wrong answer.
bool counts(const Trial& trial) {
  return !is_loss(trial.wrong_answer) || trial.lost_precision;
}

}  // namespace

Sight sight_of(const Trials& trials) {
  const auto tried = std::ranges::count_if(trials.tried, counts);
  if (tried == 0) return Sight::unknown;
  if (!trials.o.refused) return Sight::blind;
  const auto refused = std::ranges::count_if(trials.tried, [](const Trial& trial) {
    return counts(trial) && trial.fate == Fate::refused;
  });
  return 2 * refused >= tried ? Sight::sharp : Sight::coarse;
}

void measure_power(const Problem& problem, const Values& values, const PrecisionPath& path,
                   const Acceptance& accepted, Verdict& verdict) {
  const Trials trials = Trying(problem, values, path, accepted, true, wants_lse(problem)).run();
  // Where one key is seen its value is the answer: no bound could tell of a weight.
  verdict.sight = trials.o.other ? sight_of(trials) : Sight::unknown;
  for (const Trial& trial : trials.tried) {
    if (!counts(trial)) continue;
    verdict.power.push_back({std::string(trial.wrong_answer), trial.fate == Fate::refused});
  }
}

std::vector<Power> measure_power(const Problem& problem, const Values& values,
                                 const PrecisionPath& path, const Acceptance& accepted) {
  Verdict verdict;
  measure_power(problem, values, path, accepted, verdict);
  return verdict.power;
}

}  // namespace attest
