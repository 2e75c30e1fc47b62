// What the table, the summary and the other texts share, so that they cannot disagree: words for
// outcomes, short numbers, the standing of a property, what a run could tell and was blind to.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/run.hpp"
#include "reference/one_line.hpp"

namespace attest {

std::string_view word_of(Outcome outcome);
/// Throws Error for a word that is none, naming `where`.
Outcome outcome_named(std::string_view word, const std::string& where);

/// What a run says of one property.
enum class Standing : std::uint8_t {
  held,      // numbers were compared, and nothing was wrong
  failed,    // violated, or the subject faulted
  declined,  // the subject accepted none of its cases: it does not offer this
  unproven,  // it was never drawn, or no case compared a number
};
Standing standing_of(const PropertyTally& tally);
std::string_view word_of(Standing standing);

/// Three significant digits, "0" and "inf" as they are: 0.731, 4.1e-05.
std::string short_number(double number);
/// "batch 1, head 0, row 3, column 7"
std::string place_of(const std::array<Index, 4>& where);

/// Wrong answers in alphabetical order. `told`: at least one case would have refused it. `untried`:
/// in the catalogue, but no case meant something else by it.
struct PowerSplit {
  std::vector<std::string> told, blind, untried;
};
PowerSplit split_power(const Run& run);

/// The features that no case of the run had, in the catalogue's order.
std::vector<std::string> absent_features(const Run& run);

/// Violated or faulted.
std::uint64_t wrong_of(const PropertyTally& tally);

/// The last part of a subject's path without its extension; "subject" when there is none.
std::string short_name_of_subject(const Run& run);

/// Quoted for a POSIX shell when it needs to be; control characters as escapes.
std::string shell_quoted(std::string_view word);

/// How the program is called from where the user stands, quoted for a shell.
std::string command_name();

/// The words of a text, without the blanks between them.
std::vector<std::string> words_of(std::string_view text);
/// `words` over as many lines as it takes, each after the first indented below the first word.
std::string wrapped(const std::string& lead, const std::vector<std::string>& words, int columns);

/// "numerics sm_80, schedule 0, checks memcheck,initcheck"
std::string text_of(const EmulationOptions& emulation);
/// What of it the command line of a replay has to say: " --schedule 7"; nothing of what is so by
/// default, but numerics and schedule always when they were drawn.
std::string words_of(const EmulationOptions& emulation, bool drawn);
/// How the emulator ran when the finding was made.
EmulationOptions emulation_of(const Run& run, const Finding& finding);

/// The findings of one property, in the run's order.
std::vector<const Finding*> findings_of(const Run& run, std::string_view property);

/// The pieces joined by `separator`.
std::string joined(const std::vector<std::string>& pieces, std::string_view separator);

}  // namespace attest
