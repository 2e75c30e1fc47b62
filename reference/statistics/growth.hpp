// Whether numbers grew between two runs on the same values, row by row: a sign test, with what it
// could have seen. README.md, "Growth". It knows nothing of what the numbers are.
#pragma once
#include <vector>

namespace attest {

/// Rows of which one number is compared. What changed is as likely to have grown as to have shrunk
/// where nothing but roundings changed, whatever the numbers are distributed like.
struct Growth {
  int rows = 0, changed = 0, grown = 0;
  double chance = 1;         // that so many of those that changed grew
  double chance_shrunk = 1;  // that so many shrank
  int needed = 0;            // of all rows, to be called grown; more than there are: none would be
  // Were changes that scatter as these do, but around it instead of 0, they would be called grown
  // nine times in ten; infinity: nothing would.
  double least = 0;
};

/// `changes` are after - before of each row, or of a growing function of both; `rate` is how often
/// equals may be called grown.
/// Domain: 0 < rate < 1. Error: exact but for that of tails.hpp.
/// Special: a NaN is a row that shrank, an infinity one that grew or shrank.
Growth growth_of(const std::vector<double>& changes, double rate);

}  // namespace attest
