// The exact oracle at a fixed number of digits: the definition for every row, rounded once.
#include "reference/oracle/exact.hpp"

#include <algorithm>

#include "reference/oracle/definition.hpp"

namespace attest {
namespace {

using namespace oracle;

/// Calls visit(place, attended) for every row below its query length, lse in the Problem's base.
template <class Scalar, class Visit>
void for_each_row(const Problem& problem, const Values& values, const Visit& visit) {
  const Index group = problem.num_heads_q / problem.num_heads_kv;
  const Scalar ln2 = log(Scalar(2));
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index kv_head = 0; kv_head < problem.num_heads_kv; ++kv_head) {
      const auto k = slice<Scalar>(values.k, values.k_scales, b, kv_head, key_length(problem, b));
      const auto v = slice<Scalar>(values.v, values.v_scales, b, kv_head, key_length(problem, b));
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        const auto q = slice<Scalar>(values.q, {}, b, h, query_length(problem, b));
        for (Index i = 0; i < query_length(problem, b); ++i) {
          const Place place = place_of(problem, values, b, h, i);
          Attended<Scalar> row = place.keys.empty()
                                     ? empty_row<Scalar>(problem, values, h)
                                     : attend<Scalar>(problem, values, place, q.row(i), k, v);
          if (problem.lse_base == LogBase::two) row.lse /= ln2;
          visit(place, row);
        }
      }
    }
  }
}

template <class Scalar>
Truth truth(const Problem& problem, const Values& values) {
  Truth result;
  result.extent = {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v};
  const std::size_t rows = row_count(problem);
  const auto width = static_cast<std::size_t>(problem.head_dim_v);
  result.lse.resize(rows);
  result.lse_tail.resize(rows);
  result.o.resize(rows * width);
  result.o_tail.resize(rows * width);
  for_each_row<Scalar>(problem, values, [&](const Place& at, const Attended<Scalar>& row) {
    const std::size_t number = row_number(problem, at.b, at.h, at.i);
    split(row.lse, result.lse[number], result.lse_tail[number]);
    for (std::size_t c = 0; c < width; ++c) {
      split(row.o(static_cast<Index>(c)), result.o[number * width + c],
            result.o_tail[number * width + c]);
    }
  });
  return result;
}

// Below this part of its terms an element is rounding noise of a sum that cancels entirely.
constexpr double kCancelled = 1e-45;  // five digits above the 50 that the shorter type carries

int agreeing_digits(const Decimal<50>& shorter, const Decimal<100>& longer, double unit) {
  const Decimal<100> a(shorter);
  if (isnan(a) || isnan(longer)) return isnan(a) && isnan(longer) ? 50 : 0;
  if (a == longer) return 50;
  if (isinf(a) || isinf(longer)) return 0;
  Decimal<100> measure = abs(longer);
  if (measure < Decimal<100>(kCancelled) * Decimal<100>(unit)) measure = unit;
  const Decimal<100> digits = -log10(Decimal<100>(abs(Decimal<100>(a - longer)) / measure));
  return std::clamp(static_cast<int>(floor(digits).convert_to<double>()), 0, 50);
}

double largest_visible_v(const Values& values, const Problem& problem, const Place& at, Index c) {
  const Index kv_head = at.h / (problem.num_heads_q / problem.num_heads_kv);
  double largest = 0;
  for (Index j : at.keys) largest = std::max(largest, std::fabs(values.v.at(at.b, kv_head, j, c)));
  return largest;
}

}  // namespace

Truth exact_attention(const Problem& problem, const Values& values, Digits digits) {
  switch (digits) {
    case Digits::fifty:
      return truth<Decimal<50>>(problem, values);
    case Digits::hundred:
      return truth<Decimal<100>>(problem, values);
  }
  return {};
}

int certified_digits(const Problem& problem, const Values& values) {
  std::vector<Attended<Decimal<50>>> rows;
  for_each_row<Decimal<50>>(problem, values,
                            [&](const Place&, const auto& row) { rows.push_back(row); });
  int digits = 50;
  std::size_t next = 0;
  for_each_row<Decimal<100>>(problem, values, [&](const Place& at, const auto& longer) {
    const Attended<Decimal<50>>& shorter = rows[next++];
    digits = std::min(digits, agreeing_digits(shorter.lse, longer.lse, 1.0));
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      const double unit = largest_visible_v(values, problem, at, c);
      digits = std::min(digits, agreeing_digits(shorter.o(c), longer.o(c), unit));
    }
  });
  return digits;
}

}  // namespace attest
