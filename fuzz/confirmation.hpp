// Confirmation: a failing check is put to a fresh subject before anybody believes it. What does not
// fail again says nothing of the subject's numbers: a worker may have been left in disorder by an
// earlier fault, or the machine may be failing.
#pragma once
#include <functional>
#include <optional>

#include "fuzz/campaign.hpp"
#include "fuzz/check.hpp"
#include "fuzz/shrink.hpp"

namespace attest {

/// Makes a finding of a check that failed as `seen`, on a subject of its own: seen again as drawn,
/// made small, and the small one seen again by yet another subject, or else the drawn one is kept.
/// Nothing: it did not fail again; then `again` is what the fresh subject did.
std::optional<Finding> confirmed(const std::function<Subject()>& make_subject,
                                 const PropertyCase& check, const Observation& seen,
                                 const CampaignOptions& options, const ShrinkEvents& events,
                                 Observation& again);

}  // namespace attest
