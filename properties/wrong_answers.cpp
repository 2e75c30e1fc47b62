// The wrong answers as one table, and the plain double attention that commits each of them. It is
// nobody's reference: where nothing is done wrong it may differ from the truth by double's
// rounding.
#include "properties/wrong_answers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "properties/rows.hpp"
#include "reference/formats.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What is done wrong. `asked` is the Problem as misunderstood; the rest are slips on the way.
struct Slip {
  Problem asked;
  double scale_factor = 1;
  bool drops_last = false, leaks_first = false, swaps = false;
  bool answers_zero = false, weighs_equally = false;
  bool changes_lse_base = false, forgets_max = false, starts_max_at_zero = false;
  bool next_kv_head = false, modulo_kv_head = false, next_batch = false;
};

struct WrongAnswer {
  std::string_view name;
  std::string_view what;            // "one gets this when ..."
  bool (*differs)(const Problem&);  // means something else on such a Problem
  void (*apply)(Slip&);
};

bool always(const Problem&) {
  return true;
}
bool several_keys(const Problem& p) {
  return p.keys > 1;
}
bool hides_keys(const Problem& p) {
  return p.causal || p.mask || !p.key_lengths.empty() || p.window_left != kUnbounded ||
         p.window_right != kUnbounded;
}
bool has_window(const Problem& p) {
  return p.window_left != kUnbounded;
}
bool aligns(const Problem& p) {
  const bool diagonal_matters =
      p.causal || p.alibi || has_window(p) || p.window_right != kUnbounded;
  return diagonal_matters && p.queries != p.keys;
}
bool shares_heads(const Problem& p) {
  return p.kv_heads > 1 && p.query_heads > p.kv_heads;
}

// clang-format off
constexpr WrongAnswer kWrongAnswers[] = {
    {"answers_zero", "O is left at zero",
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
     [](const Problem& p) { return p.kv_heads > 1; }, [](Slip& s) { s.next_kv_head = true; }},
    {"modulo_kv_head", "query head h reads KV head h mod kv_heads",
     shares_heads, [](Slip& s) { s.modulo_kv_head = true; }},
    {"next_batch_entry", "the next batch entry is read",
     [](const Problem& p) { return p.batch > 1; }, [](Slip& s) { s.next_batch = true; }},
    {"other_lse_base", "LSE is in the other base",
     always, [](Slip& s) { s.changes_lse_base = true; }},
    {"forgets_max", "no maximum is subtracted from the logits",
     always, [](Slip& s) { s.forgets_max = true; }},
    {"starts_max_at_zero", "the running maximum starts at 0",
     always, [](Slip& s) { s.starts_max_at_zero = true; }},
    {"causal_sees_one_more", "the causal mask lets one key more be seen",
     [](const Problem& p) { return p.causal; },
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
};
// clang-format on

/// In double, but with the range of f32: that is what makes a missing maximum wrong.
double exponential(double x) {
  const double e = std::exp(x);
  if (e > facts(Format::f32).max_finite) return kInfinity;
  return e < ulp(Format::f32, 0) / 2 ? 0 : e;
}

/// The wrong answer to one row.
struct Row {
  std::vector<double> o;
  double lse = 0;
};

class WrongRows {
 public:
  WrongRows(const Problem& problem, const Values& values)
      : problem_(problem),
        values_(values),
        q_(doubles(values.q, {})),
        k_(doubles(values.k, values.k_scales)),
        v_(doubles(values.v, values.v_scales)) {}

  Row answer(const Slip& slip, Index b, Index h, Index i) const;

 private:
  static std::vector<double> doubles(const Tensor& tensor, const std::optional<Tensor>& scales) {
    std::vector<double> numbers;
    const Extent4& extent = tensor.extent;
    for (Index row = 0; row < extent[0] * extent[1] * extent[2]; ++row) {
      const Index head = row / extent[2];
      const double scale = scale_at(scales, head / extent[1], head % extent[1], row % extent[2]);
      for (Index c = 0; c < extent[3]; ++c) {
        numbers.push_back(tensor.at(row * extent[3] + c) * scale);
      }
    }
    return numbers;
  }

  double score(const Slip& slip, Index b, Index from, Index h, Index g, Index i, Index j) const;
  std::vector<Index> keys_seen(const Slip& slip, Index b, Index i) const;

  const Problem& problem_;
  const Values& values_;
  Values unmasked_;  // nothing but the absence of a mask: what visible() reads when it is ignored
  std::vector<double> q_, k_, v_;
};

double WrongRows::score(const Slip& slip, Index b, Index from, Index h, Index g, Index i,
                        Index j) const {
  const Problem& p = slip.asked;
  const double* q = q_.data() + values_.q.offset(b, h, i, 0);
  const double* k = k_.data() + values_.k.offset(from, g, j, 0);
  double x = 0;
  for (Index c = 0; c < p.depth; ++c) x += q[c] * k[c];
  double s = x * static_cast<double>(p.scale) * slip.scale_factor;
  if (p.softcap > 0) s = p.softcap * std::tanh(s / p.softcap);
  if (p.bias) s += values_.bias->at(b, h, i, j);
  if (p.alibi) {
    s -= values_.slopes->at(h) * static_cast<double>(std::abs(i + diagonal(p, b) - j));
  }
  return s;
}

std::vector<Index> WrongRows::keys_seen(const Slip& slip, Index b, Index i) const {
  std::vector<Index> seen;
  Index hidden = -1;
  for (Index j = 0; j < problem_.keys; ++j) {
    if (visible(slip.asked, slip.asked.mask ? values_ : unmasked_, b, i, j)) {
      seen.push_back(j);
    } else if (hidden < 0) {
      hidden = j;
    }
  }
  if (slip.drops_last && !seen.empty()) seen.pop_back();
  if (slip.leaks_first && hidden >= 0) seen.push_back(hidden);
  return seen;
}

Row WrongRows::answer(const Slip& slip, Index b, Index h, Index i) const {
  const Problem& p = problem_;
  const Index from = slip.next_batch ? (b + 1) % p.batch : b;
  Index g = kv_head_of(p, h);
  if (slip.next_kv_head) g = (g + 1) % p.kv_heads;
  if (slip.modulo_kv_head) g = h % p.kv_heads;

  const std::vector<Index> seen = keys_seen(slip, b, i);
  std::vector<double> weight;
  double max = slip.starts_max_at_zero ? 0 : -kInfinity;
  for (const Index j : seen) {
    weight.push_back(slip.weighs_equally ? 0 : score(slip, b, from, h, g, i, j));
    max = std::max(max, weight.back());
  }
  const double sink = slip.asked.sinks ? values_.sinks->at(h) : -kInfinity;
  max = std::max(max, sink);
  if (slip.forgets_max) max = 0;

  Row row;
  row.o.assign(static_cast<std::size_t>(p.v_depth), 0);
  row.lse = -kInfinity;
  if (max == -kInfinity) return row;  // sees nothing
  double sum = exponential(sink - max);
  for (double& w : weight) {
    w = exponential(w - max);
    sum += w;
  }
  row.lse = (max + std::log(sum)) / (p.lse_base == LogBase::two ? std::log(2.0) : 1);
  if (slip.changes_lse_base) {
    row.lse *= p.lse_base == LogBase::two ? std::log(2.0) : 1 / std::log(2.0);
  }
  if (slip.answers_zero) return row;
  for (std::size_t n = 0; n < seen.size(); ++n) {
    Index j = seen[n];
    if (slip.swaps && seen.size() > 1 && n < 2) j = seen[1 - n];
    const double* v = v_.data() + values_.v.offset(from, g, j, 0);
    for (Index c = 0; c < p.v_depth; ++c) {
      row.o[static_cast<std::size_t>(c)] += weight[n] / sum * v[c];
    }
  }
  return row;
}

bool is_refused(const WrongRows& rows, const Slip& slip, const Problem& p,
                const Acceptance& accepted) {
  for (Index b = 0; b < p.batch; ++b) {
    const Index last = query_length(p, b);
    for (Index i = 0; i < last; ++i) {
      for (Index h = 0; h < p.query_heads; ++h) {
        const std::size_t at = row_number(p, b, h, i);
        const double lse = accepted.lse.centre[at];
        if (std::isnan(lse) || lse == -kInfinity) continue;  // empty row
        const Row wrong = rows.answer(slip, b, h, i);
        if (!accepted.lse.accepts(rounded(Format::f32, wrong.lse), at)) return true;
        for (std::size_t c = 0; c < wrong.o.size(); ++c) {
          const std::size_t flat = at * wrong.o.size() + c;
          if (!accepted.o.accepts(rounded(p.output, wrong.o[c]), flat)) return true;
        }
      }
    }
  }
  return false;
}

constexpr std::size_t kRowsCompared =
    64;  // some hundred numbers each: enough to tell mistakes apart

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

struct PlaceOfRow {
  Index b = 0, h = 0, i = 0;
};

/// Rows with a refused number, evenly spread over all of them.
std::vector<PlaceOfRow> refused_rows(const Problem& p, const Acceptance& accepted,
                                     const Given& given) {
  std::vector<PlaceOfRow> all, some;
  for_each_row(p, [&](Index b, Index h, Index i) {
    const std::size_t row = row_number(p, b, h, i);
    if (holds_refused(accepted, given, row, p.v_depth)) all.push_back({b, h, i});
  });
  const std::size_t count = std::min(all.size(), kRowsCompared);
  for (std::size_t n = 0; n < count; ++n) some.push_back(all[n * all.size() / count]);
  return some;
}

/// Counts the refused numbers of one row, and those that a mistake which moves right to wrong
/// explains.
class Explained {
 public:
  Explained(const PrecisionPath& path, Resemblance& found)
      : roundoff_(unit_roundoff(path.p_format)), found_(found) {}

  void number(const Accepted& elements, std::size_t at, double got, double right, double wrong) {
    if (elements.accepts(got, at)) return;
    ++found_.refused;
    const double moved = wrong - right;
    const double centre = elements.centre[at] + moved;
    const double radius = elements.radius[at] + roundoff_ * std::fabs(moved);
    if (rounded(elements.format, centre - radius) <= got &&
        got <= rounded(elements.format, centre + radius)) {
      ++found_.explained;
    }
  }

 private:
  const double roundoff_;
  Resemblance& found_;
};

}  // namespace

std::vector<std::string_view> wrong_answer_names() {
  std::vector<std::string_view> names;
  for (const WrongAnswer& wrong : kWrongAnswers) names.push_back(wrong.name);
  return names;
}

std::vector<Power> measure_power(const Problem& problem, const Values& values,
                                 const Acceptance& accepted) {
  std::vector<Power> power;
  const WrongRows rows(problem, values);
  for (const WrongAnswer& wrong : kWrongAnswers) {
    if (!wrong.differs(problem)) continue;
    Slip slip;
    slip.asked = problem;
    wrong.apply(slip);
    power.push_back({std::string(wrong.name), is_refused(rows, slip, problem, accepted)});
  }
  return power;
}

std::string_view meaning_of_wrong_answer(std::string_view name) {
  for (const WrongAnswer& wrong : kWrongAnswers) {
    if (wrong.name == name) return wrong.what;
  }
  return {};
}

std::optional<Resemblance> resemblance(const Problem& problem, const Values& values,
                                       const PrecisionPath& path, const Acceptance& accepted,
                                       const Given& given) {
  const WrongRows rows(problem, values);
  const std::vector<PlaceOfRow> places = refused_rows(problem, accepted, given);
  std::vector<Row> right;
  for (const auto& [b, h, i] : places) right.push_back(rows.answer({.asked = problem}, b, h, i));
  std::optional<Resemblance> best;
  for (const WrongAnswer& mistake : kWrongAnswers) {
    if (!mistake.differs(problem)) continue;
    Slip slip{.asked = problem};
    mistake.apply(slip);
    Resemblance found{.wrong_answer = mistake.name};
    Explained explained(path, found);
    for (std::size_t n = 0; n < places.size(); ++n) {
      const auto& [b, h, i] = places[n];
      const Row wrong = rows.answer(slip, b, h, i);
      const std::size_t row = row_number(problem, b, h, i);
      if (given.lse != nullptr) {
        const double got = given.lse->at(static_cast<Index>(row));
        explained.number(accepted.lse, row, got, right[n].lse, wrong.lse);
      }
      for (std::size_t c = 0; given.o != nullptr && c < wrong.o.size(); ++c) {
        const std::size_t at = row * wrong.o.size() + c;
        const double got = given.o->at(static_cast<Index>(at));
        explained.number(accepted.o, at, got, right[n].o[c], wrong.o[c]);
      }
    }
    if (2 * found.explained > found.refused && (!best || found.explained > best->explained)) {
      best = found;
    }
  }
  return best;
}

}  // namespace attest
