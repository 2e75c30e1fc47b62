// Roundings must be many, and independent: that is all the rules are about.
#include "reference/statistics/calibration.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest::statistics {
namespace {

constexpr int kPrecisionLeast =
    8;  // of P: with fewer bits a weight is no longer uniform in its ulp

using Patterns = std::vector<std::uint32_t>;

/// Two columns of v that are the same: their errors are too, where they come from sums.
bool repeats_a_column(const Problem& p, const Values& values) {
  for (Index b = 0; b < p.batch; ++b) {
    if (key_length(p, b) == 0) continue;
    for (Index h = 0; h < p.num_heads_kv; ++h) {
      std::set<Patterns> columns;
      for (Index c = 0; c < p.head_dim_v; ++c) {
        Patterns column;
        for (Index j = 0; j < key_length(p, b); ++j) {
          column.push_back(values.v.bits(values.v.offset(b, h, j, c)));
        }
        if (!columns.insert(std::move(column)).second) return true;
      }
    }
  }
  return false;
}

/// Two rows of q that read the same keys: the row of one is the row of the other.
bool repeats_a_query(const Problem& p, const Values& values) {
  const Index group = p.num_heads_q / p.num_heads_kv;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index kv_head = 0; kv_head < p.num_heads_kv; ++kv_head) {
      std::set<Patterns> rows;
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        for (Index i = 0; i < query_length(p, b); ++i) {
          Patterns row;
          for (Index c = 0; c < p.head_dim; ++c) {
            row.push_back(values.q.bits(values.q.offset(b, h, i, c)));
          }
          if (!rows.insert(std::move(row)).second) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> uncalibrated(const Problem& p, const Values& values,
                                        const PrecisionPath& path) {
  if (path.scores_format != Format::f32 || path.normalize_before_cast) {
    return "scores of 16 bits and shares divided before the cast are not part of the model";
  }
  if (facts(path.p_format).precision < kPrecisionLeast) {
    return "P has so few bits that its roundings are not uniform";
  }
  if (repeats_a_column(p, values)) return "two columns of v are the same";
  if (repeats_a_query(p, values)) return "two rows of q are the same";
  return {};
}

bool calibrated(const LikelyRow& row, double largest, Format output) {
  return row.keys >= kKeysLeast && row.support >= kSupportLeast && row.distinct >= kDistinctLeast &&
         row.spread >= kSpreadLeast && largest >= smallest_normal(output);
}

}  // namespace attest::statistics
