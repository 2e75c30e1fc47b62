// The model, row after row. What a row does is in logits.cpp and row.cpp.
#include "reference/model/model.hpp"

#include "reference/model/row.hpp"
#include "reference/operand_formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace model {

Plan::Plan(const Problem& its_problem, const Values& its_values, const PrecisionPath& its_path,
           const Model& its_model)
    : problem(its_problem), values(its_values), path(its_path), model(its_model) {
  scores.exact = exact(Stage::scores);
  exponential.exact = exact(Stage::exp);
  row_sum.exact = exact(Stage::row_sum);
  pv.exact = exact(Stage::pv);
  division.exact = row_sum.exact;
  if (has(Defect::sum_in_f16)) row_sum.format = Format::f16;

  q_format = q_operand(problem);
  k_format = k_operand(problem);
  p_format = exact(Stage::p_cast) ? Format::f32 : p_operand(problem, path);
  v_format = v_operand(problem, path);
  const Index step = model.freedom.tensor_step > 0 ? model.freedom.tensor_step : path.tensor_step;
  score_core = tensor_core(step, q_format, k_format);
  value_core = tensor_core(step, p_operand(problem, path), v_format);

  scale = static_cast<double>(problem.softmax_scale) * (has(Defect::scale_off) ? 1 + 0x1p-13 : 1);
  plain = path.scores_format == Format::f32 && problem.softcap == 0 && !values.bias &&
          !values.alibi_slopes && !values.sinks && scale > 0;
  // Into tensor cores V goes as it is stored.
  const bool tensor = path.tensor_step != 0;
  scaled_o = tensor && !path.v_scale_in_p && values.v_scales && values.v_scales->extent[2] == 1;
  scaled_p = !scaled_o && (path.v_scale_in_p || tensor);
  nats = plain ? scale : 1;
  bits = exponential(nats * kLog2e);
}

Head Plan::head(Index b, Index kv_head) const {
  Head head{b, kv_head, problem.seqlen_kv, {}, {}, {}, {}};
  head.k.resize(static_cast<std::size_t>(problem.seqlen_kv * problem.head_dim));
  head.v.resize(static_cast<std::size_t>(problem.seqlen_kv * problem.head_dim_v));
  for (Index j = 0; j < problem.seqlen_kv; ++j) {
    head.k_scale.push_back(scale_at(values.k_scales, b, kv_head, j));
    head.v_scale.push_back(scale_at(values.v_scales, b, kv_head, j));
    for (Index c = 0; c < problem.head_dim; ++c) {
      head.k.set(static_cast<std::size_t>(j * problem.head_dim + c), values.k.at(b, kv_head, j, c),
                 k_format);
    }
  }
  const Index middle = key_length(problem, b) / 2;
  for (Index j = 0; j < problem.seqlen_kv; ++j) {
    Index source = j;
    if (has(Defect::rows_swapped) && middle > 0) {
      source = j == middle ? middle - 1 : j == middle - 1 ? middle : j;
    }
    const double factor = scaled_p || scaled_o ? 1 : head.v_scale[static_cast<std::size_t>(source)];
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      head.v.set(static_cast<std::size_t>(c * problem.seqlen_kv + j),
                 pv(values.v.at(b, kv_head, source, c) * factor), v_format);
    }
  }
  return head;
}

State Plan::no_keys() const {
  State state;
  state.bits = bits;
  state.nats = nats;
  state.shift = path.p_scale_log2;
  state.acc.assign(static_cast<std::size_t>(problem.head_dim_v), 0.0);
  return state;
}

}  // namespace model

Modelled model_attention(const Problem& problem, const Values& values, const PrecisionPath& path,
                         const Model& how) {
  const model::Plan plan(problem, values, path, how);
  const auto width = static_cast<std::size_t>(problem.head_dim_v);
  const Index group = problem.num_heads_q / problem.num_heads_kv;
  Modelled result;
  for (Index b = 0; b < problem.batch; ++b) {
    model::Head head;
    for (Index h = 0; h < problem.num_heads_q; ++h) {
      if (h % group == 0) head = plan.head(b, h / group);
      for (Index i = 0; i < problem.seqlen_q; ++i) {
        model::Row row{std::vector<double>(width, 0.0), 0};
        if (i < query_length(problem, b)) row = model::attend(plan, head, h, i);
        result.o.insert(result.o.end(), row.o.begin(), row.o.end());
        result.lse.push_back(row.lse);
      }
    }
  }
  return result;
}

}  // namespace attest
