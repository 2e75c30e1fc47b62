// A world without attention for the unit tests of this folder: three properties that only ask
// whether the subject's first number is 0 (the third is central to prefill, and sharp where
// causal), a drawing of cases that is a hash, and subjects that are wrong exactly when a test says
// so. Linked in place of properties/.
#pragma once
#include <functional>
#include <string>

#include "fuzz/campaign.hpp"
#include "properties/property.hpp"
#include "reference/subject.hpp"

namespace attest {

/// Wrong when `wrong` says so; faults with the kind that `fault` returns, unless that is empty.
struct FakeBehaviour {
  std::function<bool(const Problem&, const Values&)> wrong;
  std::function<std::string(const Problem&)> fault;
  std::function<bool(const Problem&)> declined;
};
Subject fake_subject(FakeBehaviour behaviour);

/// A campaign against such subjects that nobody stops, and options for one of so many cases.
Run run_against(const FakeBehaviour& behaviour, const CampaignOptions& options,
                const CampaignEvents& events = {});
CampaignOptions cases(std::uint64_t count, unsigned threads = 2);

/// As Run would print it, without what depends on time.
std::string fingerprint(const Run& run);

}  // namespace attest
