// Refused and accepted numbers against each wrong answer, and the chance that one explains them
// though they have another cause.
//
// An unrelated answer that is as far from the right number may as well lie anywhere within that
// distance, on either side. So the chance that it falls where a mistake would have put it is
// the width of what the mistake explains over that distance. Numbers of a row are mixed by as
// many weights as the row has keys: more columns than these follow from one another and tell
// nothing more. The chances of numbers that are independent multiply, and each mistake is a try.
#include "properties/resemblance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr std::size_t kRowsCompared = 64;  // of each kind; some hundred numbers each
// A wrong hint costs somebody an hour: at most one refused answer in a thousand may get one.
constexpr double kChance = 1e-3;

struct PlaceOfRow {
  Index b = 0, h = 0, i = 0;
};

/// Whether a row of the answer holds a refused number.
bool holds_refused(const Acceptance& accepted, const Given& given, std::size_t row, Index columns) {
  const auto at = static_cast<Index>(row);
  if (given.lse != nullptr && !accepted.lse.accepts(given.lse->at(at), row)) return true;
  for (Index c = 0; given.o != nullptr && c < columns; ++c) {
    const Index flat = at * columns + c;
    if (!accepted.o.accepts(given.o->at(flat), static_cast<std::size_t>(flat))) return true;
  }
  return false;
}

std::vector<PlaceOfRow> some_of(const std::vector<PlaceOfRow>& all) {
  std::vector<PlaceOfRow> some;
  const std::size_t count = std::min(all.size(), kRowsCompared);
  for (std::size_t n = 0; n < count; ++n) some.push_back(all[n * all.size() / count]);
  return some;
}

/// Rows with a refused number, and then rows without, each evenly spread over all of their kind.
std::vector<PlaceOfRow> rows_to_compare(const Problem& p, const Acceptance& accepted,
                                        const Given& given) {
  std::vector<PlaceOfRow> refused, good;
  for_each_row(p, [&](Index b, Index h, Index i) {
    const std::size_t row = row_number(p, b, h, i);
    (holds_refused(accepted, given, row, p.head_dim_v) ? refused : good).push_back({b, h, i});
  });
  std::vector<PlaceOfRow> both = some_of(refused);
  for (const PlaceOfRow& place : some_of(good)) both.push_back(place);
  return both;
}

/// One mistake, as more and more rows are compared.
class Suspect {
 public:
  Suspect(const Problem& problem, const WrongAnswer& mistake, const PrecisionPath& path)
      : roundoff_(unit_roundoff(path.p_format)),
        slip_{.asked = problem},
        found_{.wrong_answer = mistake.name} {
    mistake.apply(slip_);
  }

  const Slip& slip() const { return slip_; }

  void number(const Accepted& elements, std::size_t at, double got, double right, double wrong) {
    if (std::isinf(elements.radius[at])) return;
    const bool good = elements.accepts(got, at);
    const bool same = right == wrong || (std::isnan(right) && std::isnan(wrong));
    const double moved = same ? 0 : wrong - right;
    const double centre = elements.centre[at] + moved;
    const double radius = elements.radius[at] + roundoff_ * std::fabs(moved);
    const bool explained = same ? good : may_round_to(elements.format, centre, radius, got);
    if (good) {
      if (!explained) ++found_.against;
      return;
    }
    ++found_.refused;
    ++refused_;
    if (!explained) return;
    ++found_.explained;
    if (!std::isfinite(got)) return;
    const double width = radius + ulp(elements.format, got) / 2;
    const double chance = width / std::fabs(got - elements.centre[at]);
    chances_.push_back(chance < 1 ? std::log(chance) : 0);
  }

  /// What number() was told since the last time is of one tensor of one row, and of no more than
  /// `most` numbers that are independent.
  void end_of_row(Index most) {
    const auto count = std::min(chances_.size(), static_cast<std::size_t>(most));
    std::partial_sort(chances_.begin(), chances_.begin() + static_cast<std::ptrdiff_t>(count),
                      chances_.end());
    for (std::size_t n = 0; n < count; ++n) found_.log_chance += chances_[n];
    chances_.clear();
    choices_ += std::min(refused_, most);
    refused_ = 0;
  }

  /// `tries`: of mistakes.
  Resemblance result(std::size_t tries) const {
    Resemblance found = found_;
    found.log_chance += std::log(static_cast<double>(tries));
    // Which of the refused ones are explained is another choice, one of two per number.
    if (found.explained < found.refused) {
      found.log_chance += std::log(2) * static_cast<double>(choices_);
    }
    return found;
  }

 private:
  double roundoff_;
  Slip slip_;
  Resemblance found_;
  std::vector<double> chances_;  // ln, of explained numbers of this row
  Index refused_ = 0;            // of this row
  Index choices_ = 0;            // independent refused numbers so far
};

bool worth_a_word(const Resemblance& found) {
  const bool enough =
      found.against == 0 ? 2 * found.explained > found.refused : found.explained == found.refused;
  return found.explained > 0 && enough && found.log_chance < std::log(kChance);
}

bool better(const Resemblance& a, const Resemblance& b) {
  return a.explained != b.explained ? a.explained > b.explained : a.against < b.against;
}

}  // namespace

std::optional<Resemblance> resemblance(const Problem& problem, const Values& values,
                                       const PrecisionPath& path, const Acceptance& accepted,
                                       const Given& given) {
  WrongRows rows(problem, values);
  std::vector<Suspect> suspects;
  for (const WrongAnswer& mistake : wrong_answers()) {
    if (mistake.differs(problem)) suspects.emplace_back(problem, mistake, path);
    // How P was rounded is a matter of paths: readings.hpp.
    if (!suspects.empty() && suspects.back().slip().p_format != Format::f32) suspects.pop_back();
  }
  const Slip none{.asked = problem};
  for (const auto& [b, h, i] : rows_to_compare(problem, accepted, given)) {
    const WeighedRow right = rows.weigh(none, b, h, i);
    const std::vector<double> right_o = rows.o_of(none, right);
    const std::size_t row = row_number(problem, b, h, i);
    for (Suspect& suspect : suspects) {
      const WeighedRow wrong = rows.weigh(suspect.slip(), b, h, i);
      if (given.lse != nullptr) {
        const double got = given.lse->at(static_cast<Index>(row));
        suspect.number(accepted.lse, row, got, right.lse, wrong.lse);
        suspect.end_of_row(1);
      }
      if (given.o == nullptr) continue;
      const std::vector<double> wrong_o = rows.o_of(suspect.slip(), wrong);
      for (std::size_t c = 0; c < wrong_o.size(); ++c) {
        const std::size_t at = row * wrong_o.size() + c;
        const double got = given.o->at(static_cast<Index>(at));
        suspect.number(accepted.o, at, got, right_o[c], wrong_o[c]);
      }
      suspect.end_of_row(std::max<Index>(1, static_cast<Index>(right.keys.size())));
    }
  }
  std::optional<Resemblance> best;
  for (const Suspect& suspect : suspects) {
    const Resemblance found = suspect.result(suspects.size());
    if (worth_a_word(found) && (!best || better(found, *best))) best = found;
  }
  return best;
}

}  // namespace attest
