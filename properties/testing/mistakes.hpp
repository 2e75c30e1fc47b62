// Subjects that are wrong in one way each, for tests: every property must refuse one of them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "reference/subject.hpp"

namespace attest {

/// A mistake, and the properties whose business it is.
struct Mistake {
  std::string name;
  std::vector<std::string> seen_by;
  std::function<Subject()> subject;
};

std::vector<Mistake> mistakes();

}  // namespace attest
