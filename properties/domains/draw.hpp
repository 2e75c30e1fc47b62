// What everything drawn is made of: one of a list, a number of a range, a chance. Only inside
// RapidCheck's gen::exec. Knows nothing of Problems.
#pragma once
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

/// One of a list.
template <class T, std::size_t kCount>
T pick(const T (&list)[kCount]) {
  return *rc::gen::elementOf(std::vector<T>(std::begin(list), std::end(list)));
}
inline Index pick_between(Index low, Index high) {
  return *rc::gen::inRange<Index>(low, high + 1);
}
/// True so many times in a hundred.
inline bool chance(Index percent) {
  return pick_between(0, 99) < percent;
}

/// Log-uniform, +-8 to 15 eighths of a power of two: exact in every format that may carry it.
inline double draw_number(int least_exponent, int most_exponent) {
  const int exponent = static_cast<int>(pick_between(least_exponent, most_exponent));
  return std::ldexp(static_cast<double>(pick_between(8, 15)), exponent - 3);
}

}  // namespace attest
