// What a property is: a sentence about every subject, and a function that decides it.
// A property draws no random numbers and knows no framework; domains/ brings the cases.
#pragma once
#include <span>
#include <string_view>

#include "reference/subject.hpp"
#include "reference/values.hpp"
#include "reference/verdict.hpp"

namespace attest {

struct Property {
  std::string_view name;       // the token in command lines, corpus files and reports
  std::string_view statement;  // one sentence, shown beside every verdict
  Verdict (*check)(const Subject&, const Problem&, const Values&);
};

/// Every property there is: properties/catalogue.cpp.
std::span<const Property> catalogue();

}  // namespace attest
