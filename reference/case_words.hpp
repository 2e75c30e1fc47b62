// The words of a case line as a list, for people: what parses lines is made from the same table
// (case_text.cpp), so that no word is missing here.
#pragma once
#include <string_view>
#include <vector>

namespace attest {

struct CaseWord {
  std::string_view name;
  std::string_view form;      // as it is written in a line; of a flag its name
  std::string_view what;      // a phrase
  std::string_view left_out;  // what a line without it says: a value, or a phrase
  bool of_problem;            // false: of a case only, that is, of how values are made
};

/// In the order in which they are printed.
std::vector<CaseWord> case_words();

}  // namespace attest
