// A world without attention for the unit tests of this folder: three properties that only ask
// whether the subject's first number is 0, a drawing of cases that is a hash, and subjects that are
// wrong exactly when a test says so. Linked in place of properties/.
#pragma once
#include <functional>
#include <string>

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

/// As Run would print it, without what depends on time.
std::string fingerprint(const struct Run& run);

}  // namespace attest
