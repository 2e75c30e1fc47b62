// Fitted: drawn cases moved to where a subject accepts them, and to the pairs of features that are
// to be tried there.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "properties/domains/served.hpp"

namespace attest {

/// Which operation the named property puts the Problem to; nothing: none that is offered and
/// served.
std::optional<Operation> operation_for(std::string_view property, const Problem& problem,
                                       const Served& served);

/// `drawn` for the named property, changed in as few dimensions as it takes until the subject
/// accepts it: a dimension that is not accepted as drawn takes another accepted value, chosen by
/// the case's seed, or the base's. As drawn where nothing accepted has what the property needs.
Case fitted(const Case& drawn, std::string_view property, const Subject& subject,
            const Served& served);

/// `drawn` with the features of the plan's Problem `number` and one accepted extent, both counted
/// around; the other extents are its own. As drawn where the property needs other features, or none
/// are served.
Case planned(const Case& drawn, std::string_view property, const Subject& subject,
             const Served& served, std::uint64_t number);

}  // namespace attest
