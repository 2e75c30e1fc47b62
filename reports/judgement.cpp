// Every element of an answer against what is accepted there, and what that means together.
#include "reports/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "properties/loose_words.hpp"
#include "properties/rows.hpp"
#include "reference/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Numbers of a format in rising order, so that neighbours differ by one; both zeros are 0.
/// Domain: numbers of the format. Error: none. Special: NaN is not a place.
double place_in(Format format, double number) {
  const FormatFacts& known = facts(format);
  const std::uint32_t magnitude =
      encode(format, std::fabs(number)) & ((std::uint32_t{1} << (known.bits - 1)) - 1);
  return number < 0 ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

double ulps_outside(Format format, double got, double low, double high) {
  if (std::isnan(got) || std::isnan(low) || std::isnan(high)) return kInfinity;
  return got < low ? place_in(format, low) - place_in(format, got)
                   : place_in(format, got) - place_in(format, high);
}

class Judging {
 public:
  Judging(const Accepted& accepted, const Tensor& answer) : accepted_(accepted), answer_(answer) {
    judged_.elements = judged_.behind = answer.count();  // until it is met
    for (auto* numbers : {&judged_.margin, &judged_.low, &judged_.high}) {
      numbers->assign(static_cast<std::size_t>(answer.count()), kNan);
    }
  }

  /// Whether all of the row is accepted.
  bool row(Index b, Index h, Index i) {
    bool good = true;
    for (Index c = 0; c < answer_.extent[3]; ++c) good = element({b, h, i, c}) && good;
    return good;
  }

  void leave_out() {
    judged_.behind -= answer_.extent[3];
    judged_.left_out += answer_.extent[3];
  }

  JudgedTensor result() { return std::move(judged_); }

 private:
  bool element(const std::array<Index, 4>& where) {
    const Index flat = answer_.offset(where[0], where[1], where[2], where[3]);
    const auto at = static_cast<std::size_t>(flat);
    --judged_.behind;
    if (accepted_.radius[at] == kInfinity) {
      ++judged_.unpromised;
      return true;
    }
    const double got = answer_.at(flat), margin = accepted_.margin_of(got, at);
    judged_.margin[at] = margin;
    judged_.low[at] = accepted_.low(at);
    judged_.high[at] = accepted_.high(at);
    if (judged_.accepted + judged_.refused == 0 || margin > judged_.margin_max) {
      judged_.margin_max = margin;
      judged_.margin_where = where;
    }
    if (accepted_.accepts(got, at)) {
      ++judged_.accepted;
      return true;
    }
    ++judged_.refused;
    if (!std::isfinite(got)) ++judged_.not_finite;
    remember({where, got, judged_.low[at], judged_.high[at], margin,
              ulps_outside(answer_.format, got, judged_.low[at], judged_.high[at])});
    return false;
  }

  void remember(const Refusal& refusal) {
    auto& worst = judged_.worst;
    const auto before = [](const Refusal& a, const Refusal& b) {
      return a.margin != b.margin ? a.margin > b.margin : a.ulps > b.ulps;
    };
    if (worst.size() == kWorst && !before(refusal, worst.back())) return;
    worst.insert(std::upper_bound(worst.begin(), worst.end(), refusal, before), refusal);
    if (worst.size() > kWorst) worst.pop_back();
  }

  const Accepted& accepted_;
  const Tensor& answer_;
  JudgedTensor judged_;
};

void add_row(std::vector<RowRange>& ranges, Index b, Index h, Index i) {
  if (!ranges.empty()) {
    RowRange& last = ranges.back();
    if (last.batch == b && last.head == h && last.last + 1 == i) {
      last.last = i;
      return;
    }
  }
  ranges.push_back({b, h, i, i});
}

SampleTaken taken(const Problem& p, const std::vector<bool>& wanted, std::uint64_t seed) {
  SampleTaken taken{.seed = seed};
  std::set<std::pair<Index, Index>> heads, all_heads;
  for_each_row(p, [&](Index b, Index h, Index i) {
    ++taken.of_rows;
    all_heads.emplace(b, h);
    if (!wanted[row_number(p, b, h, i)]) return;
    ++taken.rows;
    heads.emplace(b, h);
  });
  taken.heads = static_cast<Index>(heads.size());
  taken.of_heads = static_cast<Index>(all_heads.size());
  return taken;
}

Conclusion unjudged(std::string_view name, const JudgedTensor& tensor) {
  return {2, fmt::format("could not tell: {} was given, but nothing of it could be judged, because "
                         "{}; leave it out to judge the rest alone",
                         name, why_unpromised(tensor))};
}

bool promises_all(const std::vector<double>& radius) {
  return std::find(radius.begin(), radius.end(), kInfinity) == radius.end();
}

/// What is to be done where a tensor that was accepted says too little.
std::string remedy(const Judgement& judgement) {
  if (judgement.block_would_tell) {
    return "say kv_block=KEYS, how many keys share one running maximum; without it the errors of a "
           "rescale are allowed at every key";
  }
  if (!judgement.loose.empty()) {
    return fmt::format("{} lets that pass: declare no more error than the kernel makes",
                       joined(judgement.loose, ", "));
  }
  return "declare more of how the kernel works, which is judged more sharply (`attest list "
         "paths`), "
         "or judge inputs that tell more (fewer keys, larger values)";
}

/// It was given, has rows, and no number of it is promised anything.
bool is_unjudged(const std::optional<JudgedTensor>& tensor) {
  return tensor && tensor->accepted + tensor->refused == 0 && tensor->unpromised > 0;
}

std::string why_blind(const Judgement& judgement) {
  const Trials& trials = judgement.trials;
  const std::string all =
      fmt::format("could not tell: all {} numbers are accepted, but ", judgement.judged());
  if (judgement.o && zeros_pass(trials)) {
    return trials.zeros == Fate::same
               ? all +
                     "the right o is zero for these values, so that one which was never written "
                     "would be accepted too: judge inputs with other values"
               : all + "zeros in place of o would be accepted too: " + remedy(judgement);
  }
  const std::tuple<const char*, const Telling&, const std::optional<JudgedTensor>&> tensors[] = {
      {"o", trials.o, judgement.o}, {"lse", trials.lse, judgement.lse}};
  for (const auto& [name, telling, judged] : tensors) {
    if (!telling.blind() || is_unjudged(judged)) continue;
    std::vector<std::string> names;
    for (const Trial& trial : trials.tried) {
      if (trial.fate == Fate::accepted) names.emplace_back(trial.wrong_answer);
    }
    return fmt::format("{}{} would be accepted too with whichever wrong answer was tried{}: {}",
                       all, name, names.empty() ? "" : " (" + joined(names, ", ") + ")",
                       remedy(judgement));
  }
  if (const auto losses = trials.unseen_losses(); !losses.empty()) {
    std::vector<std::string> names(losses.begin(), losses.end());
    return fmt::format(
        "{}a loss of precision that the path rules out would be accepted too ({}): {}", all,
        joined(names, ", "), remedy(judgement));
  }
  return {};
}

}  // namespace

std::string why_unpromised(const JudgedTensor& tensor) {
  if (tensor.unpromised_by.empty()) {
    return "nothing is promised for values that are not finite or overflow";
  }
  return fmt::format("with {} declared nothing is promised", joined(tensor.unpromised_by, ", "));
}

Index Judgement::judged() const {
  Index count = 0;
  for (const auto* tensor : {&o, &lse}) {
    if (*tensor) count += (*tensor)->accepted + (*tensor)->refused;
  }
  return count;
}

Index Judgement::refused() const {
  return (o ? o->refused : 0) + (lse ? lse->refused : 0);
}

Judgement judge(const Problem& problem, const PrecisionPath& path, const Acceptance& accepted,
                const Given& given, const RowSample& sample) {
  Judgement judgement;
  judgement.problem = problem;
  judgement.path = path;
  const std::vector<bool> wanted = rows_in(sample, problem);
  if (!wanted.empty()) judgement.sample = taken(problem, wanted, sample.seed);
  std::optional<Judging> o, lse;
  if (given.o != nullptr) o.emplace(accepted.o, *given.o);
  if (given.lse != nullptr) lse.emplace(accepted.lse, *given.lse);
  for_each_row(problem, [&](Index b, Index h, Index i) {
    if (!wanted.empty() && !wanted[row_number(problem, b, h, i)]) {
      if (o) o->leave_out();
      if (lse) lse->leave_out();
      return;
    }
    const bool o_good = !o || o->row(b, h, i);
    const bool lse_good = !lse || lse->row(b, h, i);
    if (!o_good || !lse_good) add_row(judgement.refused_rows, b, h, i);
    const std::size_t row = row_number(problem, b, h, i);
    ++judgement.rows[static_cast<std::size_t>(accepted.strength[row])];
  });
  if (o) judgement.o = o->result();
  if (lse) judgement.lse = lse->result();
  return judgement;
}

void look_at_power(Judgement& judgement, const Values& values, const Acceptance& accepted,
                   const Given& given) {
  const auto words_for = [&](const CanTell& can_tell) {
    return loose_words(judgement.problem, values, judgement.path, can_tell);
  };
  if (judgement.o && judgement.o->unpromised > 0) {
    judgement.o->unpromised_by = words_for([](const Problem&, const Values&, const Acceptance& a) {
      return promises_all(a.o.radius);
    });
  }
  if (judgement.lse && judgement.lse->unpromised > 0) {
    judgement.lse->unpromised_by =
        words_for([](const Problem&, const Values&, const Acceptance& a) {
          return promises_all(a.lse.radius);
        });
  }
  judgement.trials = try_wrong_answers(judgement.problem, values, judgement.path, accepted, given);
  if (!blind(judgement.trials) || judgement.trials.zeros == Fate::same) return;
  const CanTell sees = [&](const Problem& p, const Values& v, const Acceptance& a) {
    return !blind(try_wrong_answers(p, v, judgement.path, a, given));
  };
  judgement.loose = words_for(sees);
  judgement.block_would_tell = block_would_tell(judgement.problem, values, judgement.path, sees);
}

Conclusion conclusion_of(const Judgement& judgement) {
  if (judgement.judged() == 0) {
    for (const auto* tensor : {&judgement.o, &judgement.lse}) {
      if (!*tensor || (*tensor)->unpromised == 0) continue;
      return {2, "nothing was judged, because " + why_unpromised(**tensor)};
    }
    return {2, "nothing was judged: no row exists"};
  }
  if (judgement.refused() > 0) {
    return {1, fmt::format("the answer is wrong: {} of {} numbers are refused", judgement.refused(),
                           judgement.judged())};
  }
  if (is_unjudged(judgement.o)) return unjudged("o", *judgement.o);
  if (const std::string why = why_blind(judgement); !why.empty()) return {2, why};
  if (is_unjudged(judgement.lse)) return unjudged("lse", *judgement.lse);
  Index unpromised = 0;
  for (const auto* tensor : {&judgement.o, &judgement.lse}) {
    if (*tensor) unpromised += (*tensor)->unpromised;
  }
  std::string reason =
      unpromised == 0 ? fmt::format("all {} numbers are accepted", judgement.judged())
                      : fmt::format("all {} numbers that can be judged are accepted; {} cannot be",
                                    judgement.judged(), unpromised);
  if (const auto& sample = judgement.sample) {
    reason += fmt::format(" in {} of {} rows; nothing is said of the others", sample->rows,
                          sample->of_rows);
  }
  return {0, reason};
}

}  // namespace attest
