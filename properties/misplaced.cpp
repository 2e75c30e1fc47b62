// Every refused row against what is accepted elsewhere: see the header.
#include "properties/misplaced.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "properties/rows.hpp"

namespace attest {
namespace {

constexpr std::size_t kRowsCompared = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PlaceOfRow {
  Index b = 0, h = 0, i = 0;
};

std::string place_text(const PlaceOfRow& row) {
  return fmt::format("batch {}, head {}, row {}", row.b, row.h, row.i);
}

class Search {
 public:
  Search(const Problem& problem, const Acceptance& accepted, const Given& given)
      : p_(problem), accepted_(accepted), o_(*given.o) {}

  std::vector<std::string> run() {
    for_each_row(p_, [&](Index b, Index h, Index i) { sort({b, h, i}); });
    std::vector<std::string> said;
    if (2 * nan_ > refused_) {
      said.push_back(
          fmt::format("{} of {} rows with refused numbers of o hold nothing but NaN, the "
                      "first of them batch {}, head {}, row {}",
                      nan_, refused_, first_nan_.b, first_nan_.h, first_nan_.i));
    }
    const std::size_t count = std::min(candidates_.size(), kRowsCompared);
    std::size_t heads = 0, rows = 0;
    std::optional<std::pair<PlaceOfRow, PlaceOfRow>> head, row;
    for (std::size_t n = 0; n < count; ++n) {
      const PlaceOfRow at = candidates_[n * candidates_.size() / count];
      if (const auto from = other_head(at)) {
        ++heads;
        if (!head) head = {at, *from};
      } else if (const auto other = other_row(at)) {
        ++rows;
        if (!row) row = {at, *other};
      }
    }
    const auto say = [&](const char* what, std::size_t found, const auto& pair) {
      said.push_back(
          fmt::format("{} look permuted: of {} refused rows that were compared {} hold "
                      "what is right for another one; {} holds that of {}",
                      what, count, found, place_text(pair.first), place_text(pair.second)));
    };
    if (2 * heads > count) say(p_.num_heads_q > 1 ? "heads" : "batch entries", heads, *head);
    if (2 * rows > count) say("rows", rows, *row);
    return said;
  }

 private:
  std::size_t first(const PlaceOfRow& row) const {
    return row_number(p_, row.b, row.h, row.i) * static_cast<std::size_t>(p_.head_dim_v);
  }

  void sort(const PlaceOfRow& row) {
    const std::size_t at = first(row);
    Index wrong = 0, nan = 0;
    for (Index c = 0; c < p_.head_dim_v; ++c) {
      const double got = o_.at(static_cast<Index>(at) + c);
      if (!accepted_.o.accepts(got, at + static_cast<std::size_t>(c))) ++wrong;
      if (std::isnan(got)) ++nan;
    }
    if (wrong == 0) return;
    ++refused_;
    if (nan == p_.head_dim_v) {
      if (nan_++ == 0) first_nan_ = row;
    } else if (2 * wrong > p_.head_dim_v && nan == 0) {
      candidates_.push_back(row);
    }
  }

  /// Whether what stands at `from` is right for `to`.
  bool fits(const PlaceOfRow& from, const PlaceOfRow& to) const {
    const std::size_t got = first(from), at = first(to);
    for (Index c = 0; c < p_.head_dim_v; ++c) {
      const std::size_t element = at + static_cast<std::size_t>(c);
      if (accepted_.o.radius[element] == kInfinity) return false;
      if (!accepted_.o.accepts(o_.at(static_cast<Index>(got) + c), element)) return false;
    }
    return true;
  }

  /// The only one of the same row number.
  std::optional<PlaceOfRow> other_head(const PlaceOfRow& row) const {
    std::optional<PlaceOfRow> found;
    for (Index b = 0; b < p_.batch; ++b) {
      if (row.i >= query_length(p_, b)) continue;
      for (Index h = 0; h < p_.num_heads_q; ++h) {
        if (!fits(row, {b, h, row.i})) continue;
        if (found) return {};
        found = PlaceOfRow{b, h, row.i};
      }
    }
    return found;
  }

  /// The only one of the same head.
  std::optional<PlaceOfRow> other_row(const PlaceOfRow& row) const {
    std::optional<PlaceOfRow> found;
    for (Index i = 0; i < query_length(p_, row.b); ++i) {
      if (!fits(row, {row.b, row.h, i})) continue;
      if (found) return {};
      found = PlaceOfRow{row.b, row.h, i};
    }
    return found;
  }

  const Problem& p_;
  const Acceptance& accepted_;
  const Tensor& o_;
  std::size_t refused_ = 0, nan_ = 0;
  PlaceOfRow first_nan_;
  std::vector<PlaceOfRow> candidates_;
};

}  // namespace

std::vector<std::string> misplaced(const Problem& problem, const Acceptance& accepted,
                                   const Given& given) {
  if (given.o == nullptr) return {};
  return Search(problem, accepted, given).run();
}

}  // namespace attest
