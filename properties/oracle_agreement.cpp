// Oracle agreement: prefill gives the truth, O and LSE, within the bound of the declared path.
// Over the reals: it is the definition.
// In floating point: reference/bound/README.md derives how far a correct kernel may be; rows that
// see no key are exact.
// Sees: whatever changes a number by more than rounding can. Each case also records which wrong
// answers its bound would have refused (wrong_answers.hpp).
#include "properties/agreement.hpp"
#include "properties/catalogue.hpp"

namespace attest {

Verdict oracle_agreement(const Subject& subject, const Problem& problem, const Values& values) {
  return judge_agreement(subject, Operation::prefill, problem, values);
}

std::string explain_oracle_agreement(const Subject& subject, const Problem& problem,
                                     const Values& values) {
  return explain_agreement(subject, Operation::prefill, problem, values);
}

}  // namespace attest
