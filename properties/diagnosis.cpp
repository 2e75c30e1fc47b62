// Other readings of a refused answer, tried on a few rows of the head with most refusals, and
// confirmed on the whole.
#include "properties/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "properties/by_heads.hpp"
#include "properties/excerpt.hpp"
#include "properties/misplaced.hpp"
#include "properties/readings.hpp"
#include "properties/resemblance.hpp"
#include "properties/row_sample.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/formats.hpp"
#include "reference/model/model.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kRowsTried = 32;       // with refusals; more say the same again
constexpr Index kRowsFirst = 2;        // with refusals: enough to rule out most readings
constexpr Index kMostLeft = 10;        // a reading leaves a tenth of the refusals, at most
constexpr std::size_t kNamesMost = 3;  // of readings that fit: short cases cannot tell some apart

struct Count {
  Index judged = 0, refused = 0;
};

void add(Count& count, const Accepted& elements, std::size_t at, double got) {
  if (elements.radius[at] == kInfinity) return;
  ++count.judged;
  if (!elements.accepts(got, at)) ++count.refused;
}

Count count_row(const Problem& p, const Acceptance& accepted, const Given& given, Index b, Index h,
                Index i) {
  Count count;
  const auto row = static_cast<Index>(row_number(p, b, h, i));
  if (given.lse != nullptr) {
    add(count, accepted.lse, static_cast<std::size_t>(row), given.lse->at(row));
  }
  for (Index c = 0; given.o != nullptr && c < p.head_dim_v; ++c) {
    const Index flat = row * p.head_dim_v + c;
    add(count, accepted.o, static_cast<std::size_t>(flat), given.o->at(flat));
  }
  return count;
}

Count count_all(const Problem& p, const Acceptance& accepted, const Given& given) {
  Count all;
  for_each_row(p, [&](Index b, Index h, Index i) {
    const Count row = count_row(p, accepted, given, b, h, i);
    all.judged += row.judged;
    all.refused += row.refused;
  });
  return all;
}

class Diagnosis {
 public:
  Diagnosis(const Problem& problem, const Values& values, const PrecisionPath& path,
            const Acceptance& accepted, const Given& given, const std::vector<bool>& wanted)
      : problem_(problem),
        values_(values),
        path_(path),
        accepted_(accepted),
        given_(given),
        wanted_(wanted) {}

  std::vector<std::string> run() {
    all_ = count_all(problem_, accepted_, given_);
    if (all_.refused == 0) return {};
    const bool sharp = std::any_of(accepted_.strength.begin(), accepted_.strength.end(),
                                   [](Strength s) { return s != Strength::order_free; });
    const Acceptance coarse =
        sharp ? acceptance_by_heads(problem_, values_, path_, Strength::order_free, wanted_)
              : Acceptance{};
    free_ = sharp ? count_all(problem_, coarse, given_) : all_;
    choose_head();
    if (free_.refused == 0) {
      name_fits(other_paths(problem_, path_), "the path says", kNamesMost);
      if (remarks_.empty()) say_small(coarse);
      return remarks_;
    }
    remarks_ = misplaced(problem_, sharp ? coarse : accepted_, given_);
    if (remarks_.empty()) name_resemblance(sharp ? &coarse : nullptr);
    if (remarks_.empty())
      name_fits(other_problems(problem_, path_), "the problem says", kNamesMost);
    if (remarks_.empty()) name_fits(coarser_paths(problem_, path_), "the path says", 1);
    if (remarks_.empty()) say_wrong(sharp);
    return remarks_;
  }

 private:
  /// The head with most refusals.
  void choose_head() {
    std::vector<Index> refusals(static_cast<std::size_t>(problem_.batch * problem_.num_heads_q));
    for_each_row(problem_, [&](Index b, Index h, Index i) {
      refusals[static_cast<std::size_t>(b * problem_.num_heads_q + h)] +=
          count_row(problem_, accepted_, given_, b, h, i).refused;
    });
    const auto most = std::max_element(refusals.begin(), refusals.end()) - refusals.begin();
    b_ = most / problem_.num_heads_q;
    h_ = most % problem_.num_heads_q;
  }

  /// As many rows from the end, or the beginning, as hold `wanted` with refusals.
  RowsOfHead rows_for(Alignment alignment, Index wanted) const {
    const Index rows = query_length(problem_, b_);
    const bool from_end = alignment == Alignment::bottom_right;
    Index taken = 0, refused = 0;
    while (taken < rows && refused < wanted) {
      const Index i = from_end ? rows - 1 - taken : taken;
      if (count_row(problem_, accepted_, given_, b_, h_, i).refused > 0) ++refused;
      ++taken;
    }
    return from_end ? RowsOfHead{b_, h_, rows - taken, rows} : RowsOfHead{b_, h_, 0, taken};
  }

  /// Whether everything that is judged as things stand would be accepted so.
  bool fits(const Reading& reading, Index wanted) const {
    const RowsOfHead rows = rows_for(reading.problem.alignment, wanted);
    Index judged = 0;
    for (Index i = rows.first; i < rows.last; ++i) {
      judged += count_row(problem_, accepted_, given_, b_, h_, i).judged;
    }
    const Excerpt part = excerpt(reading.problem, values_, given_, rows);
    const std::vector<bool> sampled =
        part_of(wanted_, row_number(problem_, b_, h_, rows.first), rows.last - rows.first);
    const Acceptance accepted =
        acceptance(part.problem, part.values, reading.path, Strength::quantised, sampled);
    const Count count = count_all(part.problem, accepted, part.given());
    return count.refused == 0 && count.judged >= judged;
  }

  /// Whether a reading of the path explains the errors, or is merely allowed more of them. It does
  /// if what a kernel of it answers is at most half as far from the answer, on the average, as what
  /// one of the declared path answers. A coarser rounding also if its errors are as large as those
  /// of the answer: what it rounds to depends on an order that may not be known. Of 32 independent
  /// errors of one distribution and as many of another with the same variance the mean squares
  /// differ by a factor of 4 once in ten thousand times.
  /// Nothing if it does not; else the less the better it does.
  std::optional<double> explains(const Reading& reading) const {
    if (reading.path == path_) return 0;
    const RowsOfHead rows = rows_for(problem_.alignment, kRowsTried);
    const Excerpt part = excerpt(problem_, values_, given_, rows);
    Model likely;  // makes the declared error of exponentials, either way
    likely.freedom.exp_share = [](Index row, Index key) {
      const auto mixed = static_cast<std::uint64_t>(row * 7919 + key) * 0x9e3779b97f4a7c15U;
      return (mixed >> 40) % 2 == 0 ? 1.0 : -1.0;
    };
    const bool functions = reading.path.exp_error != path_.exp_error;
    const Modelled ours = model_attention(part.problem, part.values, path_);
    const Modelled theirs =
        model_attention(part.problem, part.values, reading.path, functions ? likely : Model{});
    const Tensor& got = part.o ? *part.o : *part.lse;
    const std::vector<double>& a = part.o ? ours.o : ours.lse;
    const std::vector<double>& b = part.o ? theirs.o : theirs.lse;
    double from_ours = 0, from_theirs = 0, between = 0;
    for (std::size_t n = 0; n < a.size(); ++n) {
      const double number = got.at(static_cast<Index>(n));
      if (!std::isfinite(number) || !std::isfinite(a[n]) || !std::isfinite(b[n])) continue;
      from_ours += (number - a[n]) * (number - a[n]);
      from_theirs += (number - b[n]) * (number - b[n]);
      between += (b[n] - a[n]) * (b[n] - a[n]);
    }
    if (4 * from_theirs <= from_ours) return from_theirs / from_ours;
    const bool coarser = unit_roundoff(reading.path.p_format) > unit_roundoff(path_.p_format) ||
                         reading.path.scores_format != path_.scores_format;
    if (!(coarser || functions) || from_ours > 4 * between) return {};
    if (!functions && 4 * from_ours < between) return {};
    return 1 + std::floor(std::fabs(std::log2(from_ours / between)));
  }

  void name_fits(const std::vector<Reading>& readings, std::string_view who_says,
                 std::size_t most) {
    std::vector<std::pair<double, const Reading*>> fitting;
    for (const Reading& reading : readings) {
      if (!fits(reading, kRowsFirst) || !fits(reading, kRowsTried)) continue;
      if (const auto distance = explains(reading)) fitting.emplace_back(*distance, &reading);
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    std::vector<const Reading*> found;
    Count whole;  // of the first that was found
    for (const auto& [distance, reading] : fitting) {
      if (found.size() == most) break;
      if (found.empty()) {
        whole = count_all(problem_,
                          acceptance_by_heads(reading->problem, values_, reading->path,
                                              Strength::quantised, wanted_),
                          given_);
        if (whole.refused * kMostLeft > all_.refused) continue;
      }
      found.push_back(reading);
    }
    if (found.empty()) return;
    std::string names = found.front()->words;
    for (std::size_t n = 1; n < found.size(); ++n) names += " or " + found[n]->words;
    remarks_.push_back(
        whole.refused == 0
            ? fmt::format("everything would be accepted if {} {}: is that what was meant?",
                          who_says, names)
            : fmt::format("batch {}, head {} would be accepted if {} {}; of all numbers {} instead "
                          "of {} would be refused",
                          b_, h_, who_says, names, whole.refused, all_.refused));
  }

  /// By the sharp bound, unless the order-free one explains all that it refuses: a mistake that
  /// moves the maximum moves roundings of P too.
  void name_resemblance(const Acceptance* coarse) {
    auto found = resemblance(problem_, values_, path_, accepted_, given_);
    if (coarse != nullptr && (!found || !found->all())) {
      const auto roughly = resemblance(problem_, values_, path_, *coarse, given_);
      if (roughly && (!found || roughly->all())) found = roughly;
    }
    if (!found) return;
    const std::string what =
        fmt::format("what one gets when {} ({}): {} of {} refused numbers that were compared",
                    meaning_of_wrong_answer(found->wrong_answer), found->wrong_answer,
                    found->explained, found->refused);
    remarks_.push_back(
        found->against > 0
            ? fmt::format("where numbers are refused, and only there, this is {}; {} accepted ones "
                          "would be refused too if it were so everywhere",
                          what, found->against)
            : fmt::format("this {} {}", found->all() ? "is" : "resembles", what));
  }

  void say_wrong(bool sharp) {
    remarks_.push_back(fmt::format(
        "{} of {} numbers are refused {}whatever the order of the sums: this is no matter of "
        "blocks or of order (a kernel that accumulates in f16 cannot be declared)",
        free_.refused, free_.judged, sharp ? "by the order-free bound too, so " : ""));
  }

  /// Only the sharper bound refuses, and no other path that was tried accepts everything.
  void say_small(const Acceptance& coarse) {
    double most = 0;  // of the order-free bound
    for_each_row(problem_, [&](Index b, Index h, Index i) {
      const auto row = static_cast<Index>(row_number(problem_, b, h, i));
      for (Index c = 0; given_.o != nullptr && c < problem_.head_dim_v; ++c) {
        const Index flat = row * problem_.head_dim_v + c;
        most =
            std::max(most, coarse.o.margin_of(given_.o->at(flat), static_cast<std::size_t>(flat)));
      }
    });
    std::string order = path_.kv_block > 0
                            ? fmt::format(", in blocks of {} keys, {} block first", path_.kv_block,
                                          path_.kv_blocks_descending ? "last" : "first")
                            : std::string();
    remarks_.push_back(
        fmt::format("{} of {} numbers are refused, but none by the order-free bound; the largest "
                    "error is {:.2g} "
                    "of what that allows: a small loss of accuracy, or a wrong declaration: is P "
                    "really rounded "
                    "to {}{}?",
                    all_.refused, all_.judged, most, name_of(path_.p_format), order));
  }

  const Problem& problem_;
  const Values& values_;
  const PrecisionPath& path_;
  const Acceptance& accepted_;
  const Given& given_;
  const std::vector<bool>& wanted_;
  Count all_, free_;
  Index b_ = 0, h_ = 0;
  std::vector<std::string> remarks_;
};

}  // namespace

std::vector<std::string> diagnose(const Problem& problem, const Values& values,
                                  const PrecisionPath& path, const Acceptance& accepted,
                                  const Given& given, const std::vector<bool>& wanted) {
  return Diagnosis(problem, values, path, accepted, given, wanted).run();
}

}  // namespace attest
