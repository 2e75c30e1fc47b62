// Steps S1 to S3 of bound/README.md: the logits of one row, and how far off a kernel may compute
// them. Knows nothing of weights.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "reference/operand_formats.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/subject.hpp"
#include "reference/values.hpp"

namespace attest::bound {

/// A head's rows as doubles, exactly what is stored times the scale, and the 1-norm of each row.
struct Rows {
  Index width = 0;
  std::vector<double> numbers, norm, scale;
  std::vector<double> sizes;  // magnitudes of the numbers, or what tensor cores align them by
  const double* row(Index i) const { return numbers.data() + i * width; }
  const double* sizes_of(Index i) const { return sizes.data() + i * width; }
  double scale_of(Index i) const { return scale[static_cast<std::size_t>(i)]; }
  double norm_of(Index i) const { return norm[static_cast<std::size_t>(i)]; }
};

struct Row {
  const Problem& problem;
  const Values& values;
  const PrecisionPath& path;
  Index b, h, i;
};

/// By how much flushing may be multiplied on its way into O: what is lost of a weight by v, of a
/// weight that a scale joined by the stored number, of a sum of stored numbers by their scale.
inline double met_by_flushed(double value, double scale) {
  return std::max({std::fabs(value), std::fabs(value) / scale, scale});
}

/// A visible key, or the sink.
struct Term {
  Index j;
  double logit;
  double logit_error;      // S1 to S3, absolute
  double moved = 0;        // by how much a kernel may have moved all logits of the row: S3, ALiBi
  double exponent = 0;     // A: every error of ln(weight) that is not common to the row
  double weight = 0;       // relative to the reference, at most 1
  double share = 0;        // pi
  double theta_share = 0;  // pi Theta
};

struct Scores {
  std::vector<Term> keys;
  std::vector<Term> sink;       // one, or none
  std::vector<Index> readable;  // visible keys and those under a bias of -inf
  bool judged = true;           // no intermediate can overflow and nothing is NaN or infinite
};

/// The first `count` rows of a head of `tensor`, with their scales. `operand` is the format in
/// which tensor cores take them, if they do.
Rows rows_of(const Tensor& tensor, const std::optional<Tensor>& scales, Index b, Index h,
             Index count, std::optional<Format> operand = {});

/// `q` and `k` are the rows of the row's heads. With `follow` the errors are those of the declared
/// order of columns, if there is one, and otherwise of any order.
Scores scores_of(const Row& row, const Rows& q, const Rows& k, bool follow = false);

/// Calls `visit` with every row that is judged, its heads' q, k and v, and its number among all
/// (batch, num_heads_q, queries). `wanted`, by that number, says which are; empty: all.
template <class Visit>
void for_each_row(const Problem& p, const Values& values, const PrecisionPath& path, Visit visit,
                  const std::vector<bool>& wanted = {}) {
  const Index group = p.num_heads_q / p.num_heads_kv;
  const auto taken = [&](Format operand) {
    return path.tensor_step != 0 ? std::optional(operand) : std::nullopt;
  };
  for (Index b = 0; b < p.batch; ++b) {
    for (Index kv_head = 0; kv_head < p.num_heads_kv; ++kv_head) {
      const Rows k =
          rows_of(values.k, values.k_scales, b, kv_head, key_length(p, b), taken(k_operand(p)));
      const Rows v = rows_of(values.v, values.v_scales, b, kv_head, key_length(p, b),
                             taken(v_operand(p, path)));
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        const Rows q = rows_of(values.q, {}, b, h, query_length(p, b), taken(q_operand(p)));
        for (Index i = 0; i < query_length(p, b); ++i) {
          const std::size_t at = row_number(p, b, h, i);
          if (wanted.empty() || wanted[at]) visit(Row{p, values, path, b, h, i}, q, k, v, at);
        }
      }
    }
  }
}

}  // namespace attest::bound
