// Attribution costs many runs of a model, so that of a large cell only a part is looked at: some
// sequences, and of those their last rows.
#include <algorithm>

#include "properties/cache_rows.hpp"
#include "reports/measurement.hpp"

namespace attest {
namespace {

// Multiplications of one run of the model, of which there are 14: half a second in all.
constexpr Index kWorkMost = Index{1} << 22;

Index work_of(const Problem& p) {
  return p.batch * p.num_heads_q * p.seqlen_q * p.seqlen_kv * (p.head_dim + p.head_dim_v);
}

/// The first `count` along the first axis.
void shorten(Tensor& tensor, Index count) {
  const std::size_t each = tensor.bytes.size() / static_cast<std::size_t>(tensor.extent[0]);
  tensor.bytes.resize(each * static_cast<std::size_t>(count));
  tensor.extent[0] = count;
}

void keep_sequences(Problem& p, Values& values, Index count) {
  for (auto* tensor : {&values.q, &values.k, &values.v}) shorten(*tensor, count);
  if (values.bias) shorten(*values.bias, count);
  for (auto* scales : {&values.k_scales, &values.v_scales}) {
    if (p.scales == Scales::token) shorten(**scales, count);
  }
  if (values.mask) {
    values.mask->batch = count;
    values.mask->visible.resize(static_cast<std::size_t>(count * p.seqlen_q * p.seqlen_kv));
  }
  for (auto* lengths : {&p.seqlens_q, &p.seqlens_kv}) {
    if (!lengths->empty()) lengths->resize(static_cast<std::size_t>(count));
  }
  p.batch = count;
}

/// Rows stand where they stood, since the sequence's end is where it was.
bool can_keep_last_rows(const Problem& p) {
  return p.seqlens_q.empty() && p.alignment == Alignment::bottom_right && !p.mask;
}

}  // namespace

std::optional<Attribution> attribution_of(Problem problem, Values values, const PrecisionPath& path,
                                          Index tensor_step) {
  if (work_of(problem) == 0) return std::nullopt;
  const Index sequences = kWorkMost / (work_of(problem) / problem.batch);
  if (sequences < problem.batch) keep_sequences(problem, values, std::max<Index>(1, sequences));
  const Index rows = kWorkMost / (work_of(problem) / problem.seqlen_q);
  if (rows < problem.seqlen_q) {
    if (rows == 0 || !can_keep_last_rows(problem)) return std::nullopt;
    values.q = rows_between(values.q, problem.seqlen_q - rows, problem.seqlen_q);
    if (values.bias)
      values.bias = rows_between(*values.bias, problem.seqlen_q - rows, problem.seqlen_q);
    problem.seqlen_q = rows;
  }
  Freedom freedom;
  freedom.tensor_step = tensor_step;
  return attribute(problem, values, path, freedom);
}

}  // namespace attest
