// Served: what a subject accepts, found by asking its declines() and nothing else. Drawn cases are
// moved there (fitted.hpp): a kernel that takes one width and one format then gets as many cases as
// one that takes all.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "properties/domains/pairs.hpp"
#include "reference/subject.hpp"

namespace attest {

/// A Problem that is accepted with another extent than the base's, or the base itself.
struct ServedExtent {
  std::size_t dimension;
  Problem problem;
};

/// What is served of one operation.
struct ServedOperation {
  std::optional<Problem> base;  // the first Problem found that is accepted
  /// By number of the dimension: Problems that are accepted and differ from the base in it, the
  /// base first; in it alone, or where that is declined in one companion too.
  AcceptedValues accepted;
  Pairs pairs;
  std::vector<Problem> plan;          // in which every pair occurs
  std::vector<ServedExtent> extents;  // every accepted extent that reports tell apart
  /// Words of all values that the operation reads and that are accepted, sorted.
  std::vector<std::string> values;
};

struct Served {
  std::array<ServedOperation, kOperationCount> operations;
  const ServedOperation& of(Operation operation) const {
    return operations[static_cast<std::size_t>(operation)];
  }
};

/// Gives a Problem what the subject is known to insist on, where it does not have it.
using Bring = std::function<void(Operation, Problem&)>;

/// Asks some ten thousands of questions at most, of a subject that accepts all some hundreds. The
/// same answers give the same Served. What is searched is brought where `bring` leads.
Served probe(const Subject& subject, const Bring& bring = {});

/// Legal, and not declined.
bool accepts(const Subject& subject, Operation operation, const Problem& problem);

}  // namespace attest
