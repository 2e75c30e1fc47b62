// Run: everything a campaign found and proved. Data only; reports/ turns it into text.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/options.hpp"
#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// A verdict that is not in the subject's favour, with everything needed to see it again.
struct Finding {
  std::string property;
  Case found;                      // as drawn
  Case shrunk;                     // the smallest case found that still fails the same property
  std::optional<Setting> setting;  // under which both were run; nothing on a GPU
  Verdict verdict;                 // on `shrunk`
  std::uint64_t shrink_steps = 0;
  // What a replay is compared with.
  std::uint64_t digest = 0;        // of every bit that the subject wrote on `shrunk`; 0: unknown
  std::string version;             // of the program that found it
  std::uint64_t subject_hash = 0;  // of the bytes of the plugin's file; 0: unknown
};

inline constexpr std::size_t kDeclinesMax = 20;
inline constexpr std::string_view kOtherReasons = "other reasons";

struct PropertyTally {
  std::string property, statement;
  std::uint64_t cases = 0, held = 0, violated = 0, vacuous = 0, declined = 0, faulted = 0;
  std::uint64_t redrawn = 0;   // draws that were declined, after which others were drawn instead
  std::uint64_t compared = 0;  // numbers judged
  double margin_max = 0;       // over verdicts that held
  Case margin_case;            // where it was met
  std::array<Index, 4> margin_where{};
  // Why cases and draws were declined, and how many for that reason. A reason may quote extents, so
  // only the first kDeclinesMax are kept apart; the rest count as kOtherReasons.
  std::map<std::string, std::uint64_t> declines;
};

struct PowerTally {
  std::uint64_t refused = 0, cases = 0;  // of `cases` in which it was tried
};

/// Of this program, e.g. "0.1.0".
std::string_view version();

/// Said in place of a numeric model or of a schedule: another one for every case.
inline constexpr std::string_view kDrawn = "drawn";

/// How the emulator ran, as words of a command line; means nothing on a GPU. The defaults are the
/// emulator's.
struct EmulationOptions {
  std::string numerics = emulator::print(emulator::NumericModel{});  // or kDrawn
  std::string checks = emulator::print(emulator::Checks{});
  std::optional<std::uint64_t> schedule = 0;  // nothing: drawn
  bool operator==(const EmulationOptions&) const = default;
};

struct Run {
  std::string version, subject, numerics, device;
  EmulationOptions emulation;
  std::uint64_t seed = 0;
  double seconds = 0;
  bool interrupted = false;      // stopped by a signal
  std::string error;             // why the testbed itself could not go on; empty: it did
  std::uint64_t next_index = 0;  // of drawn cases: where a later campaign goes on
  PrecisionPath precision;
  std::vector<PropertyTally> tallies;       // in catalogue order
  std::map<std::string, PowerTally> power;  // by wrong answer
  std::vector<Finding> findings;  // one per (property, kind of failure), first found first
  std::map<std::string, std::uint64_t> features;  // how many cases had causal, window, gqa, ...
  std::map<std::string, std::uint64_t> models;    // cases per numeric model; empty on a GPU
  Counters counters;  // of all that the subject was asked; 0 where nothing counts
  std::uint64_t cases() const;
};

}  // namespace attest
