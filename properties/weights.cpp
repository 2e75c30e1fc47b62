// One-hot values, laid out so that O holds the weights. Knows nothing of what weights should be.
#include "properties/weights.hpp"

#include <algorithm>
#include <utility>

#include "properties/ask.hpp"
#include "properties/judge.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

/// V of `columns` columns whose column c is 1 at key first + c.
Tensor one_hot(const Problem& problem, Index first, Index columns) {
  Tensor v(cache_format(problem),
           {problem.batch, problem.num_heads_kv, problem.seqlen_kv, columns});
  const Index last = std::min(problem.seqlen_kv, first + columns);
  for (Index b = 0; b < problem.batch; ++b) {
    for (Index g = 0; g < problem.num_heads_kv; ++g) {
      for (Index j = first; j < last; ++j) v.set(b, g, j, j - first, 1);
    }
  }
  return v;
}

}  // namespace

Problem with_identity(const Problem& problem) {
  Problem identity = problem;
  identity.head_dim_v = std::max<Index>(problem.seqlen_kv, 1);
  return identity;
}

Values with_identity(const Problem& problem, const Values& values) {
  Values identity = values;
  identity.v = one_hot(problem, 0, std::max<Index>(problem.seqlen_kv, 1));
  return identity;
}

RecoveredWeights recover_weights(const Subject& subject, const Problem& problem,
                                 const Values& values) {
  RecoveredWeights recovered;
  if (problem.scales != Scales::none) {
    recovered.instead = vacuous("weights are recovered through values of 1, so without scales");
    return recovered;
  }
  recovered.weight.resize(static_cast<std::size_t>(problem.batch * problem.num_heads_q *
                                                   problem.seqlen_q * problem.seqlen_kv));
  Values asked = values;
  for (Index first = 0; first < problem.seqlen_kv; first += problem.head_dim_v) {
    asked.v = one_hot(problem, first, problem.head_dim_v);
    Answer answer = ask_attention(subject, problem, asked);
    if (answer.instead) {
      recovered.instead = std::move(answer.instead);
      return recovered;
    }
    const Index last = std::min(problem.seqlen_kv, first + problem.head_dim_v);
    const Tensor& o = answer.reply.o;
    for_each_row(problem, [&](Index b, Index h, Index i) {
      const Index row = ((b * problem.num_heads_q + h) * problem.seqlen_q + i) * problem.seqlen_kv;
      for (Index j = first; j < last; ++j) {
        recovered.weight[static_cast<std::size_t>(row + j)] = o.at(b, h, i, j - first);
      }
    });
    if (first == 0) recovered.lse = std::move(answer.reply.lse);
  }
  return recovered;
}

}  // namespace attest
