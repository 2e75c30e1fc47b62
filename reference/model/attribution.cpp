// Fourteen runs of the model, compared element by element.
#include "reference/model/attribution.hpp"

#include <cmath>

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

/// Which elements of O are judged: those of rows that exist.
std::vector<std::size_t> elements_of(const Problem& problem) {
  std::vector<std::size_t> elements;
  for (Index row = 0; row < problem.batch * problem.num_heads_q * problem.seqlen_q; ++row) {
    const Index b = row / (problem.num_heads_q * problem.seqlen_q);
    if (row % problem.seqlen_q >= query_length(problem, b)) continue;
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      elements.push_back(static_cast<std::size_t>(row * problem.head_dim_v + c));
    }
  }
  return elements;
}

struct Comparison {
  Format output;
  std::vector<double> truth;
  std::vector<std::size_t> elements;
  double o_rms = 0;

  double mean_of_squares(const std::vector<double>& numbers) const {
    double sum = 0;
    for (std::size_t at : elements) sum += numbers[at] * numbers[at];
    return elements.empty() ? 0 : sum / static_cast<double>(elements.size());
  }

  ErrorSize between(const std::vector<double>& a, const std::vector<double>& b) const {
    double squares = 0, sum = 0, ulp_squares = 0;
    for (std::size_t at : elements) {
      const double error = a[at] - b[at], ulps = error / ulp(output, truth[at]);
      squares += error * error;
      sum += std::copysign(1.0, truth[at]) * error;
      ulp_squares += ulps * ulps;
    }
    if (elements.empty() || squares == 0) return {};
    const auto count = static_cast<double>(elements.size());
    return {std::sqrt(squares / count) / o_rms, sum / count / o_rms,
            std::sqrt(ulp_squares / count)};
  }
};

}  // namespace

Attribution attribute(const Problem& problem, const Values& values, const PrecisionPath& path,
                      const Freedom& freedom) {
  const auto run = [&](Stages exact) {
    return model_attention(problem, values, path, {.exact = exact, .freedom = freedom}).o;
  };
  Comparison all{problem.output, run(all_stages()), elements_of(problem)};
  const std::vector<double> as_it_is = run({});
  std::vector<std::vector<double>> without, alone;
  for (std::size_t n = 0; n < kStageNames.size(); ++n) {
    const Stages stage = only(static_cast<Stage>(n));
    without.push_back(run(stage));
    alone.push_back(run(all_stages() & ~stage));
  }
  std::erase_if(all.elements, [&](std::size_t at) {
    bool finite = std::isfinite(all.truth[at]) && std::isfinite(as_it_is[at]);
    for (const auto* runs : {&without, &alone}) {
      for (const std::vector<double>& o : *runs) finite = finite && std::isfinite(o[at]);
    }
    return !finite;
  });
  all.o_rms = std::sqrt(all.mean_of_squares(all.truth));

  Attribution result;
  result.elements = static_cast<Index>(all.elements.size());
  result.o_rms = all.o_rms;
  result.total = all.between(as_it_is, all.truth);
  double squares = 0;
  for (std::size_t n = 0; n < kStageNames.size(); ++n) {
    result.stages[n].vanishes = all.between(as_it_is, without[n]);
    result.stages[n].remains = all.between(alone[n], all.truth);
    squares += result.stages[n].remains.rms * result.stages[n].remains.rms;
  }
  for (StageError& stage : result.stages) {
    stage.share = squares == 0 ? 0 : stage.remains.rms * stage.remains.rms / squares;
  }
  return result;
}

}  // namespace attest
