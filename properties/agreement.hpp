// Agreement: O and LSE of one reply against the oracle, and what the bound could have refused.
#pragma once
#include <string>

#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// `operation` is prefill or decode.
Verdict judge_agreement(const Subject& subject, Operation operation, const Problem& problem,
                        const Values& values);

/// What a violation of it may mean (diagnosis.hpp); empty when there is none.
std::string explain_agreement(const Subject& subject, Operation operation, const Problem& problem,
                              const Values& values);

}  // namespace attest
