// No score matrix: a prefill writes less to global memory than its outputs and one byte per score.
// Why: a kernel that spills S = Q K^T or its weights, in whatever format, writes at least one byte
// for each visible (query, key). One that keeps them on the chip writes O and LSE; if it splits the
// keys it also writes partial results, v_depth + 2 numbers of four bytes per row and part, and a
// part of fewer than 64 keys (the smallest tile in use on that axis) would be no use to it. The two
// can be told apart where those partial results are fewer bytes than there are scores; elsewhere
// this is vacuous. No arithmetic is judged, so there is no bound: bytes are counted exactly.
// Sees: T x T arrays in global memory, materialised masks and biases, spilled score tiles.
#include <string>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/costs.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"
#include "reference/formats.hpp"

namespace attest {

Verdict no_score_matrix(const Subject& subject, const Problem& problem, const Values& values) {
  if (const auto instead = uncounted(subject)) return *instead;
  constexpr Index kLeastPart = 64, kWordBytes = 4;
  const Index row_bytes = problem.v_depth * bytes_of(problem.output) + kWordBytes;  // O and LSE
  const Index part_bytes = (problem.v_depth + 2) * kWordBytes;
  Index scores = 0, outputs = 0, partial = 0;
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index i = 0; i < query_length(problem, b); ++i) {
      const Index seen = count_of(visible_keys(problem, values, b, i)) * problem.query_heads;
      scores += seen;
      partial += (seen + kLeastPart - 1) / kLeastPart * part_bytes;
    }
    outputs += problem.query_heads * problem.queries * row_bytes;
  }
  const Answer answer = ask(subject, Operation::prefill, problem, values);
  if (answer.instead) return *answer.instead;
  if (partial >= scores) {
    return vacuous("so few scores per row that partial results could be as large");
  }
  const Index written = answer.reply.counters.global_written_bytes;
  Judge judge;
  judge.demand(written < outputs + scores, static_cast<double>(written), {0, 0, 0, 0},
               "with outputs of " + std::to_string(outputs) + " bytes and " +
                   std::to_string(scores) +
                   " scores, fewer bytes than both together must be written");
  return judge.verdict();
}

}  // namespace attest
