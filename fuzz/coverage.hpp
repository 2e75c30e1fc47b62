// Coverage: which extents, values and pairs of kinds the judged cases had, of those that the
// subject accepts.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/run.hpp"
#include "properties/domains/served.hpp"

namespace attest {

class Coverage {
 public:
  /// Keeps the reference.
  explicit Coverage(const Served& served);

  /// A case that was judged for the named property: what it was put to was asked.
  void count(std::string_view property, const Problem& problem);
  void count(Operation operation, const Problem& problem);
  std::map<Operation, CoveredTally> tallies() const;

 private:
  struct Met {
    std::map<std::string, Range> ranges;
    std::set<std::string> values;
    std::vector<std::vector<bool>> pairs;  // by numbers of Pairs
  };

  const Served& served_;
  std::array<Met, kOperationCount> met_;
};

}  // namespace attest
