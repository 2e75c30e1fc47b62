// Served: what a subject accepts, found by asking its declines() and nothing else, and drawn cases
// moved to where they are accepted. A kernel that takes one width and one format then gets as many
// cases as one that takes all.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/subject.hpp"

namespace attest {

/// What is served of one operation.
struct ServedOperation {
  std::optional<Problem> base;  // the first Problem found that is accepted
  /// By number of the dimension: Problems that differ from the base in it alone and are accepted
  /// too, the base first.
  std::vector<std::vector<Problem>> accepted;
};

struct Served {
  std::array<ServedOperation, kOperationCount> operations;
};

/// Gives a Problem what the subject is known to insist on, where it does not have it.
using Bring = std::function<void(Operation, Problem&)>;

/// Asks some ten thousands of questions at most, of a subject that accepts all some hundreds. The
/// same answers give the same Served. What is searched is brought where `bring` leads.
Served probe(const Subject& subject, const Bring& bring = {});

/// `drawn` for the named property, changed in as few dimensions as it takes until the subject
/// accepts it: a dimension that is not accepted as drawn takes another accepted value, chosen by
/// the case's seed, or the base's. As drawn where nothing accepted has what the property needs.
Case fitted(const Case& drawn, std::string_view property, const Subject& subject,
            const Served& served);

}  // namespace attest
