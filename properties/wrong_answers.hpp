// Wrong answers: cheap versions of well-known mistakes, in plain double, to learn which of them a
// case, or a file with somebody's answer, could have told from the truth. They judge the testbed;
// no verdict on a subject rests on them. What a refused answer looks like: resemblance.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "properties/given.hpp"
#include "properties/wrong_rows.hpp"
#include "reference/bound/acceptance.hpp"
#include "reference/verdict.hpp"

namespace attest {

struct WrongAnswer {
  std::string_view name;
  std::string_view what;            // "one gets this when ..."
  bool (*differs)(const Problem&);  // means something else on such a Problem
  void (*apply)(Slip&);
  // Of a loss of precision: how much is lost, relative to one number. A path that itself may lose a
  // quarter of that promises nothing against it.
  double lost = 0;
};

/// Whether this path, on this Problem, promises that nothing of the kind was lost.
bool promised_against(const WrongAnswer& wrong, const Problem& problem, const PrecisionPath& path);

/// In the order in which they are tried.
std::span<const WrongAnswer> wrong_answers();
std::vector<std::string_view> wrong_answer_names();
/// "the last visible key is left out": what was done wrong.
std::string_view meaning_of_wrong_answer(std::string_view name);

/// What becomes of a wrong answer: the bound refuses it somewhere, or accepts it everywhere though
/// it moves a number by an ulp at least, or it is no other answer on these values. Spelled as
/// printed.
enum class Fate : std::uint8_t { refused, accepted, same };

struct Trial {
  std::string_view wrong_answer;
  Fate fate = Fate::same;
  bool lost_precision = false;  // that the path promises not to lose
};

/// What one tensor could tell of the wrong answers besides zeros.
struct Telling {
  bool other = false;    // one of them would give it other numbers
  bool refused = false;  // one of them would be refused by it
  bool blind() const { return other && !refused; }
};

struct Trials {
  bool sees_keys = false;      // a row has a key: only such rows are looked at
  std::vector<Trial> tried;    // where there are any, what means something else on this Problem
  Fate zeros = Fate::refused;  // in place of all of O, where it was given
  Telling o, lse;

  /// Losses of precision that the path rules out, and that would be accepted all the same.
  std::vector<std::string_view> unseen_losses() const;
};

/// Zeros would do for O: then nothing says that anything was computed.
inline bool zeros_pass(const Trials& trials) {
  return trials.sees_keys && trials.zeros != Fate::refused;
}
/// A tensor that was given says nothing of what was computed.
inline bool blind(const Trials& trials) {
  return zeros_pass(trials) || trials.o.blind() || trials.lse.blind() ||
         !trials.unseen_losses().empty();
}

/// Which wrong answers the bound would have refused where an answer was given: in O, LSE or both.
/// Costs about as much as plain attention in double, and far less where all are refused: a wrong
/// answer is followed until then.
Trials try_wrong_answers(const Problem& problem, const Values& values, const PrecisionPath& path,
                         const Acceptance& accepted, const Given& given);

/// What the trials of a case say in one word; losses of precision that the path allows say nothing.
Sight sight_of(const Trials& trials);

/// The same of O and LSE together, into verdict.power and verdict.sight.
void measure_power(const Problem& problem, const Values& values, const PrecisionPath& path,
                   const Acceptance& accepted, Verdict& verdict);

/// As a case's verdict keeps it: without losses of precision that the path allows.
std::vector<Power> measure_power(const Problem& problem, const Values& values,
                                 const PrecisionPath& path, const Acceptance& accepted);

}  // namespace attest
