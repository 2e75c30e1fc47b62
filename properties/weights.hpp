// Weights: what a subject's softmax weights are, read through one-hot V. Column c of V is 1 at one
// key and 0 elsewhere, so column c of the output is that key's weight; as many keys as V has
// columns are read at a time, so the subject is asked exactly the Problem's own extents.
#pragma once
#include <optional>
#include <vector>

#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

struct RecoveredWeights {
  std::optional<Verdict> instead;  // set: the subject gave no answer
  std::vector<double> weight;      // (batch, num_heads_q, queries, keys)
  Tensor lse;                      // of the first pass
};
RecoveredWeights recover_weights(const Subject& subject, const Problem& problem,
                                 const Values& values);

/// The same question asked at once, head_dim_v = keys and V the identity: its O is the weights, its
/// bounds are theirs. For the oracle and the bound; a subject need not take such a head_dim_v.
Problem with_identity(const Problem& problem);
Values with_identity(const Problem& problem, const Values& values);

}  // namespace attest
