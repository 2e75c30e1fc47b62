// Shrink: the walk from a failing case towards the default Problem. Which smaller cases there are
// is candidates.hpp's business; this decides which of them to keep.
#pragma once
#include <functional>

#include "fuzz/campaign.hpp"
#include "fuzz/check.hpp"

namespace attest {

struct ShrinkEvents {
  std::function<void(const PropertyCase&)> about_to_run;  // may be empty
  std::function<bool()> stop;  // may be empty; true: what was found so far will do
};

/// As shrink() of campaign.hpp, every step under the setting of `check`. A smaller case is kept
/// when it fails with the same kind_of().
Finding shrink_observed(const Subject& subject, const PropertyCase& check, const Observation& seen,
                        const CampaignOptions& options, const ShrinkEvents& events);

}  // namespace attest
