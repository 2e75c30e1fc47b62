// The table of detection: model after model on the same values, judged by all rules.
#include "reference/model/detection.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "reference/formats.hpp"
#include "reference/model/peer_rules.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

constexpr Index kRows = 128;

/// Whether any element of a row is as `pick` says.
template <class Pick>
Index rows_where(const Problem& problem, const Pick& pick) {
  Index rows = 0;
  for (Index row = 0; row < kRows; ++row) {
    bool any = false;
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      any = any || pick(static_cast<std::size_t>(row * problem.head_dim_v + c));
    }
    rows += any ? 1 : 0;
  }
  return rows;
}

std::string share(Index rows) {
  const double percent = 100.0 * static_cast<double>(rows) / kRows;
  return rows == 0 ? "0" : fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
}

void add_table(std::string& page, const DetectionTable& table) {
  page += fmt::format("\n## {}\n\n| defect | changed | B1 | B2 | B3 |", table.title);
  for (const PeerRule& rule : peer_rules()) page += fmt::format(" {} |", rule.name);
  page += "\n|---|---|---|---|---|";
  for (std::size_t n = 0; n < peer_rules().size(); ++n) page += "---|";
  page += "\n";
  for (const Detection& line : table.lines) {
    page += fmt::format("| {} | {} |", kDefectNames[static_cast<std::size_t>(line.defect)],
                        share(line.changed));
    for (Index refused : line.refused) page += fmt::format(" {} |", share(refused));
    for (bool accepted : line.accepted) page += accepted ? " |" : " refused |";
    page += "\n";
  }
}

}  // namespace

DetectionCase detection_case(Index keys, bool one_sign) {
  DetectionCase result;
  Problem& problem = result.problem;
  problem.num_heads_q = 2;
  problem.seqlen_q = kRows / problem.num_heads_q;
  problem.seqlen_kv = keys + 1;
  problem.seqlens_kv = {keys};
  problem.head_dim = problem.head_dim_v = 64;
  problem.softmax_scale = 0.125F;  // 1 / sqrt(64)
  problem.input = problem.output = Format::bf16;
  std::mt19937_64 random(static_cast<std::uint64_t>(keys));
  result.values = random_values(problem, random);
  if (one_sign) {
    Tensor& v = result.values.v;
    for (Index n = 0; n < v.count(); ++n) v.set(n, std::fabs(v.at(n)));
  }
  constexpr double kU = 0x1p-24;
  result.path = {.p_format = Format::bf16,
                 .exp_error = 5 * kU,       // ex2.approx.f32: PTX ISA, 2 ulp from correctly rounded
                 .division_error = 4 * kU,  // rcp.approx.f32: PTX ISA, 1 ulp, and a product
                 .keys_per_rescale = 64,
                 .tensor_step = 16,
                 .kv_block = 64,
                 .kv_blocks_descending = true,
                 .in_order = true,
                 .partial_row_sums = 4};
  return result;
}

DetectionTable detect(const DetectionCase& which, std::string title) {
  const Problem& problem = which.problem;
  const auto modelled = [&](Defect defect) {
    return model_attention(problem, which.values, which.path, {.defect = defect}).o;
  };
  const Truth truth = exact_attention(problem, which.values);
  std::array<Acceptance, kStrengthNames.size()> bounds;
  for (std::size_t n = 0; n < bounds.size(); ++n) {
    const auto strength = static_cast<Strength>(n);
    bounds[n] = acceptance_around(truth, problem, which.values, which.path, strength);
  }
  PeerInputs peers{problem.output, {}, {}, plain_attention(problem, which.values)};
  for (double o : truth.o) peers.truth.push_back(rounded(problem.output, o));

  const std::vector<double> healthy = modelled(Defect::none);
  DetectionTable table{std::move(title), kRows, {}};
  for (std::size_t n = 0; n < kDefectNames.size(); ++n) {
    Detection line;
    line.defect = static_cast<Defect>(n);
    const std::vector<double> o = modelled(line.defect);
    line.changed = rows_where(problem, [&](std::size_t at) { return o[at] != healthy[at]; });
    for (std::size_t s = 0; s < bounds.size(); ++s) {
      line.refused[s] =
          rows_where(problem, [&](std::size_t at) { return !bounds[s].o.accepts(o[at], at); });
    }
    peers.o = o;
    for (const PeerRule& rule : peer_rules()) line.accepted.push_back(rule.accepts(peers));
    table.lines.push_back(std::move(line));
  }
  return table;
}

std::vector<DetectionTable> detection_tables() {
  std::vector<DetectionTable> tables;
  for (Index keys : {64, 1024}) {
    for (bool one_sign : {false, true}) {
      tables.push_back(detect(detection_case(keys, one_sign),
                              fmt::format("{} keys, {}", keys, one_sign ? "V > 0" : "N(0, 1)")));
    }
  }
  return tables;
}

std::string detection_page(const std::vector<DetectionTable>& tables) {
  std::string page =
      "# Which defects the bounds see, and which other rules do\n\n"
      "Printed by `bin/detection_page`; `detection_test` says when this is not what it prints.\n\n"
      "A model of a FlashAttention 3 kernel on H100 (`reference/model`; bf16 in and out, P in "
      "bf16, "
      "tensor cores of 16 products, blocks of 64 keys, the last first) computes 128 rows of 64 "
      "columns, each time with one defect. *changed*: the share of rows in which the defect "
      "changes a stored "
      "bit of O at all; no rule that looks at O can see more. B1, B2, B3: the share of rows that "
      "the order-free, running "
      "and quantised bound refuses; a stronger one that does not apply is the weaker one. Then "
      "what rules of other "
      "projects, which judge a tensor as a whole, say of it: empty is accepted.\n\n| rule | "
      "accepts if | from |\n|---|---|---|\n";
  for (const PeerRule& rule : peer_rules()) {
    std::string formula;
    for (char letter : rule.formula) formula += letter == '|' ? "\\|" : std::string(1, letter);
    page += fmt::format("| {} | {} | {} |\n", rule.name, formula, rule.source);
  }
  page +=
      "\no: the output, r: the truth rounded to bf16, p: unfused attention that rounds scores, "
      "softmax and O to bf16.\n";
  for (const DetectionTable& table : tables) add_table(page, table);
  page +=
      "\nThe first line of each table is a correct kernel: what a rule refuses there is a false "
      "alarm.\n\n"
      "| defect | what it is |\n|---|---|\n"
      "| p_truncated, output_truncated | the cast of P, of O, towards zero |\n"
      "| scale_off | the scale times 1 + 2^-13 |\n"
      "| key_dropped | the last key is not looked at |\n"
      "| sum_misses_key | the row sum misses one key |\n"
      "| scores_in_bf16 | logits are rounded to bf16 |\n"
      "| exp_biased | exponentials times 1 + 2^-12, except that of 0 |\n"
      "| rescale_missing | O is not rescaled the first time the maximum grows; with one block it "
      "never does |\n"
      "| sum_in_f16 | the row sum is kept in f16 |\n"
      "| sum_from_cast | the row sum adds the weights as cast to bf16 |\n"
      "| rows_swapped | two neighbouring rows of V are swapped |\n"
      "| key_leaked | the key behind the last one is seen |\n";
  return page;
}

}  // namespace attest
