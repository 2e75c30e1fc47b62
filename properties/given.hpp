// Given: an answer as somebody gave it, O and LSE or one of them, to be judged without its subject.
#pragma once
#include "reference/values.hpp"

namespace attest {

/// In the extents of Truth; null: it was not given. Owned elsewhere.
struct Given {
  const Tensor* o = nullptr;    // format: output
  const Tensor* lse = nullptr;  // (batch, num_heads_q, queries, 1), f32
};

}  // namespace attest
