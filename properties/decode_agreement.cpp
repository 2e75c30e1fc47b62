// Decode agreement: decode over a cache, with spare slots behind the keys and the keys split into
// any number of parts, gives the truth, O and LSE, within the bound of the declared path.
// Over the reals: partial softmaxes merge exactly through their LSE.
// In floating point: every strength of the bound covers the merge (reference/bound/README.md).
// Sees: lost or doubled split borders, empty splits, stale slots, a sink counted per split.
#include "properties/agreement.hpp"
#include "properties/catalogue.hpp"

namespace attest {

Verdict decode_agreement(const Subject& subject, const Problem& problem, const Values& values) {
  return judge_agreement(subject, Operation::decode, problem, values);
}

std::string explain_decode_agreement(const Subject& subject, const Problem& problem,
                                     const Values& values) {
  return explain_agreement(subject, Operation::decode, problem, values);
}

}  // namespace attest
