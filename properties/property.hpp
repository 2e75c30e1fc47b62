// What a property is: a sentence about every subject, and a function that decides it.
// A property draws no random numbers and knows no framework; domains/ brings the cases.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/subject.hpp"
#include "reference/values.hpp"
#include "reference/verdict.hpp"

namespace attest {

struct Property {
  std::string_view name;       // the token in command lines, corpus files and reports
  std::string_view statement;  // one sentence, shown beside every verdict
  Verdict (*check)(const Subject&, const Problem&, const Values&);
  /// What a violation may mean, for a person; asks the subject again. May be null, or say nothing.
  std::string (*explain)(const Subject&, const Problem&, const Values&) = nullptr;
  /// The operation whose results this property compares with what is right, number by number. One
  /// that a subject offers counts as judged when this property was.
  std::optional<Operation> central_to = {};
};

/// Every property there is: properties/catalogue.cpp.
std::span<const Property> catalogue();

}  // namespace attest
