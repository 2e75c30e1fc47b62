// Agreement: O and LSE of one reply against the oracle, and what the bound could have refused.
#pragma once
#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// `operation` is prefill or decode.
Verdict judge_agreement(const Subject& subject, Operation operation, const Problem& problem,
                        const Values& values);

}  // namespace attest
