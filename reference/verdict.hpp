// Verdict: what one check of one property on one case concluded.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

// Enumerators are spelled as they are printed.
enum class Outcome : std::uint8_t { holds, violated, vacuous, declined, faulted };

/// Whether this case could have told a named wrong answer from the right one.
struct Power {
  std::string wrong_answer;  // e.g. "drops_one_key"
  bool refused = false;      // the bound would have refused it
};

/// Which of the wrong answers tried on a case its bound would have refused: in O none but zeros;
/// some; at least half of all, and one of them in O. Spelled as printed.
enum class Sight : std::uint8_t { unknown, blind, coarse, sharp };

/// How much of what is allowed was used. Special: where nothing is allowed 0 or infinity, and
/// infinity for a bound that is NaN.
inline double margin_of(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
}

/// It starts vacuous: nothing is believed until it has been shown. `margin` is error / bound, the
/// largest met; for a bit-for-bit comparison it is 0 (equal) or infinity.
struct Verdict {
  Outcome outcome = Outcome::vacuous;
  double error = 0, bound = 0, margin = 0;  // at `where`
  std::array<Index, 4> where{};             // (batch, head, row, column)
  Index compared = 0;                       // how many numbers were judged; 0 can never hold
  std::string why;                          // one sentence, for a person
  std::vector<Power> power;                 // which wrong answers this case could have seen
  Sight sight = Sight::unknown;             // the same in one word; unknown: none were tried
  Index unbounded = 0;                      // numbers of which the bound promises nothing
  std::string refused_by = {};              // the weakest bound that refuses it, where known
};

}  // namespace attest
