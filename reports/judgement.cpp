// Every element of an answer against what is accepted there, and what that means together.
#include "reports/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis.hpp"
#include "properties/rows.hpp"
#include "reference/formats.hpp"

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

}  // namespace

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

Judgement judge(const Problem& problem, const Values& values, const PrecisionPath& path,
                const Given& given, bool explain) {
  const Acceptance accepted = acceptance(problem, values, path);
  Judgement judgement{.problem = problem, .path = path};
  std::optional<Judging> o, lse;
  if (given.o != nullptr) o.emplace(accepted.o, *given.o);
  if (given.lse != nullptr) lse.emplace(accepted.lse, *given.lse);
  for_each_row(problem, [&](Index b, Index h, Index i) {
    const bool o_good = !o || o->row(b, h, i);
    const bool lse_good = !lse || lse->row(b, h, i);
    if (!o_good || !lse_good) add_row(judgement.refused_rows, b, h, i);
    const std::size_t row = row_number(problem, b, h, i);
    ++judgement.rows[static_cast<std::size_t>(accepted.strength[row])];
  });
  if (o) judgement.o = o->result();
  if (lse) judgement.lse = lse->result();
  if (explain && judgement.refused() > 0) {
    judgement.remarks = diagnose(problem, values, path, accepted, given);
  }
  return judgement;
}

Conclusion conclusion_of(const Judgement& judgement) {
  if (judgement.judged() == 0) {
    return {2, "nothing was judged: no row exists, or the bound promises nothing for these values"};
  }
  if (judgement.refused() > 0) {
    return {1, fmt::format("the answer is wrong: {} of {} numbers are refused", judgement.refused(),
                           judgement.judged())};
  }
  return {0, fmt::format("all {} numbers are accepted", judgement.judged())};
}

}  // namespace attest
